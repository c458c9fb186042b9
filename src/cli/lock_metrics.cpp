#include "cli/lock_metrics.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <tuple>
#include <utility>

#include "base/metrics_text.hpp"
#include "base/visible_text.hpp"
#include "cli/named.hpp"

namespace lockflight::cli {
namespace {

using enum metrics_text::type;

/// The owner of the domain, since domains of several users and groups may have the same name.
std::string owner_of(const domain& in) {
  const domain_options& options = in.options();
  constexpr unsigned of_group = 0660;
  return options.mode == of_group ? fmt::format("group {}", options.group)
                                  : fmt::format("user {}", geteuid());
}

/// The locks that get metrics, at most most_locks_with_metrics, by name.
std::vector<domain_lock> chosen(std::vector<domain_lock> locks) {
  const auto importance = [](const domain_lock& of) {
    return std::tuple(!of.users.empty(), longest_wait_s(of), of.acquires);
  };
  std::ranges::stable_sort(locks, std::greater<>{}, importance);
  if (locks.size() > most_locks_with_metrics) locks.resize(most_locks_with_metrics);
  std::ranges::sort(locks, {}, &domain_lock::name);
  return locks;
}

void add_domain(metrics_text& to, const domain& in, std::size_t locks, std::size_t left_out,
                const metrics_text::labels& its) {
  to.single("lockflight_domain_participants", gauge, "Threads that have a slot of the domain.", its,
            in.participants().size());
  to.single("lockflight_domain_slots", gauge, "Threads that can have a slot at a time.", its,
            in.options().slots);
  to.single("lockflight_domain_locks", gauge, "Locks and semaphores that exist.", its, locks);
  to.single("lockflight_domain_locks_left_out", gauge,
            "Locks that exist but have no metrics of their own here.", its, left_out);
  to.single("lockflight_domain_deaths_total", counter,
            "Threads that have died with a slot, whether they held a lock or not.", its,
            in.deaths());
}

}  // namespace

std::string lock_metrics(const domain& in, std::vector<domain_lock> locks) {
  const std::string owner = owner_of(in);
  const std::size_t count = locks.size();
  const std::vector<domain_lock> shown = chosen(std::move(locks));
  metrics_text made;
  add_domain(made, in, count, count - shown.size(), {{"domain", in.name()}, {"owner", owner}});
  const auto of_each = [&](std::string_view name, metrics_text::type type, std::string_view help,
                           auto value) {
    made.family(name, type, help);
    for (const domain_lock& each : shown)
      // A label is UTF-8, and a file in which two locks have the same one is refused as a whole.
      made.sample({{"domain", in.name()}, {"owner", owner}, {"name", reversible_line(each.name)}},
                  value(each));
  };
  of_each("lockflight_lock_holders", gauge,
          "Threads that hold the lock, or units of the semaphore.", count_of_held);
  of_each("lockflight_lock_capacity", gauge,
          "Threads that can hold it at a time: units of a semaphore, and 1 of a lock.",
          [](const domain_lock& of) { return std::max(of.units, 1); });
  of_each("lockflight_lock_waiters", gauge, "Threads that wait for it.",
          [](const domain_lock& of) { return waiters_of(of.users).size(); });
  of_each("lockflight_lock_longest_wait_seconds", gauge,
          "How long the first of those that wait has waited; 0: nobody waits.", longest_wait_s);
  of_each("lockflight_lock_held_seconds", gauge,
          "How long the first of those that hold has held; 0: nobody holds.",
          [](const domain_lock& of) {
            const auto holders = holders_of(of.users);
            return holders.empty() ? 0 : seconds_of(holders.front());
          });
  of_each("lockflight_lock_acquires_total", counter,
          "Exclusive acquires on this host since the lock was made.",
          [](const domain_lock& of) { return of.acquires; });
  of_each("lockflight_lock_repairs_total", counter,
          "How often the lock was repaired after a death or a stop since it was made.",
          [](const domain_lock& of) { return of.repairs; });
  of_each("lockflight_lock_owner_died", gauge,
          "1: an exclusive holder has died, and nobody has said since that the data is consistent.",
          [](const domain_lock& of) { return of.owner_died ? 1 : 0; });
  return made.text();
}

}  // namespace lockflight::cli
