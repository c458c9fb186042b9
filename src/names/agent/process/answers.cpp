#include "names/agent/process/answers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/number.hpp"
#include "names/agent/host/uses.hpp"
#include "names/cluster/client/elsewhere.hpp"
#include "names/locks/set_units.hpp"

namespace lockflight::cluster {
namespace {

constexpr auto peers_answer_within = std::chrono::milliseconds(1'000);
/// The note of a name: until when its work is done, and the token of the holder that wrote the
/// note.
struct work_note {
  std::uint64_t until = 0;
  std::uint64_t token = 0;
};

std::string line_of(const work_note& what) { return fmt::format("{} {}", what.until, what.token); }

/// The note of these two numbers, from etcd or from a client.
work_note note_of(std::string_view until, std::string_view token) {
  const auto end = read_number<std::uint64_t>(until);
  const auto writer = read_number<std::uint64_t>(token);
  if (!end || !writer)
    throw bad_entry(
        fmt::format("a note about work is \"{} {}\"; expected two numbers", until, token));
  return {*end, *writer};
}

/// The note that etcd has. There is none before the first work.
work_note note_from(const std::optional<etcd_note>& there) {
  if (!there) return {};
  const std::string_view text = there->text;
  const std::size_t blank = std::min(text.find(' '), text.size());
  return note_of(text.substr(0, blank), text.substr(std::min(blank + 1, text.size())));
}

struct work_answer {
  std::uint64_t until = 0;
  std::string why;  // why there is no answer; empty if there is one
  bool may_pass = false;
};

std::string key_of_note(const std::string& name) { return "done/" + name; }

bool are_set_units(const work_note& what) { return (what.until & detail::set_units_mark) != 0; }

/// The note that the question asks to write; nothing if it asks to read. An operator who sets units
/// leaves the token as it is, and a holder leaves such units as they are.
std::optional<work_note> wanted_note(const std::vector<std::string>& question,
                                     const work_note& noted) {
  constexpr std::size_t of_operator = 3;
  constexpr std::size_t of_holder = 4;
  if (question[0] == detail::units_question && question.size() == of_operator)
    return note_of(question[2], std::to_string(noted.token));
  if (question.size() != of_holder || are_set_units(noted)) return std::nullopt;
  return note_of(question[2], question[3]);
}

/// Reads the note of the question's name, and writes it if the question says so.
asio::awaitable<work_answer> ask_about_work(etcd_client& etcd,
                                            const std::vector<std::string>& question) {
  work_answer found;
  try {
    const std::string note = key_of_note(question[1]);
    const std::optional<etcd_note> there = co_await etcd.get(note);
    const auto noted = note_from(there);
    found.until = noted.until;
    const auto wanted = wanted_note(question, noted);
    if (!wanted) co_return found;
    if (wanted->token < noted.token) {
      found.why = "a later holder has noted it";
      co_return found;
    }
    const std::string text = line_of(*wanted);
    const revision before = there ? there->changed : 0;
    const auto written = are_set_units(*wanted) ? co_await etcd.put_if_and_tell(note, before, text)
                                                : co_await etcd.put_if(note, before, text);
    if (written) co_return found;
    found.why = "another holder notes it at this moment";
    found.may_pass = true;
  } catch (const etcd_error& e) {
    found.why = e.what();
    found.may_pass = e.may_pass();
  } catch (const std::exception& e) {
    found.why = e.what();
  }
  co_return found;
}

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
  const bool is_about_work = question.size() >= 2 && (question[0] == detail::done_question ||
                                                      question[0] == detail::units_question);
  if (is_about_work) return answer_about_work(question, std::move(to));
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

/// The note that the work of a name is done is in etcd, so that it survives all hosts. A question
/// that has waited for longer than its client does is dropped.
void answers::answer_about_work(const std::vector<std::string>& question, questions::reply to) {
  const auto begun = std::chrono::steady_clock::now();
  notes_.add([this, question, begun, to = std::move(to)]() -> asio::awaitable<void> {
    if (std::chrono::steady_clock::now() - begun > detail::done_answer_within) co_return;
    const work_answer found = co_await ask_about_work(from_.etcd, question);
    // Those who asked see the new units as soon as they have the answer.
    if (question[0] == detail::units_question) co_await learn_units_of(question[1]);
    to((found.may_pass ? detail::line_of({std::string(detail::again_answer)}) : "") +
       detail::line_of(
           {std::string(detail::end_of_answer), std::to_string(found.until), found.why}));
  });
}

void answers::learn_units(revision changes) {
  if (changes == units_learned_) return;
  units_learned_ = changes;
  for (const std::string& name : detail::semaphores_in(from_.file))
    notes_.add([this, name]() { return learn_units_of(name); });
}

asio::awaitable<void> answers::learn_units_of(std::string name) {
  try {
    const auto noted = note_from(co_await from_.etcd.get(key_of_note(name)));
    detail::learn_units(from_.file, name, noted.until);
  } catch (const std::exception& e) {
    units_learned_ = 0;
    from_.log.warn("units", e.what());
  }
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
