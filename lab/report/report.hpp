// The report: one self-contained HTML page out of a bench JSON document.
//
// The page opens offline. The charting library, our script and style sheet and the data itself
// are inside it, and its content security policy forbids every request.
#pragma once

#include <nlohmann/json.hpp>

#include <stdexcept>
#include <string>
#include <vector>

namespace lockflight::report {

/// The input cannot be used. what() is one line that names the place, the value found there and
/// what is accepted.
class bad_input : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Reads a JSON file. Throws bad_input when it cannot be read, or is no JSON (with line and
/// column).
nlohmann::json parse_file(const std::string& path);

/// Throws bad_input unless `bench` follows the bench JSON: every named field of a run is there
/// and has the right type. Other fields are allowed.
void validate(const nlohmann::json& bench);

/// False for a run of a workload without a lock, such as `primitive`.
[[nodiscard]] inline bool has_lock(const nlohmann::json& run) { return run.at("kind") != "none"; }

/// For each run that lost ranks, a sentence that names them.
std::vector<std::string> losses_in(const nlohmann::json& bench);

/// Of runs over several hosts whose witness saw each host alone, that this is so; else empty.
[[nodiscard]] std::string unwitnessed_in(const nlohmann::json& bench);

/// "ranks 0 and 1, 2 cores", of one of a document's "hosts".
[[nodiscard]] std::string host_in_words(const nlohmann::json& host);

/// The page for a bench document; it highlights the project's own locks. Validates the document
/// first, and throws as validate() does.
std::string render_html(const nlohmann::json& bench, const std::vector<std::string>& own_locks);

}  // namespace lockflight::report
