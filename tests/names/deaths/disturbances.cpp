#include "tests/names/deaths/disturbances.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <thread>

namespace lockflight::test {

void disturbances::start_all() {
  for (int w = 0; w < options_.processes; ++w) start(w);
}

void disturbances::carry_out() {
  const shared_state& all = workers_.all();
  auto next_line = clock::now() + std::chrono::seconds(1);
  for (int strikes = 1; record_.kills < options_.kills && all.broken == 0; ++strikes) {
    std::this_thread::sleep_for(std::chrono::microseconds(random_() % 4'000));
    strike();
    let_go_on();
    constexpr int between_removals = 50;
    if (options_.removals && strikes % between_removals == 0) remove();
    if (!options_.quiet && clock::now() > next_line) {
      fmt::print(stderr, "{} of {} kills, {} acquires\n", record_.kills, options_.kills,
                 all.acquires.load());
      next_line += std::chrono::seconds(1);
    }
  }
}

void disturbances::strike() {
  const int w = static_cast<int>(random_() % static_cast<std::uint64_t>(options_.processes));
  const auto way = options_.images ? random_() % 12 : random_() % 8;
  const bool is_stopped = w == stopped_;
  switch (way) {
    case 0:
    case 1:
      if (!is_stopped) stop(w);
      return;
    case 2:
      if (is_stopped || !tell(w, to_exit)) return;
      ++record_.exits;
      break;
    case 8:
    case 9:
      if (!is_stopped && tell(w, to_become_an_image)) ++record_.orders;
      return;
    case 10:
      if (!is_stopped && tell(w, to_make_a_child)) ++record_.orders;
      return;
    case 11:
      if (!is_stopped && tell(w, to_enter_a_namespace)) ++record_.orders;
      return;
    default:
      workers_.signal(w, SIGKILL);
      ++record_.kills;
  }
  if (is_stopped) stopped_ = -1;
  note_end(w);
  start(w);
}

// ---- stops --------------------------------------------------------------------------------------

void disturbances::stop(int w) {
  workers_.signal(w, SIGSTOP);
  const auto since = clock::now();
  ++record_.stops;
  if (stop_for_long(w, since)) return;
  std::this_thread::sleep_for(std::chrono::microseconds(random_() % 20'000));
  go_on(w, since);
}

bool disturbances::stop_for_long(int w, clock::time_point since) {
  if (stopped_ >= 0 || workers_.state(w).is != where::on_the_way) return false;
  constexpr auto until_it_has_stopped = std::chrono::milliseconds(2);
  std::this_thread::sleep_for(until_it_has_stopped);
  // The domain knows whether the worker holds a lock: the worker itself sets its state later than
  // it acquires, and earlier than it releases.
  const pid_t pid = workers_.state(w).pid;
  for (const domain_lock& lock : workers_.open_domain().locks())
    for (const lock_user& use : lock.users) {
      const bool is_it = use.pid == pid || (options_.spaces && use.pid == 1);
      if (is_it && use.held != mode::none) return false;
    }
  stopped_ = w;
  stopped_since_ = since;
  go_on_at_ = clock::now() + std::chrono::milliseconds(100 + random_() % 1'400);
  ++record_.long_stops;
  return true;
}

void disturbances::let_go_on() {
  if (stopped_ < 0 || clock::now() < go_on_at_) return;
  go_on(stopped_, stopped_since_);
  stopped_ = -1;
}

void disturbances::go_on(int w, clock::time_point since) {
  const auto so_long = clock::now() - since;
  workers_.state(w).stopped_ns += static_cast<std::uint64_t>(so_long.count());
  workers_.signal(w, SIGCONT);
}

// ---- orders -------------------------------------------------------------------------------------

bool disturbances::tell(int w, order what) {
  shared_state& all = workers_.all();
  all.told = order_to(w, what);
  const auto since = clock::now();
  while (all.told != -1 && all.broken == 0) {
    std::this_thread::sleep_for(std::chrono::microseconds(50));
    // The worker may wait for the stopped one, which may be in the middle of a repair.
    let_go_on();
    if (clock::now() - since > std::chrono::seconds(10))
      report(all, fmt::format("worker {} waits for ever ({}): {}", w, workers_.lock_in_use(w),
                              workers_.locks_in_use(stopped_)));
  }
  return all.broken == 0;
}

// ---- ends and removals --------------------------------------------------------------------------

void disturbances::note_end(int w) {
  workers_.wait_for_end(w);
  record_.note_death(workers_.state(w));
}

void disturbances::remove() {
  if (random_() % 4 != 0) return try_to_remove();
  stopped_ = -1;
  for (int w = 0; w < options_.processes; ++w) {
    workers_.signal(w, SIGKILL);
    ++record_.kills;
    note_end(w);
  }
  ++workers_.all().removals;  // No worker is inside now.
  const int newcomers = static_cast<int>(random_() % 3);
  for (int w = 0; w < newcomers; ++w) start(w);
  std::this_thread::sleep_for(std::chrono::microseconds(random_() % 500));
  try_to_remove();
  for (int w = newcomers; w < options_.processes; ++w) start(w);
}

void disturbances::try_to_remove() {
  try {
    if (workers_.remove_domain(false)) ++record_.removals;
  } catch (const domain_error& e) {
    if (e.why != domain_error::reason::held) throw;
  }
}

}  // namespace lockflight::test
