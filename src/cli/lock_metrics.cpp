#include "cli/lock_metrics.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <set>
#include <tuple>
#include <utility>

#include "base/metrics_text.hpp"
#include "tool/printable.hpp"

namespace lockflight::cli {
namespace {

using enum metrics_text::type;

/// The name of a lock may be any bytes, and the format needs UTF-8. Each byte that is not UTF-8,
/// and each control character, is written as \xHH.
std::string label_of(std::string_view name) {
  std::string text;
  while (!name.empty()) {
    const std::size_t bytes = character_bytes(name);
    const std::size_t taken = std::max<std::size_t>(bytes, 1);
    if (bytes == 0 || is_control(name.substr(0, bytes)))
      for (const char each : name.substr(0, taken))
        text += fmt::format("\\x{:02x}", static_cast<unsigned char>(each));
    else
      text += name.substr(0, taken);
    name.remove_prefix(taken);
  }
  return text;
}

/// Whose domain it is, since domains of several users and groups may have the same name.
std::string owner_of(const domain& in) {
  const domain_options& options = in.options();
  constexpr unsigned of_group = 0660;
  return options.mode == of_group ? fmt::format("group {}", options.group)
                                  : fmt::format("user {}", geteuid());
}

struct labelled_lock {
  std::string label;
  lock_state state;
};

/// At most so many, each with a label of its own: two names may have the same one if they are not
/// UTF-8, and a file in which a metric is there twice is refused as a whole.
std::vector<labelled_lock> chosen(std::vector<lock_state> locks) {
  const auto importance = [](const lock_state& of) {
    return std::tuple(of.in_use(), of.longest_wait_s(), of.lock.acquires);
  };
  std::ranges::sort(locks, {}, [](const lock_state& of) { return of.lock.name; });
  std::ranges::stable_sort(locks, std::greater<>{}, importance);
  std::set<std::string> labels;
  std::vector<labelled_lock> all;
  for (lock_state& each : locks) {
    if (all.size() == most_locks_with_metrics) break;
    std::string label = label_of(each.lock.name);
    if (labels.insert(label).second) all.push_back({std::move(label), std::move(each)});
  }
  std::ranges::sort(all, {}, &labelled_lock::label);
  return all;
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

std::string lock_metrics(const domain& in, std::vector<lock_state> locks) {
  const std::string owner = owner_of(in);
  const std::size_t count = locks.size();
  const std::vector<labelled_lock> shown = chosen(std::move(locks));
  metrics_text made;
  add_domain(made, in, count, count - shown.size(), {{"domain", in.name()}, {"owner", owner}});
  const auto of_each = [&](std::string_view name, metrics_text::type type, std::string_view help,
                           auto value) {
    made.family(name, type, help);
    for (const labelled_lock& each : shown)
      made.sample({{"domain", in.name()}, {"owner", owner}, {"name", each.label}},
                  value(each.state));
  };
  of_each("lockflight_lock_holders", gauge,
          "Threads that hold the lock, or units of the semaphore.",
          [](const lock_state& of) { return of.holders.size(); });
  of_each("lockflight_lock_capacity", gauge,
          "Threads that can hold it at a time: units of a semaphore, and 1 of a lock.",
          [](const lock_state& of) { return std::max(of.lock.units, 1); });
  of_each("lockflight_lock_waiters", gauge, "Threads that wait for it.",
          [](const lock_state& of) { return of.waiters.size(); });
  of_each("lockflight_lock_longest_wait_seconds", gauge,
          "How long the first of those that wait has waited; 0: nobody waits.",
          [](const lock_state& of) { return of.longest_wait_s(); });
  of_each("lockflight_lock_held_seconds", gauge,
          "How long the first of those that hold has held; 0: nobody holds.",
          [](const lock_state& of) { return of.holders.empty() ? 0 : of.holders.front().seconds; });
  of_each("lockflight_lock_acquires_total", counter,
          "Exclusive acquires on this host since the lock was made.",
          [](const lock_state& of) { return of.lock.acquires; });
  of_each("lockflight_lock_repairs_total", counter,
          "How often the lock was repaired after a death or a stop since it was made.",
          [](const lock_state& of) { return of.lock.repairs; });
  of_each("lockflight_lock_owner_died", gauge,
          "1: a holder has died, and nobody has said since that the data is consistent.",
          [](const lock_state& of) { return of.lock.owner_died ? 1 : 0; });
  return made.text();
}

}  // namespace lockflight::cli
