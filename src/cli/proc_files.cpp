#include "cli/proc_files.hpp"

#include <dirent.h>

#include <algorithm>
#include <memory>

#include "base/number.hpp"

namespace lockflight::cli {

std::optional<std::string_view> value_of(std::string_view key, std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    if (line.starts_with(key)) return line.substr(key.size());
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return std::nullopt;
}

std::vector<int> numbers_in(const std::string& path) {
  std::vector<int> all;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(path.c_str()), closedir);
  if (!folder) return all;
  while (const dirent* const each = readdir(folder.get()))
    if (const auto number = read_number<int>(each->d_name)) all.push_back(*number);
  return all;
}

}  // namespace lockflight::cli
