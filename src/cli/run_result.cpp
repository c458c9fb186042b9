#include "cli/run_result.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/visible_text.hpp"

namespace lockflight::cli {
namespace {

using nlohmann::json;

/// The field that says that a value is a result, and of which version.
constexpr const char* version_field = "lockflight_result";
constexpr int version = 1;

/// A field of a value that anybody may have published; `otherwise` if it has another type.
template <class T>
T field(const json& of, const char* name, T otherwise) {
  const auto found = of.find(name);
  try {
    return found == of.end() ? otherwise : found->get<T>();
  } catch (const json::exception&) {
    return otherwise;
  }
}

}  // namespace

run_result result_of_start(std::string command) {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  return {.began = seconds_of_wall_clock(), .host = host.data(), .command = std::move(command)};
}

std::optional<run_result> result_in(const published_value& published) {
  if (published.token == 0) return std::nullopt;
  const json value = json::parse(published.bytes, nullptr, false);
  if (!value.is_object() || field(value, version_field, 0) != version) return std::nullopt;
  constexpr int largest_code = 255;
  const int code = field(value, "code", -1);
  if (code < 0 || code > largest_code) return std::nullopt;
  return run_result{.code = code,
                    .began = field(value, "began", wall_seconds{0}),
                    .ended = field(value, "ended", wall_seconds{0}),
                    .until = field(value, "until", wall_seconds{0}),
                    .host = field(value, "host", std::string()),
                    .command = field(value, "command", std::string()),
                    .token = published.token};
}

bool publish_result(named_handle& of, const run_result& what, limit patience) {
  json value{{version_field, version}, {"code", what.code},   {"began", what.began},
             {"ended", what.ended},    {"until", what.until}, {"host", what.host},
             {"command", what.command}};
  const std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  return named_control(of).publish(text, lasts::with_name, patience);
}

nlohmann::ordered_json json_of(const run_result& what) {
  return {{"code", what.code}, {"began", what.began},     {"ended", what.ended},
          {"host", what.host}, {"command", what.command}, {"token", what.token}};
}

std::string text_of(const run_result& what) {
  return fmt::format("{} ended with {} at {} on {}", visible(what.command), what.code,
                     utc_text(what.ended), visible(what.host));
}

}  // namespace lockflight::cli
