// The disturbances at random moments: kills, stops, orders to workers, and removals of the domain.
#pragma once

#include <random>

#include "tests/names/deaths/options.hpp"
#include "tests/names/deaths/rules.hpp"
#include "tests/names/deaths/worker_pool.hpp"

namespace lockflight::test {

class disturbances {
 public:
  disturbances(const campaign_options& options, worker_pool& workers, campaign_record& record)
      : options_(options), workers_(workers), record_(record), random_(options.seed) {}

  void start_all();
  /// Disturbs the workers until enough of them are killed or a rule is broken.
  void carry_out();
  /// The worker that is stopped for long, or -1.
  [[nodiscard]] int stopped() const { return stopped_; }

 private:
  void start(int w) { workers_.start(w, random_()); }
  /// Disturbs one worker in one way.
  void strike();

  /// Stops a worker for some milliseconds, or for long.
  void stop(int w);
  /// Leaves worker `w` stopped for up to 1.5 s, which the others must not notice. Returns false if
  /// another worker is stopped for long already, or if `w` may hold a lock.
  bool stop_for_long(int w, clock::time_point since);
  /// Continues the worker that is stopped for long if its time is over.
  void let_go_on();
  void go_on(int w, clock::time_point since);

  /// Gives an order and waits until the worker has taken it. Returns false if a rule is broken.
  bool tell(int w, order what);

  /// Waits for the end of a worker, and records it.
  void note_end(int w);
  /// Tries to remove the domain. One time in four all workers are killed first. The removal then
  /// succeeds unless one of a few new workers takes a slot before.
  void remove();
  void try_to_remove();

  const campaign_options& options_;
  worker_pool& workers_;
  campaign_record& record_;
  std::mt19937_64 random_;
  int stopped_ = -1;
  clock::time_point stopped_since_{}, go_on_at_{};  ///< of the worker that is stopped for long
};

}  // namespace lockflight::test
