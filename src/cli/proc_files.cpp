#include "cli/proc_files.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>

#include "base/descriptor.hpp"
#include "base/number.hpp"

namespace lockflight::cli {

std::string text_of(const std::string& path) {
  const descriptor from(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  std::array<char, 4096> part;
  for (ssize_t got = 1; got > 0;) {
    got = from ? read(from.get(), part.data(), part.size()) : 0;
    if (got > 0) text.append(part.data(), static_cast<std::size_t>(got));
  }
  return text;
}

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
