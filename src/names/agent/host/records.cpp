#include "names/agent/host/records.hpp"

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

// A line is an array. Its first item is the name; a name is any bytes, so it is written as numbers.
// How many items follow says what the line is.
constexpr std::size_t no_record = 0;        // the name has no record
constexpr std::size_t no_witness_note = 1;  // a 0: it has no witness's note
constexpr std::size_t a_witness_note = 3;   // epoch, home
// Else it is a record: epoch, token, whether a holder died, and the exclusive owner if there is
// one.

/// By hand, since a line is written whenever a name changes its owner.
std::string name_of_line(const std::string& name) {
  std::string line = "[[";
  const auto to = std::back_inserter(line);
  for (std::size_t i = 0; i < name.size(); ++i)
    fmt::format_to(to, "{}{}", i == 0 ? "" : ",", static_cast<unsigned char>(name[i]));
  return line += ']';
}

std::string line_of(const std::string& name, const record& what) {
  std::string line = name_of_line(name);
  const auto to = std::back_inserter(line);
  fmt::format_to(to, ",{},{},{},{}", what.epoch, what.last.epoch, what.last.counter,
                 what.died ? 1 : 0);
  if (what.exclusive) fmt::format_to(to, ",{},{}", what.exclusive->id, what.exclusive->incarnation);
  return line += "]\n";
}

std::string line_of(const std::string& name, const witness_note& what) {
  return fmt::format("{},{},{},{}]\n", name_of_line(name), what.epoch, what.home.id,
                     what.home.incarnation);
}

identity identity_from(const json& line, std::size_t at) {
  return {line.at(at).get<member_id>(), line.at(at + 1).get<incarnation_number>()};
}

record record_from(const json& line) {
  record what;
  line.at(1).get_to(what.epoch);
  line.at(2).get_to(what.last.epoch);
  line.at(3).get_to(what.last.counter);
  what.died = line.at(4).get<int>() != 0;
  if (line.size() > 5) what.exclusive = identity_from(line, 5);
  return what;
}

template <class Value>
std::vector<std::string> keys_of(const std::map<std::string, Value>& of) {
  std::vector<std::string> keys;
  keys.reserve(of.size());
  for (const auto& [key, value] : of) keys.push_back(key);
  return keys;
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
      take(json::parse(line));
    } catch (const json::exception&) {
      throw std::runtime_error(fmt::format(
          "{}: line {} is neither a record nor a witness's note of a name (its agent alone may "
          "write the file; "
          "remove the domain on this host, and the others go on without it)",
          path_, lines_ + 1));
    }
  }
  // Removes a line that the last agent began to write and did not finish.
  if (ftruncate(file_.get(), static_cast<off_t>(good)) != 0) fail(path_, errno);
}

/// Throws what the parser throws.
void records::take(const json& line) {
  const auto bytes = line.at(0).get<std::vector<std::uint8_t>>();
  const std::string name(bytes.begin(), bytes.end());
  switch (line.size() - 1) {
    case no_record:
      all_.erase(name);
      break;
    case no_witness_note:
      witness_notes_.erase(name);
      break;
    case a_witness_note:
      witness_notes_[name] = {line.at(1).get<epoch_number>(), identity_from(line, 2)};
      break;
    default:
      all_[name] = record_from(line);
  }
}

std::optional<record> records::find(const std::string& name) const {
  const auto at = all_.find(name);
  return at == all_.end() ? std::nullopt : std::optional(at->second);
}

std::vector<std::string> records::names() const { return keys_of(all_); }

void records::store(const std::string& name, const record& what) {
  if (const auto before = find(name); before == what) return;
  append(line_of(name, what));
  all_[name] = what;
  shorten_if_long();
}

void records::erase(const std::string& name) {
  if (all_.erase(name) == 0) return;
  append(name_of_line(name) + "]\n");
  shorten_if_long();
}

std::optional<witness_note> records::find_witness_note(const std::string& name) const {
  const auto at = witness_notes_.find(name);
  return at == witness_notes_.end() ? std::nullopt : std::optional(at->second);
}

std::vector<std::string> records::witnessed_names() const { return keys_of(witness_notes_); }

void records::store_witness_note(const std::string& name, const witness_note& what) {
  if (const auto before = find_witness_note(name); before == what) return;
  append(line_of(name, what));
  witness_notes_[name] = what;
  shorten_if_long();
}

void records::erase_witness_note(const std::string& name) {
  if (witness_notes_.erase(name) == 0) return;
  append(name_of_line(name) + ",0]\n");
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
  if (lines_ < some || lines_ < 4 * (all_.size() + witness_notes_.size())) return;
  const std::string shorter = path_ + "~";
  ::unlink(shorter.c_str());
  descriptor before = std::move(file_);
  file_ = open_log(shorter, O_EXCL);
  if (!file_) fail(shorter, errno);
  lines_ = 0;
  for (const auto& [name, each] : all_) append(line_of(name, each));
  for (const auto& [name, each] : witness_notes_) append(line_of(name, each));
  if (::rename(shorter.c_str(), path_.c_str()) != 0) fail(path_, errno);
}

}  // namespace lockflight::cluster
