#include "names/agent/process/journal.hpp"

#include <fmt/chrono.h>
#include <unistd.h>

#include <chrono>

#include "base/write_within.hpp"

namespace lockflight::cluster {
namespace {

/// A reader that is slow for a moment loses no lines. While it takes none, the agent does not wait
/// for it again and again: it would miss its deadline for lines that nobody reads.
constexpr std::chrono::milliseconds for_a_reader{20};
constexpr std::chrono::milliseconds at_once{0};

}  // namespace

std::string journal::line_of(const char* level, std::string_view event, const std::string& text,
                             const fields& more) const {
  const auto now =
      std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now());
  const auto ms = now.time_since_epoch().count() % 1000;
  fields line{{"time", fmt::format("{:%FT%T}.{:03}Z",
                                   fmt::gmtime(std::chrono::system_clock::to_time_t(now)), ms)},
              {"level", level},
              {"domain", domain_},
              {"event", event},
              {"text", text}};
  if (!more.empty()) line.update(more);
  return line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

// Each line is one write, so that lines of several processes do not mix. A reader that is gone, or
// stopped, or a full disk, must not end the agent or delay it.
void journal::write(const char* level, std::string_view event, const std::string& text,
                    const fields& more) const {
  std::string bytes = line_of(level, event, text, more);
  const auto within = lost_ > 0 ? at_once : for_a_reader;
  if (lost_ > 0)
    bytes.insert(0,
                 line_of("warning", "log", "lines of this log could not be written, and are lost",
                         {{"lines", lost_}}));
  // The end of a line that was written in part, so that the next one is a line of its own.
  if (is_cut_) bytes.insert(0, "\n");
  const std::size_t written = write_within(STDERR_FILENO, bytes, within);
  if (written == bytes.size()) {
    lost_ = 0;
    is_cut_ = false;
    return;
  }
  ++lost_;
  if (written > 0) is_cut_ = bytes[written - 1] != '\n';
}

}  // namespace lockflight::cluster
