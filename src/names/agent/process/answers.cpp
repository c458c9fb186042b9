#include "names/agent/process/answers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/number.hpp"
#include "names/agent/host/uses.hpp"
#include "names/cluster/client/elsewhere.hpp"

namespace lockflight::cluster {
namespace {

constexpr auto peers_answer_within = std::chrono::milliseconds(1'000);

/// The answer of an agent that does not know the lock's users. Earlier agents ignore it as a line
/// without a use.
constexpr std::string_view failed = "failed";
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
  if (!is_about_uses) return to(detail::line_of({"unknown"}));
  gather_uses(question, std::move(to));
}

/// Asks the other hosts, which have as much time as the question says.
void answers::gather_uses(const std::vector<std::string>& question, questions::reply to) {
  constexpr std::size_t with_time = 3;
  const auto ms = question.size() == with_time ? read_number<std::uint32_t>(question[2])
                                               : std::optional<std::uint32_t>();
  const std::uint64_t number = ++asked_;
  gathering& here = gatherings_[number];
  here.to = std::move(to);
  if (!from_.members) here.silent.emplace_back(domain_elsewhere::every_host);
  for (const peer_status& each : from_.others.status())
    if (from_.others.ask(each.who.id, number, detail::line_of({question[0], question[1]})))
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
  if (questions.empty() || questions[0].size() != 2 || questions[0][0] != detail::uses_question)
    return detail::line_of({"unknown"});
  try {
    std::string lines = detail::lines_of(uses_here(
        domain::attach(from_.file.name(), from_.file.options().mode, from_.file.options().group),
        from_.host, questions[0][1], uses_most));
    if (lines.size() > told_most) lines.resize(lines.rfind('\n', told_most) + 1);
    return lines;
  } catch (const domain_error& e) {
    from_.log.warn("uses", e.what());
    return detail::line_of({std::string(failed)});
  }
}

void answers::told(member_id by, std::uint64_t number, const std::string& lines) {
  const auto at = gatherings_.find(number);
  if (at == gatherings_.end() || at->second.awaited.erase(by) == 0) return;
  // An agent that could not look, as it has no descriptors left for example, counts as silent:
  // somebody there may hold a lock.
  if (lines == detail::line_of({std::string(failed)}))
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
