// A process's view of its launch: the group, the transport, and the places of the other ranks.
#pragma once

#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "base/fault_in.hpp"
#include "fabric/network/progress_words.hpp"
#include "fabric/wired/progress.hpp"
#include "fabric/wired/transport.hpp"
#include "lockflight/fabric/wired.hpp"
#include "wireup/group.hpp"

namespace lockflight::wired::detail {

struct world {
  /// `by`: null for the launch that the environment describes.
  world(const library& of, const introduction* by);
  ~world();
  world(const world&) = delete;
  world& operator=(const world&) = delete;

  [[nodiscard]] int rank() const { return all->rank(); }
  [[nodiscard]] int size() const { return all->size(); }
  /// "rank 1 on host1".
  [[nodiscard]] std::string name_of(rma::rank_t rank) const;
  [[nodiscard]] bool same_host(int a, int b) const {
    return first_of_host[static_cast<std::size_t>(a)] == first_of_host[static_cast<std::size_t>(b)];
  }

  // Collective calls; each serves other ranks' operations meanwhile, and may throw run_failed.
  [[nodiscard]] std::vector<std::string> gather(const std::string& mine);
  void meet();
  /// Called by a rank that takes part in nothing: sleeps until the others have come.
  void wait_idle_for_end_of_run();
  /// Agrees about a step that may fail on one rank alone: each rank passes why it failed, or
  /// nothing. If a rank has failed, all throw an Error with its words.
  template <class Error = unavailable>
  void agree(const std::string& why) {
    const std::vector<std::string> all_say = gather(why);
    for (std::size_t r = 0; r < all_say.size(); ++r)
      if (!all_say[r].empty())
        throw Error(all_say[r] + (r > 0 ? " (" + name_of(static_cast<int>(r)) + ")" : ""));
  }

  /// Throws run_failed if a rank is gone or has failed. A system call.
  void check();
  /// A step of the transport. Throws run_failed if it does not work any more.
  void progress();
  /// Called if this rank cannot go on. The other ranks learn of it.
  void fail(const std::string& why);
  /// Called if the library reports, in these words, that a rank does not answer. Throws run_failed.
  [[noreturn]] void lost(rma::rank_t who, const std::string& status);

  /// Starts the thread of LOCKFLIGHT_PROGRESS, if it is wanted; for a run of several nodes.
  /// Collective.
  void start_progress_thread();

  std::unique_ptr<wireup::group> all;
  std::vector<std::string> hosts;  // [rank]
  std::vector<int> first_of_host;  // [rank]
  int processors = 1;              // of this host, for its ranks together
  const char* nodes_variable;
  fabric::detail::progress_by wanted = fabric::detail::progress_by::calls;
  std::unique_ptr<transport> net;
  std::unique_ptr<progress_thread> help;
  std::int64_t runs = 0;
  bool over = false;    // a rank has failed
  std::string failure;  // the text of the failure

 private:
  int unwinding_ = std::uncaught_exceptions();

  void join(const library& of, const introduction* by, const std::string& bad_variable);
  void close_down(const std::string& why);
  [[noreturn]] void end(const std::string& why);
  void place(const std::vector<std::string>& said);
};

}  // namespace lockflight::wired::detail
