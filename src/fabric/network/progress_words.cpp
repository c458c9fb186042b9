#include "fabric/network/progress_words.hpp"

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>

namespace lockflight::fabric::detail {

progress_by wanted_progress() {
  const char* const given = std::getenv("LOCKFLIGHT_PROGRESS");
  const std::string_view word = given != nullptr ? given : "calls";
  if (word == "calls") return progress_by::calls;
  if (word == "thread") return progress_by::thread;
  if (word == "auto") return progress_by::trial;
  throw std::invalid_argument("LOCKFLIGHT_PROGRESS '" + std::string(word) +
                              "' (accepted: calls, thread, auto)");
}

}  // namespace lockflight::fabric::detail
