#include "agent/process/journal.hpp"

#include <fmt/chrono.h>
#include <unistd.h>

#include <chrono>

namespace lockflight::cluster {

// One write for each line, so that lines of several processes do not mix. A reader that is gone, or
// a full disk, must not end the agent.
void journal::write(const char* level, std::string_view event, const std::string& text,
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
  const std::string bytes =
      line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  static_cast<void>(!::write(STDERR_FILENO, bytes.data(), bytes.size()));
}

}  // namespace lockflight::cluster
