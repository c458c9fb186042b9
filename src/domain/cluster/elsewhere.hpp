// The uses of a domain's locks on the other hosts of a cluster: the agent of this host asks the
// others. The answer is for display, so it may be a moment old.
//
// A client asks by a line of text to a socket beside the domain file, and gets lines back. Fields
// are separated by tabs; tabs, new lines and backslashes in names are escaped.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "domain/store/file.hpp"
#include "lockflight/domain.hpp"

namespace lockflight::detail {

/// The path of the socket at which the agent of a domain file answers questions.
[[nodiscard]] std::string question_path_of(const domain_file& file);

/// Sends the fields as one line and reads lines until the answer is complete. Nothing if the agent
/// does not run, or does not answer in that time.
[[nodiscard]] std::optional<std::vector<std::vector<std::string>>> ask_agent(
    const domain_file& file, const std::vector<std::string>& question,
    std::chrono::milliseconds at_most);

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

/// The question until when the work of a name is done (named_handle::done_until). It has the name
/// to ask for the note, and the name, the seconds and the holder's token to write the note. The
/// answer's last line has the seconds, and why there are none.
inline constexpr std::string_view done_question = "done";

/// The question for the agent's state, which is JSON in the second field of the first line.
inline constexpr std::string_view status_question = "status";

/// Ends the doubt about names whose hosts were lost. The answer comes before that is done.
inline constexpr std::string_view end_doubt_question = "consistent";

/// The question for these lines. An empty name means all locks that are in use.
inline constexpr std::string_view uses_question = "uses";
/// The first field of the last line, which names the hosts that did not answer.
inline constexpr std::string_view end_of_answer = "end";

}  // namespace lockflight::detail
