#include "names/locks/users.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/agent_slots.hpp"
#include "base/clock.hpp"
#include "lockflight/lock/robust/record.hpp"
#include "names/cluster/client/words.hpp"
#include "names/life/hold_end.hpp"
#include "names/life/machine_clock.hpp"
#include "names/locks/semaphore_kind.hpp"
#include "names/locks/value.hpp"

namespace lockflight::detail {
namespace {

using lock::record;

/// The mode of a record whose participant holds or waits; nothing for another record.
std::optional<mode> mode_of(record of) {
  switch (of.get(record::phase)) {
    case record::holding:
      return mode::exclusive;
    case record::sharing:
      return mode::shared;
    case record::acquiring:
    case record::evicted:
      return mode::none;
    default:
      return std::nullopt;
  }
}

/// True for the agent of a cluster's domain, which waits and holds for users of other hosts. The
/// first slots are its own; of the others it has those that a burst of waits needs.
bool is_of_agent(const domain_file& file, int slot) {
  if (!file.is_of_cluster()) return false;
  const int own = slots_of_agent(static_cast<int>(file.header().slots));
  if (slot < own) return true;
  const auto pid_of = [&](int of) { return file.slot(of).pid.load(std::memory_order_relaxed); };
  for (int its = 0; its < own; ++its)
    if (file.slot(its).state() == slot_state::living && pid_of(its) == pid_of(slot) &&
        has_foreign_pid(file, its) == has_foreign_pid(file, slot))
      return true;
  return false;
}

/// Calls `visit(slot, number of the record, record, its mode)` for each use of a lock.
template <class Visit>
void for_each_use(const domain_file& file, Visit visit) {
  for_each_slot(file, [&](int slot) {
    if (file.slot(slot).state() == slot_state::free || is_idle(file, slot)) return;
    for (std::uint32_t k = 0; k < records; ++k) {
      const auto of =
          record::from(file.slot(slot).words[first_record + k].load(std::memory_order_acquire));
      if (const auto held = mode_of(of)) visit(slot, k, of, *held);
    }
  });
}

/// Adds what the page says about the hold of that record, unless that is over.
void describe_hold(const domain_slot_page& s, int k, record of, std::uint64_t now,
                   lock_user& user) {
  const std::uint64_t number = number_of_hold(s, user.slot, k);
  // (!) The number may be that of a later hold, of another lock. A thread that holds changes the
  // record first and then the moment of which the number is made: so the number is that of this
  // record, or of an earlier hold, if the record is read between two equal ones.
  const auto again = record::from(
      s.words[first_record + static_cast<unsigned>(k)].load(std::memory_order_acquire));
  if (again != of || number_of_hold(s, user.slot, k) != number) return;
  user.hold = number;
  const hold_end end = end_of(s, name_of_hold(s, k));
  if (end.why != end_reason::none)
    user.ending = {std::chrono::nanoseconds(end.at_ns - std::min(now, end.at_ns)), end.why};
  user.kept_token = kept_token(s);
  user.note = note_of(s);
}

/// The priority of a candidate for the lock of that line; 0 also if it is none. That of an earlier
/// participant in its slot is over.
int priority_of(const domain_slot_page& s, std::uint32_t line) {
  // Acquire: the line is there before the priority.
  const std::uint64_t its = s.priority.load(std::memory_order_acquire);
  const bool is_its = its >> 32 == s.life_now().incarnation &&
                      s.candidate_for.load(std::memory_order_relaxed) == line;
  return is_its ? static_cast<int>(its & 0xffff'ffff) : 0;
}

lock_user user_of(const domain_file& file, int slot) {
  const domain_slot_page& s = file.slot(slot);
  return {.slot = slot,
          .pid = s.pid.load(std::memory_order_relaxed),
          .guarded_pid = thread_identity::from(s.guarded.load(std::memory_order_relaxed), 0).pid,
          .dead = s.state() == slot_state::dead,
          .stopped = is_stopped(s),
          .has_foreign_pid = has_foreign_pid(file, slot),
          .command = command_of(s)};
}

/// Adds a candidate that is not in the queue at this moment, since it makes way for another one: it
/// waits all the same.
void add_candidate(const domain_file& file, int slot, std::multimap<std::uint32_t, lock_user>& to) {
  const domain_slot_page& s = file.slot(slot);
  if (s.state() != slot_state::living) return;
  const std::uint32_t line = s.candidate_for.load(std::memory_order_relaxed);
  const int priority = priority_of(s, line);
  if (priority == 0) return;
  const auto [first, last] = to.equal_range(line);
  if (std::any_of(first, last, [slot](const auto& each) { return each.second.slot == slot; }))
    return;
  to.emplace(line, user_of(file, slot))->second.priority = priority;
}

/// The users of all locks, by the first lines of the locks.
std::multimap<std::uint32_t, lock_user> all_users(const domain_file& file) {
  std::multimap<std::uint32_t, lock_user> found;
  const std::int64_t shift_ns = clock_shift_ns();
  const std::uint64_t now = now_ns();
  const std::uint64_t now_of_ends = boot_time_ns();
  for_each_use(file, [&](int slot, std::uint32_t k, record of, mode held) {
    if (is_of_agent(file, slot)) return;
    const domain_slot_page& s = file.slot(slot);
    const bool dead = s.state() == slot_state::dead;
    if (held == mode::none && dead) return;  // nothing is left of it but a slot that a sweep frees
    const auto& begun = held == mode::none ? s.waits_since : s.holds_since[k];
    const std::uint64_t since = from_machine(begun.load(std::memory_order_relaxed), shift_ns);
    const auto line = static_cast<std::uint32_t>(of.get(record::lock));
    lock_user& user = found.emplace(line, user_of(file, slot))->second;
    user.held = held;
    // 0 says that it is not known; and the clock may be read before the word is written.
    user.for_ns = since == 0 ? 0 : now - std::min(since, now);
    user.priority = priority_of(s, line);
    if (held != mode::none) describe_hold(s, static_cast<int>(k), of, now_of_ends, user);
  });
  for_each_slot(file, [&](int slot) {
    if (!is_of_agent(file, slot)) add_candidate(file, slot, found);
  });
  return found;
}

/// In a cluster's domain a token is the name's, and a client that waits for other hosts has the
/// lock of its own host meanwhile.
void show_among_hosts(const domain_file& file, std::uint32_t line, domain_lock& one) {
  const words_in_file words(file, line);
  const cluster::state is = words.get_state();
  const cluster::ownership owned = words.get_ownership();
  one.token = detail::number_of(is.last);
  one.owner_died = is.died;
  const bool suffices = owned.incarnation == words.incarnation() && owned.owned >= owned.wanted &&
                        owned.owned != mode::none;
  if (suffices) return;
  for (lock_user& each : one.users) each.held = mode::none;
  std::erase_if(one.users, [](const lock_user& each) { return each.dead; });
}

/// True if the participant has taken the unit in its present wait: it collects. Both begin by a
/// clock with ticks.
bool collects(const lock_user& waiter, const lock_user& has) {
  constexpr std::uint64_t ticks_ns = 10'000'000;
  return has.for_ns <= waiter.for_ns + ticks_ns;
}

/// Adds the users of a unit to those of its semaphore. The users of the queue wait, and the holders
/// of units hold: one user, whatever the number of its units. A participant that collects units, or
/// is about to take one or has just taken it, has the queue as well.
void add_unit(int unit, const domain_lock& its, domain_lock& to) {
  for (lock_user user : its.users) {
    if (user.waits()) continue;
    const auto same =
        std::ranges::find(to.users, user.slot, [](const lock_user& each) { return each.slot; });
    if (same != to.users.end() && (!same->waits() || collects(*same, user))) {
      same->units_held.push_back(unit);
      if (!same->waits()) same->for_ns = std::min(same->for_ns, user.for_ns);
      continue;
    }
    if (same != to.users.end()) to.users.erase(same);
    user.unit = unit;
    user.units_held = {unit};
    to.users.push_back(user);
  }
  to.token = std::max(to.token, its.token);
  to.acquires += its.acquires;
  to.repairs += its.repairs;
  to.owner_died = to.owner_died || its.owner_died;
}

/// Changes the directory's entry of the queue to the semaphore that users know.
void show_as_semaphore(domain_lock& queue) {
  queue.unit_numbers = units_of_semaphore(queue.parameters).numbers();
  queue.units = static_cast<int>(queue.unit_numbers.size());
  queue.token = 0;
  queue.acquires = 0;
  queue.owner_died = false;
  for (lock_user& each : queue.users) each.held = mode::none;
  std::erase_if(queue.users, [](const lock_user& each) { return each.dead; });
}

std::vector<domain_lock> without_units(std::vector<domain_lock> all) {
  std::ranges::sort(all, {}, &domain_lock::name);
  std::vector<domain_lock> seen;
  std::map<std::string, std::size_t, std::less<>> semaphores;
  for (domain_lock& each : all)
    if (each.kind == semaphore_kind().about.name) show_as_semaphore(each);
  for (domain_lock& each : all) {
    const auto name = user_name_of(each.name);
    const auto of = semaphores.find(name.name);
    if (name.unit >= 0 && of != semaphores.end()) {
      add_unit(name.unit, each, seen[of->second]);
    } else if (name.unit < 0) {
      if (each.units > 0) semaphores.emplace(each.name, seen.size());
      seen.push_back(std::move(each));
    }
  }
  for (domain_lock& each : seen) {
    for (lock_user& user : each.users) {
      std::ranges::sort(user.units_held);
      if (!user.waits() && !user.units_held.empty()) user.unit = user.units_held.front();
    }
    sort_users(each.users);
  }
  return seen;
}

/// Adds the locks of the semaphore's units.
void add_units_of(const domain_file& file, std::string_view name, const found_lock& semaphore,
                  named_locks_found& to) {
  // A unit that was left out later may still be held.
  const unit_set units = semaphore.has_set_units ? unit_set::first(most_units)
                                                 : units_of_semaphore(semaphore.parameters);
  for (int unit = units.at_or_after(0); unit >= 0; unit = units.at_or_after(unit + 1))
    if (const auto its = find_lock(file, name_of_unit(name, unit)))
      to.emplace_back(name_of_unit(name, unit), *its);
}

}  // namespace

void sort_users(std::vector<lock_user>& users) {
  const auto rank = [](const lock_user& of) { return std::tuple(of.waits(), ~of.for_ns); };
  std::ranges::stable_sort(users, {}, rank);
}

std::vector<domain_lock> locks_as_users_see(const domain_file& file,
                                            const named_locks_found& found) {
  const auto users = all_users(file);
  std::vector<domain_lock> all;
  for (const auto& [name, at] : found) {
    if (at.kind == &value_kind()) continue;
    const lock_numbers numbers = numbers_of(file, at);
    domain_lock one{.name = name,
                    .kind = std::string(at.kind->about.name),
                    .parameters = without_defaults(*at.kind, at.parameters),
                    .token = numbers.token,
                    .acquires = numbers.acquires,
                    .repairs = numbers.repairs,
                    .owner_died = numbers.owner_died,
                    .users = {}};
    one.has_set_units = at.has_set_units;
    const auto [first, last] = users.equal_range(at.line);
    for (auto each = first; each != last; ++each) one.users.push_back(each->second);
    if (file.is_of_cluster()) show_among_hosts(file, at.line, one);
    all.push_back(std::move(one));
  }
  return without_units(std::move(all));
}

std::vector<lock_user> users_here(domain_file& file, std::string_view name) {
  named_locks_found of_name;
  if (const auto found = find_lock(file, name)) {
    of_name.emplace_back(name, *found);
    if (is_semaphore(*found->kind)) add_units_of(file, name, *found, of_name);
  }
  examine_all(file);
  auto locks = locks_as_users_see(file, of_name);
  return locks.empty() ? std::vector<lock_user>{} : std::move(locks.front().users);
}

bool is_held_alone(domain_file& file, const found_lock& of) {
  bool is = false;
  for_each_use(file, [&](int slot, std::uint32_t, record its, mode held) {
    if (its.get(record::lock) != of.line || held != mode::exclusive) return;
    is = is || !examine(file, slot, thoroughness::quick);
  });
  return is;
}

bool is_awaited(const domain_file& file, const found_lock& of) {
  bool is = false;
  for_each_use(file, [&](int slot, std::uint32_t, record its, mode held) {
    if (its.get(record::lock) != of.line || held != mode::none) return;
    is = is || (file.slot(slot).state() == slot_state::living && !is_of_agent(file, slot));
  });
  return is;
}

int slot_of_user(const domain_file& file, const found_lock& of) {
  int found = -1;
  for_each_use(file, [&](int slot, std::uint32_t, record its, mode) {
    if (its.get(record::lock) == of.line && file.slot(slot).state() == slot_state::living)
      found = slot;
  });
  return found;
}

}  // namespace lockflight::detail
