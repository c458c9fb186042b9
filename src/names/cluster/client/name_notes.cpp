#include "names/cluster/client/name_notes.hpp"

#include <algorithm>

#include "base/number.hpp"
#include "names/cluster/client/elsewhere.hpp"
#include "names/file/text.hpp"

namespace lockflight::detail {
namespace {

constexpr std::uint64_t between_questions_ns = 100'000'000;
// The fields of the last line of an answer.
constexpr std::size_t number_at = 1;
constexpr std::size_t why_at = 2;
constexpr std::size_t lasts_at = 3;
constexpr std::size_t value_at = 4;

/// The time for one question, within that for all.
time_limit for_one_question(const time_limit& until) {
  const std::uint64_t most = now_ns() + std::chrono::nanoseconds(note_answer_within).count();
  return {std::min(until.until_ns, most), until.is_interrupted};
}

}  // namespace

std::optional<std::uint64_t> name_notes::done_until(const time_limit& until) {
  return ask_done({std::string(done_question), name_}, "read", until);
}

bool name_notes::set_done_until(std::uint64_t number, std::uint64_t token,
                                const time_limit& until) {
  return ask_done(
             {std::string(done_question), name_, std::to_string(number), std::to_string(token)},
             "written", until)
      .has_value();
}

bool name_notes::set_units(std::uint64_t bits, const time_limit& until) {
  return ask_done({std::string(units_question), name_, std::to_string(bits)}, "written", until)
      .has_value();
}

std::optional<std::uint64_t> name_notes::ask_done(const fields& question, const char* action,
                                                  const time_limit& until) {
  const auto line = ask(question, action, why_at + 1, until);
  return line ? read_number<std::uint64_t>((*line)[number_at]) : std::nullopt;
}

std::optional<stored_value> name_notes::value(const time_limit& until) {
  const auto line = ask({std::string(value_question), name_}, "read", value_at + 1, until);
  if (!line) return std::nullopt;
  return stored_value{(*line)[value_at], read_number<std::uint64_t>((*line)[number_at]).value_or(0),
                      lasts_from((*line)[lasts_at]).value_or(lasts::with_name)};
}

bool name_notes::publish(const stored_value& what, bool is_withdrawn, const time_limit& until) {
  fields question{std::string(value_question), name_, std::to_string(what.token)};
  if (!is_withdrawn)
    question.insert(question.end(), {std::string(text_of(what.until)), what.bytes});
  return ask(question, "written", why_at + 1, until).has_value();
}

bool name_notes::observe(const time_limit& until) {
  return ask({std::string(observe_question), name_}, "read", why_at + 1, until).has_value();
}

std::optional<name_notes::fields> name_notes::ask(const fields& question, const char* action,
                                                  std::size_t least_fields,
                                                  const time_limit& until) {
  obstacle_ = "etcd has not answered yet";
  do {
    say_that_we_wait();
    auto lines = ask_agent(file_, question, for_one_question(until));
    if (!lines || lines->back().size() <= why_at) {
      if (!file_.has_agent()) obstacle_ = "the agent of this host does not run";
      continue;
    }
    fields& last = lines->back();
    const std::string& why = last[why_at];
    if (why.empty() && last.size() >= least_fields &&
        read_number<std::uint64_t>(last[number_at]).has_value())
      return obstacle_.clear(), std::move(last);
    if (lines->front().front() != again_answer)
      throw domain_error(domain_error::reason::system,
                         "lock " + shown(name_) + ": its note in etcd cannot be " + action + ": " +
                             (why.empty() ? "it is no number" : why));
    obstacle_ = "etcd does not answer: " + why;
  } while (until.sleep(between_questions_ns));
  return std::nullopt;
}

}  // namespace lockflight::detail
