#include "agent/host/records.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <system_error>

namespace lockflight::cluster {
namespace {

using nlohmann::json;

[[noreturn]] void fail(const std::string& path, int error) {
  throw std::runtime_error(path + ": " + std::generic_category().message(error));
}

/// An array: the name, and unless there is no record, epoch, token, whether a holder died, and the
/// exclusive owner. A name is any bytes, so it is written as numbers.
std::string line_of(const std::string& name, const record* what) {
  // By hand, since a line is written whenever a name changes its owner.
  std::string line = "[[";
  const auto to = std::back_inserter(line);
  for (std::size_t i = 0; i < name.size(); ++i)
    fmt::format_to(to, "{}{}", i == 0 ? "" : ",", static_cast<unsigned char>(name[i]));
  line += ']';
  if (what != nullptr) {
    fmt::format_to(to, ",{},{},{},{}", what->epoch, what->last.epoch, what->last.counter,
                   what->died ? 1 : 0);
    if (what->exclusive)
      fmt::format_to(to, ",{},{}", what->exclusive->id, what->exclusive->incarnation);
  }
  return line += "]\n";
}

struct entry {
  std::string name;
  std::optional<record> what;
};

/// Throws what the parser throws.
entry entry_from(const std::string& text) {
  const json line = json::parse(text);
  const auto bytes = line.at(0).get<std::vector<std::uint8_t>>();
  entry read{std::string(bytes.begin(), bytes.end()), std::nullopt};
  if (line.size() == 1) return read;
  record what;
  line.at(1).get_to(what.epoch);
  line.at(2).get_to(what.last.epoch);
  line.at(3).get_to(what.last.counter);
  what.died = line.at(4).get<int>() != 0;
  if (line.size() > 5)
    what.exclusive = identity{line.at(5).get<member_id>(), line.at(6).get<incarnation_number>()};
  read.what = what;
  return read;
}

descriptor open_log(const std::string& path, int flags) {
  return descriptor(
      ::open(path.c_str(), flags | O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
}

}  // namespace

records::records(std::string path) : path_(std::move(path)) {
  file_ = open_log(path_, 0);
  if (!file_) fail(path_, errno);
  read();
}

void records::read() {
  std::ifstream in(path_, std::ios::binary);
  std::size_t good = 0;  // bytes of whole lines
  for (std::string line; std::getline(in, line) && !in.eof(); good += line.size() + 1, ++lines_) {
    try {
      entry each = entry_from(line);
      if (each.what)
        all_[each.name] = *each.what;
      else
        all_.erase(each.name);
    } catch (const json::exception&) {
      throw std::runtime_error(
          fmt::format("{}: line {} is no record of a name (its agent alone may write the file; "
                      "remove the domain on this host, and the others go on without it)",
                      path_, lines_ + 1));
    }
  }
  // What the last agent has begun to write.
  if (ftruncate(file_.get(), static_cast<off_t>(good)) != 0) fail(path_, errno);
}

std::optional<record> records::find(const std::string& name) const {
  const auto at = all_.find(name);
  return at == all_.end() ? std::nullopt : std::optional(at->second);
}

std::vector<std::string> records::names() const {
  std::vector<std::string> found;
  found.reserve(all_.size());
  for (const auto& [name, each] : all_) found.push_back(name);
  return found;
}

void records::store(const std::string& name, const record& what) {
  if (const auto before = find(name); before == what) return;
  append(line_of(name, &what));
  all_[name] = what;
  shorten_if_long();
}

void records::erase(const std::string& name) {
  if (all_.erase(name) == 0) return;
  append(line_of(name, nullptr));
  shorten_if_long();
}

void records::append(const std::string& line) {
  for (std::size_t done = 0; done < line.size();) {
    const ssize_t now = ::write(file_.get(), line.data() + done, line.size() - done);
    if (now < 0 && errno != EINTR) fail(path_, errno);
    if (now > 0) done += static_cast<std::size_t>(now);
  }
  ++lines_;
}

void records::shorten_if_long() {
  constexpr std::size_t some = 10'000;
  if (lines_ < some || lines_ < 4 * all_.size()) return;
  const std::string shorter = path_ + "~";
  ::unlink(shorter.c_str());
  descriptor before = std::move(file_);
  file_ = open_log(shorter, O_EXCL);
  if (!file_) fail(shorter, errno);
  lines_ = 0;
  for (const auto& [name, each] : all_) append(line_of(name, &each));
  if (::rename(shorter.c_str(), path_.c_str()) != 0) fail(path_, errno);
}

}  // namespace lockflight::cluster
