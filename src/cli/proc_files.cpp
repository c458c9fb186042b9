#include "cli/proc_files.hpp"

#include <dirent.h>

#include <memory>
#include <system_error>

#include "base/number.hpp"
#include "base/whole_file.hpp"

namespace lockflight::cli {

std::string text_of(const std::string& path) {
  try {
    return whole_file(path);
  } catch (const std::system_error&) {
    return "";
  }
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
