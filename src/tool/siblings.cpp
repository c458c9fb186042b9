#include "tool/siblings.hpp"

#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>

namespace lockflight::tool {
namespace {

/// This program's own file; empty where /proc is not mounted.
std::string own_file() {
  std::array<char, PATH_MAX> path;
  const ssize_t bytes = readlink("/proc/self/exe", path.data(), path.size());
  return {path.data(), bytes > 0 ? static_cast<std::size_t>(bytes) : 0};
}

/// True if `place` is this program under another name. The program would become itself again and
/// again.
bool is_own_file(const std::string& place) {
  struct stat own {};
  struct stat its {};
  return stat("/proc/self/exe", &own) == 0 && stat(place.c_str(), &its) == 0 &&
         own.st_dev == its.st_dev && own.st_ino == its.st_ino;
}

/// "/usr/bin/" of "/usr/bin/lockflight".
std::string folder_of(const std::string& file) { return file.substr(0, file.rfind('/') + 1); }

/// For people.
std::string places_looked_at() {
  const std::string here = folder_of(own_file());
  if (here.empty()) return "on the PATH alone, since /proc is not mounted";
  return "in " + here + ", in " + here + LOCKFLIGHT_LIBEXEC + " and on the PATH";
}

void add_places_on_path(std::string_view name, std::vector<std::string>& to) {
  const char* const path = std::getenv("PATH");
  std::string_view rest = path == nullptr ? "" : path;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(':'), rest.size());
    const std::string_view folder = rest.substr(0, end);
    if (folder.starts_with('/')) to.push_back(std::string(folder) + "/" + std::string(name));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
}

}  // namespace

std::string own_suffix(std::string_view name) {
  const std::string file = own_file();
  const std::string own = file.substr(folder_of(file).size());
  return own.starts_with(std::string(name) + ".") ? own.substr(name.size()) : "";
}

sibling::sibling(std::string_view name) : name_(name) {
  if (const std::string here = folder_of(own_file()); !here.empty()) {
    places_.push_back(here + name_);
    places_.push_back(here + LOCKFLIGHT_LIBEXEC "/" + name_);
  }
  add_places_on_path(name_, places_);
}

sibling& sibling::first_at(std::string_view place) {
  if (const std::string here = folder_of(own_file()); !here.empty())
    places_.insert(places_.begin(), here + std::string(place));
  return *this;
}

std::string sibling::become(char* const* argv) const {
  std::string refused;
  for (const std::string& place : places_) {
    if (is_own_file(place)) continue;
    execv(place.c_str(), argv);
    if (errno != ENOENT && errno != ENOTDIR && refused.empty())
      refused = place + " cannot be run: " + std::strerror(errno);
  }
  return refused.empty() ? name_ + " is not there: it was looked for " + places_looked_at()
                         : refused;
}

bool sibling::run(const std::vector<std::string>& words) const {
  std::string name = name_;
  std::vector<std::string> own = words;
  std::vector<char*> argv{name.data()};
  for (std::string& word : own) argv.push_back(word.data());
  argv.push_back(nullptr);
  for (const std::string& place : places_) {
    pid_t child = 0;
    if (posix_spawn(&child, place.c_str(), nullptr, nullptr, argv.data(), environ) != 0) continue;
    int status = 0;
    while (waitpid(child, &status, 0) < 0)
      if (errno != EINTR) return false;
    return status == 0;
  }
  return false;
}

}  // namespace lockflight::tool
