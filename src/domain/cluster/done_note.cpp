#include "domain/cluster/done_note.hpp"

#include <chrono>
#include <vector>

#include "base/number.hpp"
#include "domain/cluster/elsewhere.hpp"
#include "domain/store/text.hpp"

namespace lockflight::detail {
namespace {

std::uint64_t as_agent_says(const domain_file& file, const std::vector<std::string>& question) {
  constexpr auto at_most = std::chrono::milliseconds(5'000);
  const auto lines = ask_agent(file, question, at_most);
  constexpr std::size_t fields = 3;
  const bool has_answered = lines && lines->back().size() == fields;
  const std::string why = has_answered ? lines->back()[2] : "the agent does not answer";
  const auto seconds = has_answered ? read_number<std::uint64_t>(lines->back()[1]) : std::nullopt;
  if (why.empty() && seconds) return *seconds;
  throw domain_error(domain_error::reason::system,
                     "lock " + shown(question[1]) + ": until when its work is done: " +
                         (why.empty() ? "the note in etcd is none" : why));
}

}  // namespace

std::uint64_t done_note_of_cluster(const domain_file& file, const std::string& name) {
  return as_agent_says(file, {std::string(done_question), name});
}
void note_done_in_cluster(const domain_file& file, const std::string& name, std::uint64_t seconds,
                          std::uint64_t token) {
  static_cast<void>(as_agent_says(
      file, {std::string(done_question), name, std::to_string(seconds), std::to_string(token)}));
}

}  // namespace lockflight::detail
