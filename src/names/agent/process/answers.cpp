#include "names/agent/process/answers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/number.hpp"
#include "names/agent/host/uses.hpp"
#include "names/cluster/client/elsewhere.hpp"
#include "names/cluster/client/order_lines.hpp"

namespace lockflight::cluster {
namespace {

constexpr auto peers_answer_within = std::chrono::milliseconds(1'000);

/// The answer of an agent that does not know the lock's users. Earlier agents ignore it as a line
/// without a use.
constexpr std::string_view failed = "failed";
/// The answer to a question that an agent does not understand.
const std::string unknown = "unknown";
constexpr unsigned private_mode = 0600;
constexpr std::size_t uses_most = 2'000;      // of a host, in an answer
constexpr std::size_t told_most = 512 << 10;  // bytes, as links have it

}  // namespace

answers::answers(asio::io_context& io, answer_sources from)
    : io_(io),
      from_(std::move(from)),
      questions_(io, from_.file,
                 [this](const std::vector<std::string>& question, questions::reply to) {
                   answer(question, std::move(to));
                 }) {}

void answers::answer(const std::vector<std::string>& question, questions::reply to) {
  if (question[0] == detail::status_question)
    return to(detail::line_of({question[0], from_.status()}) +
              detail::line_of({std::string(detail::end_of_answer)}));
  if (question[0] == detail::end_doubt_question) {
    from_.log.info("consistent", "somebody says that names of lost hosts are not half done");
    from_.end_doubt();
    return to(detail::line_of({std::string(detail::end_of_answer)}));
  }
  if (from_.kept.answer(question, to)) return;
  const bool is_about_uses =
      (question.size() == 2 || question.size() == 3) && question[0] == detail::uses_question;
  if (!is_about_uses && !detail::order_from(question)) return to(detail::line_of({unknown}));
  gather(question, std::move(to));
}

/// Asks the other hosts, which have as much time as a question about uses says.
void answers::gather(std::vector<std::string> question, questions::reply to) {
  constexpr std::size_t with_time = 3;
  std::optional<std::uint32_t> ms;
  if (question[0] == detail::uses_question && question.size() == with_time) {
    ms = read_number<std::uint32_t>(question[2]);
    question.pop_back();
  }
  const std::uint64_t number = ++asked_;
  gathering& here = gatherings_[number];
  here.to = std::move(to);
  if (!from_.members) here.silent.emplace_back(domain_elsewhere::every_host);
  for (const peer_status& each : from_.others.status())
    if (from_.others.ask(each.who.id, number, detail::line_of(question)))
      here.awaited.insert(each.who.id);
    else
      here.silent.push_back(from_.members.host_of(each.who.id));
  here.timer.emplace(io_, ms ? std::min(std::chrono::milliseconds(*ms), peers_answer_within)
                             : peers_answer_within);
  here.timer->async_wait([this, number](const asio::error_code& error) {
    if (!error) finish_gathering(number);
  });
  if (here.awaited.empty()) finish_gathering(number);
}

std::string answers::asked(const std::string& line) {
  const auto questions = detail::fields_of(line);
  const auto order = questions.empty() ? std::nullopt : detail::order_from(questions[0]);
  if (!order &&
      (questions.empty() || questions[0].size() != 2 || questions[0][0] != detail::uses_question))
    return detail::line_of({unknown});
  try {
    const domain here =
        domain::attach(from_.file.name(), from_.file.options().mode, from_.file.options().group);
    std::string lines =
        order ? give(here, *order)
              : detail::lines_of(uses_here(here, from_.host, questions[0][1], uses_most));
    if (lines.size() > told_most) lines.resize(lines.rfind('\n', told_most) + 1);
    return lines;
  } catch (const domain_error& e) {
    from_.log.warn("uses", e.what());
    return detail::line_of({std::string(failed)});
  }
}

/// Gives an order of another host's operator. In a domain of a group an agent kills nobody: any
/// member may write the domain's words, and so the number of the process that is to be killed.
std::string answers::give(const domain& here, const hold_order& order) {
  const bool kills = order.what == hold_order::kind::kills;
  std::vector<ordered_hold> holds;
  if (kills && from_.file.options().mode != private_mode) {
    for (lock_user& each : here.users_of(order.name, nullptr, std::chrono::milliseconds(0)))
      if (std::ranges::find(order.holds, each.hold) != order.holds.end())
        holds.push_back({std::move(each), ordered_hold::result::not_permitted});
  } else {
    holds = domain_operator(here).order_here(order);
  }
  for (ordered_hold& each : holds) {
    each.user.host = from_.host;
    from_.log.warn("order", order.by + (kills ? " kills a holder" : " ends a hold"),
                   {{"name", order.name},
                    {"pid", each.user.running_pid()},
                    {"command", each.user.command},
                    {"result", text_of(each.how)}});
  }
  return detail::lines_of(order.name, holds);
}

void answers::told(member_id by, std::uint64_t number, const std::string& lines) {
  const auto at = gatherings_.find(number);
  if (at == gatherings_.end() || at->second.awaited.erase(by) == 0) return;
  // An agent that could not look, as it has no descriptors left for example, or that is of a
  // version without such questions, counts as silent: somebody there may hold a lock.
  if (lines == detail::line_of({std::string(failed)}) || lines == detail::line_of({unknown}))
    at->second.silent.push_back(from_.members.host_of(by));
  else
    at->second.lines += lines;
  if (at->second.awaited.empty()) finish_gathering(number);
}

void answers::finish_gathering(std::uint64_t number) {
  const auto at = gatherings_.find(number);
  if (at == gatherings_.end()) return;
  gathering done = std::move(at->second);
  gatherings_.erase(at);
  std::vector<std::string> last{std::string(detail::end_of_answer)};
  last.insert(last.end(), done.silent.begin(), done.silent.end());
  for (const member_id each : done.awaited) last.push_back(from_.members.host_of(each));
  if (from_.is_cut_off()) last.emplace_back(domain_elsewhere::unknown_hosts);
  done.to(done.lines + detail::line_of(last));
}

}  // namespace lockflight::cluster
