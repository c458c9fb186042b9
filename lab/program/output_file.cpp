#include "lab/program/output_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "tool/usage.hpp"

namespace lockflight::lab {

using namespace tool;

namespace {

namespace fs = std::filesystem;

usage_error refuse_path(const std::string& argument, const std::string& path, const char* why) {
  return refuse(argument, path, fmt::format("a file that can be written: {}", why));
}

/// The mode of a new file: read and write for all, less the umask.
mode_t usual_mode() {
  const mode_t mask = umask(0);
  umask(mask);
  return 0666 & ~mask;
}

}  // namespace

output_file::output_file(const std::string& argument, const std::string& path)
    : argument_(argument), path_(path) {
  if (path.empty() || path == "-") throw refuse(argument, path, "the name of a file");
  struct stat found {};
  const bool exists = stat(path.c_str(), &found) == 0;
  if (exists && S_ISDIR(found.st_mode)) throw refuse_path(argument, path, "it is a directory");
  if (exists && access(path.c_str(), W_OK) != 0)
    throw refuse_path(argument, path, std::strerror(errno));
  if (exists && !S_ISREG(found.st_mode)) {  // a device or a pipe is written, not replaced
    temporary_ = target_ = path;
    fd_ = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  } else {
    std::error_code error;
    target_ = fs::is_symlink(path, error) ? fs::weakly_canonical(path, error).string() : path;
    const interruptions_held until_guarded;
    temporary_ = target_ + "." + std::string(6, 'X');  // which mkostemp replaces
    fd_ = mkostemp(temporary_.data(), O_CLOEXEC);
    if (fd_ >= 0) {
      guard_.emplace(temporary_);
      fchmod(fd_, exists ? found.st_mode & 07777 : usual_mode());
    }
  }
  if (fd_ < 0) throw refuse_path(argument, path, std::strerror(errno));
}

output_file::~output_file() {
  if (fd_ >= 0) close(fd_);
  if (guard_) unlink(temporary_.c_str());
}

void output_file::write_all(std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = write(fd_, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0)
      throw std::system_error(errno, std::generic_category(),
                              fmt::format("{} {} cannot be written", argument_, shown(path_)));
    content.remove_prefix(static_cast<std::size_t>(written));
  }
}

void output_file::commit(std::string_view content) {
  write_all(content);
  commit();
}

void output_file::commit() {
  const auto check = [&](bool done, const char* what) {
    if (!done)
      throw std::system_error(errno, std::generic_category(),
                              fmt::format("{} {} cannot be {}", argument_, shown(path_), what));
  };
  // This comes before the old file is gone: an error of writing may come as late as this. A device
  // or a pipe has no old content.
  if (guard_) check(fsync(fd_) == 0, "written");
  check(close(std::exchange(fd_, -1)) == 0, "written");
  if (!guard_) return;
  check(rename(temporary_.c_str(), target_.c_str()) == 0, "put in place");
  guard_.reset();
}

void refuse_same(const std::optional<output_file>& a, const char* name_of_a,
                 const std::optional<output_file>& b, const char* name_of_b) {
  if (a && b) refuse_same(*a, name_of_a, *b, name_of_b);
}

void refuse_same(const output_file& a, const char* name_of_a, const output_file& b,
                 const char* name_of_b) {
  if (fs::absolute(a.target()).lexically_normal() != fs::absolute(b.target()).lexically_normal())
    return;
  throw refuse(name_of_b, b.path(), fmt::format("another file than that of {}", name_of_a));
}

}  // namespace lockflight::lab
