// Carries out a comparison: one run after the other, each of them watched.
#include "lab/bench/bench.hpp"

#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <fstream>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <stop_token>
#include <system_error>
#include <thread>

#include "lab/bench/json/host.hpp"
#include "lab/bench/json/to_json.hpp"
#include "lab/bench/plan/launch.hpp"
#include "lab/bench/plan/memory.hpp"
#include "lab/bench/plan/request.hpp"
#include "lab/bench/shm/stage.hpp"
#include "lab/bench/sim/clock.hpp"
#include "lab/bench/sim/stage.hpp"

namespace lockflight::bench {
namespace {

/// Watches a run from outside: reports its progress, and ends it when no rank makes progress any
/// more.
class watcher {
 public:
  watcher(const run_results& results, const job& what, progress where,
          const progress_callback& tell)
      : results_(results), what_(what), where_(std::move(where)), tell_(tell) {}

  void look() {
    std::uint64_t beats = 0;
    double done = 0;
    for (const rank_result& r : results_.ranks()) {
      beats += r.beats.load(std::memory_order_relaxed);
      done += r.progress.load(std::memory_order_relaxed);
    }
    if (tell_) {
      const double all = rank_result::all_done * static_cast<double>(results_.ranks().size());
      where_.fraction = done / all;
      tell_(where_);
    }
    const auto now = std::chrono::steady_clock::now();
    if (beats != beats_ || done != done_) last_change_ = now;
    beats_ = beats;
    done_ = done;
    if (now - last_change_ > patience)
      throw std::system_error(
          std::make_error_code(std::errc::timed_out),
          fmt::format("{} with {} ranks: no rank finished an operation for {} s",
                      what_.lock->about.name, what_.plan.machine.ranks(), patience.count()));
  }

 private:
  static constexpr std::chrono::seconds patience{60};

  const run_results& results_;
  const job& what_;
  progress where_;
  const progress_callback& tell_;
  std::uint64_t beats_ = 0;
  double done_ = 0;
  std::chrono::steady_clock::time_point last_change_ = std::chrono::steady_clock::now();
};

std::ofstream open_trace(const std::string& path) {
  std::ofstream out;
  if (path.empty()) return out;
  out.open(path);
  if (!out)
    throw bad_request(fmt::format("--trace '{}' (accepted: a file that can be written)", path));
  return out;
}

/// Returns a sentence if ranks had more events than the trace has room for, else nothing.
std::string write_trace(std::ofstream& out, const job& what, const run_results& results) {
  std::vector<std::span<const fabric::trace_event>> of_rank;
  int full = 0;
  std::uint64_t first_end_ns = UINT64_MAX;
  std::uint64_t start_ns = UINT64_MAX;
  for (rma::rank_t r = 0; r < what.plan.machine.ranks(); ++r) {
    const auto events = results.trace_room(r).first(results.of(r).trace_used);
    of_rank.push_back(events);
    if (events.empty()) continue;
    start_ns = std::min(start_ns, events.front().at_ns);
    if (results.of(r).trace_dropped == 0) continue;
    ++full;
    first_end_ns = std::min(first_end_ns, events.back().at_ns);
  }
  fabric::write_chrome_trace(out, of_rank, what.lock->about.name);
  out.flush();
  if (!out) throw std::system_error(errno, std::generic_category(), "writing the trace");
  if (full == 0) return "";
  return fmt::format(
      "the trace has room for {} events of a rank; it lacks the rest of {} of {} ranks, the first "
      "from {:.3g} ms on (a shorter run fits: --ops)",
      results.trace_room(0).size(), full, of_rank.size(),
      static_cast<double>(first_end_ns - start_ns) / 1e6);
}

/// Runs a job together with the other processes of the launch. Rank 0 gets the results and watches
/// the run from a thread of its own, which makes no call on the fabric; the others get null.
std::shared_ptr<const run_results> run_in_launch(launch& all, const job& now, const progress& begun,
                                                 const progress_callback& tell) {
  const auto results = all.results(now.plan);
  if (all.rank() != 0) {
    all.run(now.lock->through_any_port, now.plan, *results);
    return nullptr;
  }
  std::jthread looking([&](const std::stop_token& over) {
    watcher seen(*results, now, begun, tell);
    std::mutex alone;
    std::condition_variable_any wakes;
    std::unique_lock held(alone);
    try {
      constexpr std::chrono::milliseconds period{100};
      while (!wakes.wait_for(held, over, period, [] { return false; }) && !over.stop_requested())
        // The progress of ranks on other machines is not visible until they have ended.
        if (results->whole()) seen.look();
    } catch (const std::exception& e) {
      all.abandon(fmt::format("lockflight bench: {}", e.what()));
    }
  });
  all.run(now.lock->through_any_port, now.plan, *results);
  return results;
}

/// Runs a job in this process, and in processes that it starts.
std::shared_ptr<const run_results> run_here(const job& now, const progress& begun,
                                            const progress_callback& tell) {
  if (now.plan.profile == nullptr && now.plan.machine.nodes() > 1 &&
      !now.lock->about.needs_native_memory && !now.lock->about.bears_lost_waiters)
    rehearse_on_shm(now.lock->through_any_port, now.plan);
  const auto results = std::make_shared<const run_results>(now.plan);
  watcher seen(*results, now, begun, tell);
  const auto look = [&] { seen.look(); };
  if (now.plan.profile != nullptr)
    run_on_sim(now.lock->through_any_port, now.plan, *results, look);
  else if (now.plan.trace)
    trace_on_shm(now.lock->through_any_port, now.plan, *results, look);
  else
    now.lock->run_on_shm(now.plan, *results, look);
  return results;
}

}  // namespace

nlohmann::json run_simulated(const request& what, const std::function<void()>& watch,
                             const std::function<void(double)>& admit) {
  const std::vector<job> jobs = jobs_of(what);
  if (jobs.size() != 1 || jobs.front().plan.profile == nullptr)
    throw bad_request(
        fmt::format("{} runs on {} (accepted: one on sim)", jobs.size(), what.fabric));
  const job& now = jobs.front();
  if (admit) admit(bytes_needed(now));
  check_memory(now);
  const run_results results(now.plan);
  run_on_sim(now.lock->through_any_port, now.plan, results, [&] {
    if (watch) watch();
  });
  return to_json(now, what.fabric, results, sim_clock::base);
}

nlohmann::json run(const request& what, const progress_callback& watch,
                   const remark_callback& remark) {
  const std::vector<job> jobs = jobs_of(what);
  for (const job& one : jobs) check_memory(one);
  launch* const launched = launch_of(what.fabric);
  std::ofstream trace = open_trace(what.trace);
  const tick_clock& clock = launched != nullptr ? launched->clock() : tick_clock::calibrated();
  nlohmann::json runs = nlohmann::json::array();
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const job& now = jobs[i];
    const progress begun{std::string(now.lock->about.name), now.plan.machine.ranks(), i,
                         jobs.size(), 0};
    const auto results = launched != nullptr ? run_in_launch(*launched, now, begun, watch)
                                             : run_here(now, begun, watch);
    if (results == nullptr) continue;
    const bool simulated = now.plan.profile != nullptr;
    runs.push_back(to_json(now, what.fabric, *results, simulated ? sim_clock::base : clock.base()));
    if (!trace.is_open()) continue;
    const std::string lacks = write_trace(trace, now, *results);
    if (!lacks.empty() && remark) remark(lacks);
  }
  nlohmann::json all{
      {"lockflight", LOCKFLIGHT_VERSION}, {"host", host_facts(clock)}, {"runs", std::move(runs)}};
  if (launched == nullptr) return all;
  if (nlohmann::json hosts = hosts_of(*launched); hosts.size() > 1) all["hosts"] = std::move(hosts);
  return all;
}

}  // namespace lockflight::bench
