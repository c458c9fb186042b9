#include "names/cluster/client/done_note.hpp"

#include <algorithm>

#include "base/number.hpp"
#include "names/cluster/client/elsewhere.hpp"
#include "names/file/text.hpp"

namespace lockflight::detail {
namespace {

constexpr std::uint64_t between_questions_ns = 100'000'000;

/// The time for one question, within that for all.
time_limit for_one_question(const time_limit& until) {
  const std::uint64_t most = now_ns() + std::chrono::nanoseconds(done_answer_within).count();
  return {std::min(until.until_ns, most), until.is_interrupted};
}

}  // namespace

std::optional<std::uint64_t> done_note::read(const time_limit& until) {
  return ask({std::string(done_question), name_}, "read", until);
}

bool done_note::write(std::uint64_t number, std::uint64_t token, const time_limit& until) {
  return ask({std::string(done_question), name_, std::to_string(number), std::to_string(token)},
             "written", until)
      .has_value();
}

bool done_note::set_units(std::uint64_t bits, const time_limit& until) {
  return ask({std::string(units_question), name_, std::to_string(bits)}, "written", until)
      .has_value();
}

std::optional<std::uint64_t> done_note::ask(const std::vector<std::string>& question,
                                            const char* action, const time_limit& until) {
  constexpr std::size_t fields = 3;
  obstacle_ = "etcd has not answered yet";
  do {
    say_that_we_wait();
    const auto lines = ask_agent(file_, question, for_one_question(until));
    if (!lines || lines->back().size() != fields) {
      if (!file_.has_agent()) obstacle_ = "the agent of this host does not run";
      continue;
    }
    const std::string& why = lines->back()[2];
    const auto number = read_number<std::uint64_t>(lines->back()[1]);
    if (why.empty() && number) return obstacle_.clear(), number;
    if (lines->front().front() != again_answer)
      throw domain_error(domain_error::reason::system,
                         "lock " + shown(name_) + ": its note in etcd cannot be " + action + ": " +
                             (why.empty() ? "it is no number" : why));
    obstacle_ = "etcd does not answer: " + why;
  } while (until.sleep(between_questions_ns));
  return std::nullopt;
}

}  // namespace lockflight::detail
