#include "names/locks/orders.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "lockflight/lock/robust/record.hpp"
#include "names/cluster/client/elsewhere.hpp"
#include "names/cluster/client/order_lines.hpp"
#include "names/life/hold_end.hpp"
#include "names/life/kill_participant.hpp"
#include "names/life/slots.hpp"
#include "names/locks/semaphore_kind.hpp"
#include "names/locks/users.hpp"

namespace lockflight {
namespace detail {
namespace {

using result = ordered_hold::result;

/// A hold that is there now: the record and the incarnation of its participant.
struct present_hold {
  int record = -1;
  std::uint32_t incarnation = 0;
};

/// The first lines of the lock of that name, or of those units.
std::vector<std::uint32_t> lines_of(const domain_file& file, const std::string& name,
                                    const std::vector<int>& units) {
  std::vector<std::uint32_t> lines;
  if (const auto found = find_lock(file, name)) lines.push_back(found->line);
  for (const int unit : units)
    if (const auto found = find_lock(file, name_of_unit(name, unit))) lines.push_back(found->line);
  return lines;
}

/// The hold of that number, if it is there still. The incarnation is read first: what is done with
/// it later concerns that participant or nobody.
std::optional<present_hold> find_hold(const domain_file& file, const lock_user& user,
                                      const std::vector<std::uint32_t>& lines) {
  const domain_slot_page& s = file.slot(user.slot);
  const slot_life its = s.life_now();
  if (its.state != slot_state::living) return std::nullopt;
  for (int k = 0; k < static_cast<int>(records); ++k) {
    const auto of = lock::record::from(
        s.words[first_record + static_cast<unsigned>(k)].load(std::memory_order_acquire));
    // (!) A participant that has just taken another lock has the moment of its last hold still.
    const auto line = static_cast<std::uint32_t>(of.get(lock::record::lock));
    if (of.holds() && std::ranges::find(lines, line) != lines.end() &&
        number_of_hold(s, user.slot, k) == user.hold)
      return present_hold{k, its.incarnation};
  }
  return std::nullopt;
}

result tell(domain_file& file, const std::string& name_of_lock, const lock_user& user,
            end_reason why) {
  const auto at = find_hold(file, user, lines_of(file, name_of_lock, user.units_held));
  if (!at) return result::gone;
  domain_slot_page& s = file.slot(user.slot);
  // (!) The name is compared with the number once more: the participant may hold again by now.
  const hold_name name = name_of_hold(s, at->record);
  if (number_of_hold(s, user.slot, at->record) != user.hold) return result::gone;
  set_end(s, name, {boot_time_ns(), why});
  wake_participant(s);
  return result::told;
}

result kill(const domain_file& file, const std::string& name, const lock_user& user) {
  const auto at = find_hold(file, user, lines_of(file, name, user.units_held));
  if (!at) return result::gone;
  switch (kill_participant(file, user.slot, at->incarnation)) {
    case kill_result::sent:
      return result::killed;
    case kill_result::gone:
      return result::gone;
    case kill_result::not_permitted:
      return result::not_permitted;
    case kill_result::elsewhere:
      break;
  }
  return result::elsewhere;
}

result give(domain_file& file, const hold_order& what, const lock_user& user) {
  switch (what.what) {
    case hold_order::kind::ends:
      return tell(file, what.name, user, end_reason::broken);
    case hold_order::kind::kills:
      return kill(file, what.name, user);
    case hold_order::kind::releases:
      break;
  }
  if (user.kept_token == 0) return result::not_kept;
  if (user.kept_token != what.token) return result::other_token;
  return tell(file, what.name, user, end_reason::released);
}

}  // namespace

std::vector<ordered_hold> order_here(domain_file& file, const hold_order& what) {
  std::vector<ordered_hold> all;
  for (lock_user& user : users_here(file, what.name)) {
    if (user.waits() || user.dead || user.hold == 0) continue;  // 0: it has just released
    const bool is_for_all = what.holds.empty() && what.what != hold_order::kind::kills;
    const bool is_meant =
        is_for_all || std::ranges::find(what.holds, user.hold) != what.holds.end();
    if (!is_meant) continue;
    const result how = give(file, what, user);
    all.push_back({std::move(user), how});
  }
  if (std::ranges::any_of(all, [](const auto& each) { return each.how == result::told; }))
    file.tell_of_change();
  return all;
}

}  // namespace detail

std::vector<ordered_hold> domain_operator::order_here(const hold_order& what) const {
  in_.file_->check();
  return detail::order_here(*in_.file_, what);
}

std::vector<ordered_hold> domain_operator::order(const hold_order& what,
                                                 std::vector<std::string>* silent,
                                                 std::chrono::milliseconds at_most) const {
  std::vector<ordered_hold> all = order_here(what);
  if (!in_.is_of_cluster()) return all;
  const auto lines = detail::ask_agent(*in_.file_, detail::question_of(what), at_most);
  std::vector<std::string> none;
  if (silent == nullptr) silent = &none;
  if (!lines) {
    silent->emplace_back(domain_elsewhere::own_agent);
    return all;
  }
  silent->assign(lines->back().begin() + 1, lines->back().end());
  std::ranges::move(detail::ordered_from(*lines), std::back_inserter(all));
  return all;
}

}  // namespace lockflight
