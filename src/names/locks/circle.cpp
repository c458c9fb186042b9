// A participant is *stuck* if it waits for a participant that is stuck. Begin with all
// participants, and remove each that satisfies none of these rules, until none is removed. The
// remaining participants are stuck:
// - a waiter of a lock, a holder of which is stuck;
// - a waiter of a semaphore all units of which are held, all of them by participants that are
//   stuck. A waiter that collects units holds those that it has;
// - a holder that guards a process, a descendant of which is stuck: `lockflight run` releases when
//   its command has ended.
// Each stuck participant has a stuck successor, so a walk along successors ends in a circle.
#include "names/locks/circle.hpp"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "base/whole_file.hpp"

namespace lockflight::detail {
namespace {

/// A participant: of this host by its slot, of another one by its process.
using key = std::tuple<std::string, int, int>;

key key_of(const lock_user& user) { return {user.host, user.slot, user.slot < 0 ? user.pid : 0}; }

struct participant {
  const lock_user* user = nullptr;
  const lock_user* waits = nullptr;         ///< null: it does not wait
  const domain_lock* awaited = nullptr;     ///< the lock that it waits for
  int guards = 0;                           ///< a process; 0: none
  bool is_of_our_namespace = false;         ///< so that its processes can be found
  std::vector<const participant*> holders;  ///< of the lock that it waits for, without itself
  std::size_t units_in_use = 0;             ///< of the semaphore that it waits for
  std::vector<const participant*> below;    ///< waiters that descend from what it guards
};

class graph {
 public:
  graph(const std::vector<domain_lock>& locks, const std::function<int(int)>& parent_of) {
    for (const domain_lock& lock : locks)
      for (const lock_user& user : lock.users) add(lock, user);
    for (const domain_lock& lock : locks) connect(lock);
    connect_to_runs(parent_of);
    keep_the_stuck();
  }

  [[nodiscard]] std::vector<lock_circle> circles() const {
    std::vector<lock_circle> found;
    std::set<const participant*> seen;
    for (const auto& [name, first] : all_) {  // in the same order at each look
      if (!is_stuck(&first)) continue;
      std::vector<const participant*> path;
      const participant* at = &first;
      for (; seen.insert(at).second; at = successor_of(*at)) path.push_back(at);
      const auto begin = std::ranges::find(path, at);
      if (begin != path.end()) found.push_back(as_circle({begin, path.end()}));
    }
    return found;
  }

 private:
  void add(const domain_lock& lock, const lock_user& user) {
    if (user.dead) return;
    participant& one = all_[key_of(user)];
    one.user = &user;
    one.guards = user.host.empty() ? user.guarded_pid : 0;
    one.is_of_our_namespace = user.host.empty() && !user.has_foreign_pid;
    if (!user.waits()) return;
    one.waits = &user;
    one.awaited = &lock;
  }

  /// 1 for a holder of a lock; of a semaphore the number of its units that others can get. A unit
  /// that was left out is given to nobody any more.
  static std::size_t holds_of(const lock_user& user, const domain_lock& lock) {
    if (user.dead) return 0;
    if (user.units_held.empty()) return user.waits() ? 0 : 1;
    return static_cast<std::size_t>(std::ranges::count_if(user.units_held, [&](int unit) {
      return lock.unit_numbers.empty() || std::ranges::count(lock.unit_numbers, unit) > 0;
    }));
  }

  void connect(const domain_lock& lock) {
    if (std::ranges::none_of(lock.users, &lock_user::waits)) return;
    std::vector<const participant*> holders;
    std::size_t units = 0;
    for (const lock_user& user : lock.users) {
      const std::size_t held = holds_of(user, lock);
      if (held == 0) continue;
      holders.push_back(&all_[key_of(user)]);
      units += held;
    }
    for (auto& [name, each] : all_) {
      if (each.awaited != &lock) continue;
      each.holders = holders;
      std::erase(each.holders, &each);
      each.units_in_use = units;
    }
  }

  void connect_to_runs(const std::function<int(int)>& parent_of) {
    std::multimap<int, participant*> runs;  // by the process that each guards
    for (auto& [name, each] : all_)
      if (each.guards != 0 && each.is_of_our_namespace) runs.emplace(each.guards, &each);
    if (runs.empty()) return;
    constexpr int most_generations = 1000;
    for (auto& [name, each] : all_) {
      if (each.waits == nullptr || !each.is_of_our_namespace) continue;
      int pid = each.waits->pid;
      for (int i = 0; i < most_generations && pid > 1; ++i, pid = parent_of(pid)) {
        const auto [first, last] = runs.equal_range(pid);
        for (auto at = first; at != last; ++at)
          if (at->second != &each) at->second->below.push_back(&each);
      }
    }
  }

  [[nodiscard]] bool is_stuck(const participant* of) const { return stuck_.contains(of); }
  [[nodiscard]] bool stays(const participant& of) const {
    const auto is_one = [this](const participant* each) { return is_stuck(each); };
    if (of.waits == nullptr) return std::ranges::any_of(of.below, is_one);
    if (of.awaited->units == 0) return std::ranges::any_of(of.holders, is_one);
    return !of.holders.empty() && of.units_in_use >= static_cast<std::size_t>(of.awaited->units) &&
           std::ranges::all_of(of.holders, is_one);
  }
  void keep_the_stuck() {
    for (const auto& [name, each] : all_) stuck_.insert(&each);
    const auto goes = [this](const participant* each) { return !stays(*each); };
    while (std::erase_if(stuck_, goes) > 0) {
    }
  }
  [[nodiscard]] const participant* successor_of(const participant& of) const {
    const auto& among = of.waits == nullptr ? of.below : of.holders;
    return *std::ranges::find_if(among, [this](const auto* each) { return is_stuck(each); });
  }

  /// Runs whose commands wait are left out: their commands stand for them. A circle begins with the
  /// same member at each look.
  static lock_circle as_circle(std::vector<const participant*> members) {
    const auto waits = [](const participant* each) { return each->waits != nullptr; };
    std::ranges::rotate(members, std::ranges::find_if(members, waits) + 1);
    lock_circle made;
    const participant* before = members.back();   // the waiter before each
    const participant* holder = members.front();  // of what that one waits for
    for (const participant* each : members) {
      if (holder == nullptr) holder = each;
      if (!waits(each)) continue;
      made.push_back({*each->waits, before->awaited->name, each->awaited->name, *holder->user});
      before = each;
      holder = nullptr;
    }
    const auto by_key = [](const circle_member& each) { return key_of(each.user); };
    std::ranges::rotate(made, std::ranges::min_element(made, {}, by_key));
    return made;
  }

  std::map<key, participant> all_;
  std::set<const participant*> stuck_;
};

}  // namespace

std::vector<lock_circle> circles_among(const std::vector<domain_lock>& locks,
                                       const std::function<int(int)>& parent_of) {
  return graph(locks, parent_of).circles();
}

int parent_of_process(int pid) {
  const std::string text = text_if_readable("/proc/" + std::to_string(pid) + "/stat");
  // The command is in parentheses and may have any bytes; the state and the parent follow it.
  const std::size_t end = text.rfind(')');
  int parent = 0;
  char state = 0;
  if (end == std::string::npos ||
      std::sscanf(text.c_str() + end + 1, " %c %d", &state, &parent) != 2)
    return 0;
  return parent;
}

}  // namespace lockflight::detail
