// The uses of a domain's locks on the other hosts of a cluster: the agent of this host asks the
// others. The answer is for display, so it may be a moment old.
//
// A client asks by a line of text to a socket beside the domain file, and gets lines back. Fields
// are separated by tabs; tabs, new lines and backslashes in names are escaped.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "lockflight/domain.hpp"
#include "names/file/file.hpp"
#include "names/life/time_limit.hpp"

namespace lockflight::detail {

/// The path of the socket at which the agent of a domain file answers questions.
[[nodiscard]] std::string question_path_of(const domain_file& file);

/// Sends the fields as one line and reads lines until the agent has said all. Nothing if the agent
/// does not run, or does not answer in that time. Throws domain_error (interrupted).
[[nodiscard]] std::optional<std::vector<std::vector<std::string>>> ask_agent(
    const domain_file& file, const std::vector<std::string>& question, const time_limit& until);
[[nodiscard]] inline auto ask_agent(const domain_file& file,
                                    const std::vector<std::string>& question,
                                    std::chrono::nanoseconds at_most) {
  return ask_agent(file, question,
                   time_limit{now_ns() + static_cast<std::uint64_t>(at_most.count())});
}

/// A line with its end.
[[nodiscard]] std::string line_of(const std::vector<std::string>& fields);
/// The fields of whole lines.
[[nodiscard]] std::vector<std::vector<std::string>> fields_of(std::string_view lines);

// ---- uses of locks as lines ----

/// A line for each user of each of these locks.
[[nodiscard]] std::string lines_of(const std::vector<domain_lock>& locks);
/// The locks of these lines, with their names and their users. Other lines are left out: the other
/// host may have a later version.
[[nodiscard]] std::vector<domain_lock> locks_from(
    const std::vector<std::vector<std::string>>& lines);

/// The question until when the work of a name is done (name_notes.hpp). With the name alone it
/// reads the note; with the name, a number and the holder's token it writes the note. The last line
/// of the answer has the number that was noted before, and the reason if the question failed. A
/// line `again` before that line says that the reason may pass, such as an etcd that does not
/// answer.
inline constexpr std::string_view done_question = "done";
/// The question about the value of a name. With the name alone it reads the value. With a token it
/// withdraws the value, and with a text of lasts and the bytes as well, it publishes them. The last
/// line of the answer has the token, the reason if the question failed, the lifetime and the bytes.
inline constexpr std::string_view value_question = "value";
/// Asks the agent to keep the value of a name in the domain file of its host from now on. The last
/// line of the answer is as that of value_question.
inline constexpr std::string_view observe_question = "observe";
inline constexpr std::string_view again_answer = "again";
/// The question that changes the units in a semaphore's note, with the name and the number. The
/// answers are those of `done_question`. A holder's note does not replace units that were set.
inline constexpr std::string_view units_question = "units";
/// The bit of a note that says that an operator has set the units.
inline constexpr std::uint64_t set_units_mark = std::uint64_t{1} << 62;
/// How long a client waits for the answer to one question about a note. The agent drops a question
/// that has waited for longer, since no client waits for it any more.
inline constexpr std::chrono::milliseconds note_answer_within{5'000};

/// The question for the agent's state, which is JSON in the second field of the first line.
inline constexpr std::string_view status_question = "status";

/// Ends the doubt about names whose hosts were lost. The answer comes before that is done.
inline constexpr std::string_view end_doubt_question = "consistent";

/// The question for these lines, with a name, or with an empty one for all locks that are in use.
/// There may be a third field: the milliseconds after which the agent answers with what it knows by
/// then.
inline constexpr std::string_view uses_question = "uses";
/// The first field of the last line, which names the hosts that did not answer.
inline constexpr std::string_view end_of_answer = "end";

}  // namespace lockflight::detail
