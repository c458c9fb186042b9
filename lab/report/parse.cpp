// Reads a JSON file, with messages that say where it is damaged.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>
#include <system_error>

#include "base/whole_file.hpp"
#include "lab/report/report.hpp"

namespace lockflight::report {
namespace {

using nlohmann::json;

std::string read_whole(const std::string& path) {
  try {
    return whole_file(path);
  } catch (const std::system_error& e) {
    throw bad_input(
        fmt::format("{}: cannot be read: {} (accepted: a JSON file)", path, e.code().message()));
  }
}

/// The library's message without its prefix and without the text it quotes, which may be long
/// and is in the file anyway.
std::string reason(std::string_view what) {
  if (const auto at = what.find("syntax error"); at != std::string_view::npos) {
    what.remove_prefix(at);
  }
  std::string first_line(what.substr(0, what.find('\n')));
  const auto control = [](char c) { return static_cast<unsigned char>(c) < 0x20; };
  std::replace_if(first_line.begin(), first_line.end(), control, ' ');
  constexpr std::size_t longest = 160;
  if (first_line.size() > longest) first_line = first_line.substr(0, longest - 3) + "...";
  return first_line;
}

std::string describe(const std::string& path, const std::string& bytes,
                     const json::parse_error& e) {
  const std::size_t end = std::min(e.byte == 0 ? 0 : e.byte - 1, bytes.size());
  const std::string_view before(bytes.data(), end);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0, the first line
  return fmt::format("{}: line {}, column {}: {}", path, line, end - line_start + 1,
                     reason(e.what()));
}

}  // namespace

json parse_file(const std::string& path) {
  const std::string bytes = read_whole(path);
  if (bytes.find_first_not_of(" \t\r\n") == std::string::npos) {
    throw bad_input(fmt::format("{}: is empty; accepted: a JSON document", path));
  }
  try {
    return json::parse(bytes);
  } catch (const json::parse_error& e) {
    throw bad_input(describe(path, bytes, e));
  } catch (const json::exception& e) {  // a number out of range
    throw bad_input(fmt::format("{}: {}", path, reason(e.what())));
  }
}

}  // namespace lockflight::report
