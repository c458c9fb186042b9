#include "lab/reproduce/pool.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <set>
#include <thread>

#include "base/clock.hpp"
#include "lab/bench/plan/memory.hpp"
#include "lab/reproduce/runs.hpp"

namespace lockflight::reproduce {
namespace {

/// The work of one thread: a run, or a series of runs.
struct task {
  std::vector<run> steps;
  std::vector<const claim*> wanted_by;
  std::string name;
  std::string at;  ///< for errors: where the run comes from
  double cost = 0;
};

/// An estimate of how long a run takes, to start long runs first: operations, and more for each
/// where many ranks compete.
double cost_of(const run& what) {
  const auto procs = what.at("procs").get<double>();
  const auto ops = what.find("ops");
  constexpr double ops_a_second_and_rank = 1e5;
  const double all = ops != what.end() ? ops->get<double>()
                                       : what.value("seconds", 0.0) * procs * ops_a_second_and_rank;
  constexpr double to_start_a_rank = 5;
  return all + to_start_a_rank * procs;
}

std::vector<task> tasks_of(const std::vector<const claim*>& claims,
                           const std::vector<series>& others) {
  std::vector<task> tasks;
  std::map<std::string, std::size_t> number;
  for (const claim* const c : claims)
    for (const run& what : runs_of(*c)) {
      const auto [at, is_new] = number.emplace(key_of(what), tasks.size());
      if (is_new)
        tasks.push_back({.steps = {what},
                         .wanted_by = {},
                         .name = c->paper + "/" + c->id,
                         .at = fmt::format("{}: claim '{}'", c->at, c->id),
                         .cost = cost_of(what)});
      auto& wanted = tasks[at->second].wanted_by;
      if (wanted.empty() || wanted.back() != c) wanted.push_back(c);
    }
  for (const series& s : others) {
    // A claim or another figure may want the very same run.
    if (s.runs.size() == 1 && !number.emplace(key_of(s.runs.front()), tasks.size()).second)
      continue;
    double cost = 0;
    for (const run& what : s.runs) cost += cost_of(what);
    tasks.push_back({.steps = s.runs, .wanted_by = {}, .name = s.name, .at = s.at, .cost = cost});
  }
  std::stable_sort(tasks.begin(), tasks.end(),
                   [](const task& a, const task& b) { return a.cost > b.cost; });
  return tasks;
}

/// This machine's memory: a run waits until there is room for it beside the others.
class memory_share {
 public:
  /// Returns when there is room, or when no other run is left.
  void take(double bytes) {
    std::unique_lock hold(mutex_);
    given_back_.wait(hold, [&] { return takers_ == 0 || taken_ + bytes <= all_; });
    taken_ += bytes;
    ++takers_;
  }

  void give_back(double bytes) {
    {
      const std::scoped_lock hold(mutex_);
      taken_ -= bytes;
      --takers_;
    }
    given_back_.notify_all();
  }

 private:
  static constexpr double most =
      0.7;  // estimates are not exact, and other programs need memory too

  const double all_ = most * bench::bytes_available();
  std::mutex mutex_;
  std::condition_variable given_back_;
  double taken_ = 0;
  int takers_ = 0;
};

class pool {
 public:
  pool(std::vector<task> tasks, const how& way) : tasks_(std::move(tasks)), way_(way) {
    for (const task& t : tasks_) {
      runs_ += t.steps.size();
      work_ += t.cost;
      for (const claim* const c : t.wanted_by) ++runs_left_[c];
    }
  }

  std::map<std::string, result> run_all() {
    const unsigned wanted =
        way_.at_a_time > 0 ? way_.at_a_time : std::max(1u, std::thread::hardware_concurrency());
    {
      std::vector<std::jthread> threads;
      for (std::size_t i = 0; i < std::min<std::size_t>(wanted, tasks_.size()); ++i)
        threads.emplace_back([this] { work(); });
      look_on();
    }
    if (refused_) std::rethrow_exception(refused_);
    return std::move(results_);
  }

 private:
  void work() {
    std::unique_lock hold(mutex_);
    while (!refused_ && next_ < tasks_.size()) {
      const task& mine = tasks_[next_++];
      going_on_.insert(&mine);
      std::size_t left = mine.steps.size();
      for (const run& step : mine.steps) {
        if (refused_) break;
        hold.unlock();
        std::exception_ptr refused;
        result got = result_of(step, mine, refused);
        hold.lock();
        --left;
        ++done_;
        const bool is_last = refused || !got.failed.empty();
        if (refused && !refused_) refused_ = refused;
        results_.emplace(key_of(step), std::move(got));
        if (is_last) break;
      }
      done_ += left;  // the runs after the first that failed
      work_done_ += mine.cost;
      going_on_.erase(&mine);
      for (const claim* const c : mine.wanted_by) --runs_left_[c];
      changed_.notify_all();
    }
  }

  result result_of(const run& step, const task& mine, std::exception_ptr& refused) {
    result got;
    try {
      got.run = carry_out(step);
    } catch (const bench::no_room& e) {
      got.failed = e.what();
    } catch (const bench::bad_request& e) {
      refused = std::make_exception_ptr(bad_claims(fmt::format("{}: {}", mine.at, e.what())));
    } catch (const std::exception& e) {
      got.failed = e.what();
    }
    return got;
  }

  nlohmann::json carry_out(const run& step) {
    struct held_memory {
      memory_share& from;
      double bytes = 0;
      bool is_held = false;
      ~held_memory() {
        if (is_held) from.give_back(bytes);
      }
    } room{memory_};
    // The limit is of processor time, not of the time of day: the other work of the machine must
    // not decide whether a claim holds.
    std::uint64_t started = processor_time_of_thread_ns();
    nlohmann::json got = bench::run_simulated(
        request_of(step),
        [&] {
          constexpr std::chrono::minutes enough{10};
          if (std::chrono::nanoseconds(processor_time_of_thread_ns() - started) > enough)
            throw std::runtime_error(fmt::format("a run of {} took more than {} min of a processor",
                                                 step.dump(), enough.count()));
        },
        [&](double bytes) {
          const double most = step.value("most_bytes", bytes);
          constexpr double gib = 1 << 30;
          if (bytes > most)
            throw std::runtime_error(
                fmt::format("about {:.1f} GiB, more than {:g}", bytes / gib, most / gib));
          memory_.take(bytes);
          room.bytes = bytes;
          room.is_held = true;
          started = processor_time_of_thread_ns();
        });
    return got;
  }

  void look_on() {
    constexpr std::chrono::milliseconds period{200};
    std::unique_lock hold(mutex_);
    while (!refused_ && done_ < runs_) {
      changed_.wait_for(hold, period);
      if (!way_.tell) continue;
      const standing now = here();
      hold.unlock();
      way_.tell(now);
      hold.lock();
    }
  }

  [[nodiscard]] standing here() const {
    standing now;
    now.done = done_;
    now.of = runs_;
    now.part = work_ > 0 ? work_done_ / work_ : 1;
    for (const auto& [c, left] : runs_left_) now.claims_left += left > 0 ? 1 : 0;
    for (const task* const t : going_on_) now.now.push_back(t->name);
    return now;
  }

  const std::vector<task> tasks_;
  const how& way_;
  memory_share memory_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t next_ = 0;
  std::set<const task*> going_on_;
  std::map<std::string, result> results_;
  std::map<const claim*, std::size_t> runs_left_;
  std::size_t runs_ = 0;
  std::size_t done_ = 0;
  double work_ = 0;  ///< the estimated cost of all tasks, and of those that are done
  double work_done_ = 0;
  std::exception_ptr refused_;
};

}  // namespace

std::map<std::string, result> carry_out_runs(const std::vector<const claim*>& claims,
                                             const std::vector<series>& others, const how& way) {
  return pool(tasks_of(claims, others), way).run_all();
}

}  // namespace lockflight::reproduce
