#include "reproduce/pool.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <set>
#include <stop_token>
#include <thread>

namespace lockflight::reproduce {
namespace {

struct task {
  std::string key;
  run what;
  std::vector<const claim*> wanted_by;
  double cost = 0;
};

/// A guess at how long a run takes, to start long ones first: operations, and more of each where
/// ranks crowd.
double cost_of(const run& what) {
  const auto procs = what.at("procs").get<double>();
  const auto ops = what.find("ops");
  constexpr double ops_a_second_and_rank = 1e5;
  const double all = ops != what.end() ? ops->get<double>()
                                       : what.value("seconds", 0.0) * procs * ops_a_second_and_rank;
  constexpr double to_start_a_rank = 5;
  return all + to_start_a_rank * procs;
}

std::vector<task> tasks_of(const std::vector<const claim*>& claims) {
  std::vector<task> tasks;
  std::map<std::string, std::size_t> number;
  for (const claim* const c : claims)
    for (const run& what : runs_of(*c)) {
      const std::string key = key_of(what);
      const auto [at, is_new] = number.emplace(key, tasks.size());
      if (is_new) tasks.push_back({key, what, {}, cost_of(what)});
      auto& wanted = tasks[at->second].wanted_by;
      if (wanted.empty() || wanted.back() != c) wanted.push_back(c);
    }
  std::stable_sort(tasks.begin(), tasks.end(),
                   [](const task& a, const task& b) { return a.cost > b.cost; });
  return tasks;
}

class pool {
 public:
  pool(std::vector<task> tasks, const how& way) : tasks_(std::move(tasks)), way_(way) {
    for (const task& t : tasks_)
      for (const claim* const c : t.wanted_by) ++runs_left_[c];
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
      hold.unlock();
      result got;
      std::exception_ptr refused;
      try {
        got.run = carry_out(mine);
      } catch (const bench::bad_request& e) {
        refused = std::make_exception_ptr(
            bad_claims(fmt::format("{}: claim '{}': {}", mine.wanted_by.front()->at,
                                   mine.wanted_by.front()->id, e.what())));
      } catch (const std::exception& e) {
        got.failed = e.what();
      }
      hold.lock();
      going_on_.erase(&mine);
      if (refused && !refused_) refused_ = refused;
      results_.emplace(mine.key, std::move(got));
      for (const claim* const c : mine.wanted_by) --runs_left_[c];
      changed_.notify_all();
    }
  }

  // A run that others refused claims wait for need not go on.
  nlohmann::json carry_out(const task& mine) {
    const auto started = std::chrono::steady_clock::now();
    nlohmann::json got = bench::run_simulated(request_of(mine.what), [&] {
      constexpr std::chrono::minutes enough{10};
      if (std::chrono::steady_clock::now() - started > enough)
        throw std::runtime_error(
            fmt::format("a run of {} took longer than {} min", mine.what.dump(), enough.count()));
    });
    got.erase("latency_cdf");
    return got;
  }

  void look_on() {
    constexpr std::chrono::milliseconds period{200};
    std::unique_lock hold(mutex_);
    while (!refused_ && results_.size() < tasks_.size()) {
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
    now.done = results_.size();
    now.of = tasks_.size();
    for (const auto& [c, left] : runs_left_) now.claims_left += left > 0 ? 1 : 0;
    for (const task* const t : going_on_)
      now.now.push_back(t->wanted_by.front()->paper + "/" + t->wanted_by.front()->id);
    return now;
  }

  const std::vector<task> tasks_;
  const how& way_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t next_ = 0;
  std::set<const task*> going_on_;
  std::map<std::string, result> results_;
  std::map<const claim*, std::size_t> runs_left_;
  std::exception_ptr refused_;
};

}  // namespace

std::map<std::string, result> carry_out_runs(const std::vector<const claim*>& claims,
                                             const how& way) {
  return pool(tasks_of(claims), way).run_all();
}

}  // namespace lockflight::reproduce
