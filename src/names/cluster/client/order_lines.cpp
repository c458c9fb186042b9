#include "names/cluster/client/order_lines.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "base/number.hpp"
#include "names/cluster/client/elsewhere.hpp"

namespace lockflight {
namespace detail {
namespace {

using kind = hold_order::kind;
using result = ordered_hold::result;

constexpr std::string_view hold_line = "hold";
constexpr std::string_view ordered_line = "ordered";
constexpr std::uint64_t ns_of_ms = 1'000'000;

constexpr std::array kinds{std::pair{kind::ends, std::string_view("ends")},
                           std::pair{kind::kills, std::string_view("kills")},
                           std::pair{kind::releases, std::string_view("releases")}};
constexpr std::array results{std::pair{result::told, std::string_view("told")},
                             std::pair{result::killed, std::string_view("killed")},
                             std::pair{result::gone, std::string_view("gone")},
                             std::pair{result::not_permitted, std::string_view("not_permitted")},
                             std::pair{result::elsewhere, std::string_view("elsewhere")},
                             std::pair{result::other_token, std::string_view("other_token")},
                             std::pair{result::not_kept, std::string_view("not_kept")}};

template <class Rows, class Value>
std::string_view text_in(const Rows& rows, Value of) {
  return std::ranges::find(rows, of, &Rows::value_type::first)->second;
}
template <class Rows>
auto value_in(const Rows& rows, std::string_view text) {
  const auto at = std::ranges::find(rows, text, &Rows::value_type::second);
  return at == rows.end() ? std::nullopt : std::optional(at->first);
}

}  // namespace

std::vector<std::string> question_of(const hold_order& what) {
  std::vector<std::string> fields{std::string(order_question),
                                  std::string(text_in(kinds, what.what)), what.name,
                                  std::to_string(what.token), what.by};
  for (const std::uint64_t each : what.holds) fields.push_back(std::to_string(each));
  return fields;
}

std::optional<hold_order> order_from(const std::vector<std::string>& question) {
  constexpr std::size_t before_holds = 5;
  if (question.size() < before_holds || question[0] != order_question) return std::nullopt;
  const auto what = value_in(kinds, question[1]);
  const auto token = read_number<std::uint64_t>(question[3]);
  if (!what || !token || !is_lock_name(question[2])) return std::nullopt;
  hold_order made{.what = *what, .name = question[2], .token = *token, .by = question[4]};
  for (std::size_t i = before_holds; i < question.size(); ++i)
    if (const auto hold = read_number<std::uint64_t>(question[i])) made.holds.push_back(*hold);
  return made;
}

std::string line_of_hold(const lock_user& user) {
  if (user.hold == 0 && user.priority == 0) return "";
  const bool ends = user.ending.why != end_reason::none;
  return line_of({std::string(hold_line), std::to_string(user.hold),
                  std::to_string(static_cast<int>(user.ending.why)),
                  ends ? std::to_string(nanoseconds_of(user.ending.in) / ns_of_ms) : "",
                  std::to_string(user.kept_token), user.note, std::to_string(user.priority)});
}

void add_hold(const std::vector<std::string>& line, lock_user& to) {
  constexpr std::size_t fields = 6;
  if (line.size() < fields || line[0] != hold_line) return;
  to.hold = read_number<std::uint64_t>(line[1]).value_or(0);
  const int why = read_number<int>(line[2]).value_or(0);
  const auto ms = read_number<std::uint64_t>(line[3]);
  if (ms && why > 0 && why <= static_cast<int>(end_reason::released))
    to.ending = {std::chrono::milliseconds(std::min<std::uint64_t>(*ms, INT64_MAX / ns_of_ms)),
                 static_cast<end_reason>(why)};
  to.kept_token = read_number<std::uint64_t>(line[4]).value_or(0);
  to.note = line[5];
  if (line.size() > fields) to.priority = read_number<int>(line[fields]).value_or(0);
}

std::string lines_of(const std::string& lock, const std::vector<ordered_hold>& holds) {
  std::string lines;
  for (const ordered_hold& each : holds) {
    lines += lines_of({domain_lock{.name = lock, .users = {each.user}}});
    lines += line_of({std::string(ordered_line), std::string(text_of(each.how))});
  }
  return lines;
}

std::vector<ordered_hold> ordered_from(const std::vector<std::vector<std::string>>& lines) {
  std::vector<ordered_hold> all;
  std::vector<std::vector<std::string>> of_user;
  for (const auto& line : lines) {
    if (line[0] != ordered_line) {
      of_user.push_back(line);
      continue;
    }
    const auto how = line.size() == 2 ? value_in(results, line[1]) : std::nullopt;
    const auto locks = locks_from(std::exchange(of_user, {}));
    if (how && locks.size() == 1 && locks.front().users.size() == 1)
      all.push_back({locks.front().users.front(), *how});
  }
  return all;
}

}  // namespace detail

std::string_view text_of(ordered_hold::result how) { return detail::text_in(detail::results, how); }

}  // namespace lockflight
