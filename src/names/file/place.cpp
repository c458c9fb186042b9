#include "names/file/place.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <memory>
#include <optional>
#include <system_error>

#include "base/group_number.hpp"
#include "base/joined.hpp"
#include "fabric/shm/pause.hpp"
#include "names/file/byte_lock.hpp"
#include "names/file/file_system.hpp"
#include "names/file/layout.hpp"
#include "names/file/text.hpp"

namespace lockflight::detail {
namespace {

constexpr const char* memory_folder = "/dev/shm";
constexpr const char* chosen_by = "LOCKFLIGHT_DOMAINS";

std::string suffix() { return ".lf" + std::to_string(format); }

/// The folder that the user has named, or null. A program that runs with more rights than its
/// caller does not ask its caller.
const char* named_folder() {
  const char* const given = secure_getenv(chosen_by);
  return given == nullptr || *given == '\0' ? nullptr : given;
}

std::string named_folder_text() { return std::string(chosen_by) + "=" + shown(named_folder()); }

/// The same, if domains can lie there.
const char* chosen_folder() {
  const char* const given = named_folder();
  if (given == nullptr) return nullptr;
  const auto refuse = [](const std::string& why, const std::string& accepted) {
    throw domain_error(domain_error::reason::invalid,
                       named_folder_text() + ", which " + why + " (accepted: " + accepted + ")");
  };
  struct stat s {};
  struct statfs f {};
  if (*given != '/') refuse("is not absolute", "the absolute path of a folder that exists");
  const bool is_there = stat(given, &s) == 0;
  if (!is_there && (errno == ENOENT || errno == ENOTDIR))
    refuse("does not exist",
           "a folder that exists; it is not made, since its users may have to share it");
  if (!is_there)
    refuse("cannot be looked into: " + std::generic_category().message(errno),
           "a folder whose path this user may search");
  if (!S_ISDIR(s.st_mode)) refuse("is no folder", "a folder that exists");
  const std::string_view foreign =
      statfs(given, &f) == 0 ? name_of_unusable_file_system(f.f_type) : std::string_view{};
  if (!foreign.empty())
    refuse("is " + std::string(foreign),
           "a folder in a file system of this machine, such as tmpfs, ext4 or xfs; the locks of a "
           "cluster are in domains etcd:NAME");
  return given;
}

/// True if root's domains lie in /run: they do if /run is memory. Only root can write to /run, so
/// no other user can take root's place there.
bool root_has_run() {
  struct stat s {};
  struct statfs f {};
  return geteuid() == 0 && stat("/run", &s) == 0 && s.st_uid == 0 && (s.st_mode & 022) == 0 &&
         statfs("/run", &f) == 0 && f.f_type == TMPFS_MAGIC;
}

/// The folder of private domains. It is not in $XDG_RUNTIME_DIR: a session has that and a cron job
/// of the same user has not, and both must find the same domain.
std::string private_folder() {
  if (const char* const given = chosen_folder())
    return std::string(given) + "/lockflight-" + std::to_string(geteuid());
  if (root_has_run()) return "/run/lockflight";
  return std::string(memory_folder) + "/lockflight-" + std::to_string(geteuid());
}

std::string shared_folder() {
  const char* const given = chosen_folder();
  return given != nullptr ? given : memory_folder;
}

std::string shared_prefix(gid_t group) { return "lockflight-g" + std::to_string(group) + "-"; }

template <class Visit>
void for_each_file(const std::string& folder, Visit visit) {
  const std::unique_ptr<DIR, int (*)(DIR*)> all(opendir(folder.c_str()), closedir);
  if (all == nullptr) return;
  while (const dirent* const one = readdir(all.get())) visit(std::string_view(one->d_name));
}

std::vector<gid_t> our_groups() {
  std::vector<gid_t> all(static_cast<std::size_t>(std::max(getgroups(0, nullptr), 0)));
  const int count = getgroups(static_cast<int>(all.size()), all.data());
  all.resize(static_cast<std::size_t>(std::max(count, 0)));
  all.insert(all.begin(), getegid());
  return all;
}

/// "61000" of "lockflight-g61000-jobs.lf4".
std::optional<gid_t> group_in(std::string_view file) {
  const std::string prefix = "lockflight-g";
  gid_t group{};
  if (!file.starts_with(prefix)) return std::nullopt;
  const auto [end, error] =
      std::from_chars(file.data() + prefix.size(), file.data() + file.size(), group);
  if (error != std::errc() || end == file.data() + file.size() || *end != '-') return std::nullopt;
  return group;
}

/// The groups whose domains this process may use: for root all groups that have any.
std::vector<gid_t> usable_groups() {
  std::vector<gid_t> all = our_groups();
  if (geteuid() == 0)
    for_each_file(shared_folder(), [&](std::string_view file) {
      if (const auto group = group_in(file)) all.push_back(*group);
    });
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

[[noreturn]] void refuse(const std::string& path, const struct stat& s, const std::string& why) {
  throw domain_error(domain_error::reason::damaged,
                     path + " " + why + " (owner " + std::to_string(s.st_uid) + ", mode " +
                         mode_text(s.st_mode & 07777) +
                         "): its owner or root must remove it, or set " + chosen_by +
                         " to a directory of yours");
}

constexpr const char* not_an_own_folder = "is not a folder that only this user can write to";
bool is_own_folder(const struct stat& s) {
  return S_ISDIR(s.st_mode) && s.st_uid == geteuid() && (s.st_mode & 022) == 0;
}

/// Why we cannot trust the file, which another user could have put there; empty if we can. Only a
/// member can give a file to a group.
std::string what_is_wrong(const struct stat& s, const domain_place& at) {
  if (!S_ISREG(s.st_mode)) return "is no regular file";
  const bool is_private = at.mode == 0600;
  if (is_private && s.st_uid != geteuid()) return "belongs to another user";
  if (!is_private && s.st_gid != at.group) return "does not belong to its group";
  if ((s.st_mode & 07777) != at.mode) return "does not have mode " + mode_text(at.mode);
  return "";
}

/// "jobs.lf4" is "jobs". None for other files.
std::optional<std::string> name_in(std::string_view file) {
  const std::string end = suffix();
  if (file.size() <= end.size() || !file.ends_with(end)) return std::nullopt;
  return std::string(file.substr(0, file.size() - end.size()));
}

bool is_usable(const domain_place& at) {
  struct stat s {};
  return lstat(at.path.c_str(), &s) == 0 && what_is_wrong(s, at).empty();
}

}  // namespace

domain_place private_place(std::string_view name) {
  return {private_folder() + "/" + std::string(name) + suffix(), std::string(name), 0600, 0};
}

domain_place shared_place(std::string_view name, gid_t group) {
  return {shared_folder() + "/" + shared_prefix(group) + std::string(name) + suffix(),
          std::string(name), 0660, group};
}

void check_domain_name(std::string_view name) {
  constexpr std::string_view accepted =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  const std::string_view own = is_cluster_name(name) ? name.substr(cluster_prefix.size()) : name;
  if (!own.empty() && own.size() <= 64 && own.front() != '.' &&
      own.find_first_not_of(accepted) == std::string_view::npos)
    return;
  throw domain_error(
      domain_error::reason::invalid,
      "domain name " + shown(name) +
          " (accepted: 1 to 64 of a-z, A-Z, 0-9, '.', '_', '-', no '.' first; with etcd: "
          "before them, the domain of a cluster)");
}

gid_t group_of(const std::string& given) {
  if (given.empty()) return getegid();
  const auto refused = [&](const std::string& accepted) {
    return domain_error(domain_error::reason::invalid,
                        "group '" + given.substr(0, 80) + "' (accepted: " + accepted + ")");
  };
  const std::optional<gid_t> found = group_number(given);
  if (!found) throw refused(accepted_group);
  const auto ours = our_groups();
  if (geteuid() != 0 && std::find(ours.begin(), ours.end(), *found) == ours.end())
    throw refused(std::string(accepted_group) + " that this user is in");
  return *found;
}

std::string folder_of(const domain_place& at) { return at.path.substr(0, at.path.rfind('/')); }

descriptor open_place(const domain_place& at) {
  struct stat s {};
  const auto refused_by_system = [&](int error) {
    return domain_error(domain_error::reason::system,
                        at.path + ": " + std::generic_category().message(error));
  };
  if (at.mode == 0600) {
    const std::string folder = folder_of(at);
    if (lstat(folder.c_str(), &s) == 0 && !is_own_folder(s)) refuse(folder, s, not_an_own_folder);
  }
  descriptor fd(::open(at.path.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  if (!fd) {
    const int error = errno;
    if (error == ENOENT || error == ENOTDIR) return {};
    if (lstat(at.path.c_str(), &s) == 0) {
      const std::string wrong = what_is_wrong(s, at);
      if (!wrong.empty()) refuse(at.path, s, wrong);
      if (error == EACCES || error == EPERM) refuse(at.path, s, "cannot be opened");
    }
    throw refused_by_system(error);
  }
  if (fstat(fd.get(), &s) != 0) throw refused_by_system(errno);
  if (const std::string wrong = what_is_wrong(s, at); !wrong.empty()) refuse(at.path, s, wrong);
  return fd;
}

void unlink_files_beside(const domain_place& at) {
  // An agent's own files are in its user's folder, also if the domain is a group's.
  for (const std::string& path : {at.path, private_place(at.name).path}) {
    const std::size_t slash = path.rfind('/');
    const std::string begins = path.substr(slash + 1) + ".";
    for_each_file(path.substr(0, slash), [&](std::string_view file) {
      if (file.starts_with(begins))
        ::unlink((path.substr(0, slash + 1) + std::string(file)).c_str());
    });
  }
}

removal_right::removal_right(const domain_place& at) : at_(at) {
  constexpr int tries = 1000;
  constexpr std::uint64_t between_ns = 1'000'000;
  for (int i = 0; i < tries; ++i) {
    not_inherited_.reset();
    file_ = open_place(at_);
    if (!file_) return;
    not_inherited_.emplace(file_.get());
    const byte_lock got = lock_byte(file_.get(), removal_byte);
    if (got == byte_lock::refused)
      throw domain_error(domain_error::reason::system, at_.path + ": cannot be locked: " +
                                                           std::generic_category().message(errno));
    // If our file is not at its path, another remover has taken the path away meanwhile.
    if (got == byte_lock::taken && is_at_path()) return;
    file_ = {};
    if (got == byte_lock::anothers) shm::detail::sleep_for_ns(between_ns);
  }
  throw domain_error(domain_error::reason::held,
                     at_.path + ": another process removes it and does not go on");
}

bool removal_right::unlink() {
  if (!is_at_path()) return false;
  // Removes the files that an agent has left beside the domain's. A living agent prevents the
  // removal of the domain.
  if (is_cluster_name(at_.name)) unlink_files_beside(at_);
  if (::unlink(at_.path.c_str()) == 0) return true;
  if (errno == ENOENT) return false;
  throw domain_error(domain_error::reason::system,
                     at_.path + ": " + std::generic_category().message(errno));
}

bool removal_right::is_at_path() const {
  struct stat ours {};
  struct stat there {};
  return fstat(file_.get(), &ours) == 0 && lstat(at_.path.c_str(), &there) == 0 &&
         ours.st_dev == there.st_dev && ours.st_ino == there.st_ino;
}

domain_error cannot_be_made(const std::string& path, int error) {
  std::string text = path + ": cannot be made: " + std::generic_category().message(error);
  if (named_folder() != nullptr && error != ENOSPC)
    text += "; " + named_folder_text() + " (accepted: a folder in which this user can make files)";
  return {error == ENOSPC ? domain_error::reason::full : domain_error::reason::system, text};
}

void make_folder(const domain_place& at) {
  const std::string folder = folder_of(at);
  if (at.mode != 0600) return;
  while (mkdir(folder.c_str(), 0700) != 0) {
    const int error = errno;
    if (error != EEXIST) throw cannot_be_made(folder, error);
    struct stat s {};
    if (lstat(folder.c_str(), &s) != 0) continue;  // a remover has dropped it since
    if (!is_own_folder(s)) refuse(folder, s, not_an_own_folder);
    return;
  }
}

void drop_folder(const domain_place& at) {
  if (at.mode == 0600) rmdir(folder_of(at).c_str());
}

std::optional<domain_place> own_place(std::string_view name) {
  domain_place at = private_place(name);
  return is_usable(at) ? std::optional(std::move(at)) : std::nullopt;
}

std::vector<domain_place> find_places(std::string_view name) {
  std::vector<domain_place> found;
  const auto add = [&](domain_place at) {
    if (is_usable(at)) found.push_back(std::move(at));
  };
  const auto groups = usable_groups();
  if (!name.empty()) {
    add(private_place(name));
    for (const gid_t group : groups) add(shared_place(name, group));
    return found;
  }
  for_each_file(private_folder(), [&](std::string_view file) {
    if (const auto of = name_in(file)) add(private_place(*of));
  });
  for_each_file(shared_folder(), [&](std::string_view file) {
    for (const gid_t group : groups) {
      const std::string prefix = shared_prefix(group);
      if (!file.starts_with(prefix)) continue;
      if (const auto of = name_in(file.substr(prefix.size()))) add(shared_place(*of, group));
      break;
    }
  });
  return found;
}

std::vector<domain_place> places_meant(std::string_view name) {
  auto all = find_places(name);
  if (!all.empty() && all.front().mode == 0600) return {all.front()};
  const auto ours = our_groups();
  std::erase_if(all, [&](const domain_place& at) {
    return std::find(ours.begin(), ours.end(), at.group) == ours.end();
  });
  return all;
}

domain_place place_of(std::string_view name, unsigned mode, const std::string& group) {
  const auto disagree = [&](const std::string& how, const std::string& accepted) {
    throw domain_error(domain_error::reason::disagrees,
                       "domain " + std::string(name) + " " + how + " (accepted: " + accepted + ")");
  };
  // The default domain is always private: otherwise a member of one of our groups could take the
  // place of the domain that is used without a name.
  if (name == default_domain && mode == 0) mode = 0600;
  if (mode != 0660 && group.empty())
    if (auto own = own_place(name)) return *std::move(own);
  const auto all = mode == 0 ? places_meant(name) : find_places(name);
  const gid_t wanted = group.empty() ? 0 : group_of(group);
  std::vector<domain_place> meant;
  for (const domain_place& at : all)
    if (mode == 0 || (at.mode == mode && (group.empty() || at.group == wanted)))
      meant.push_back(at);
  if (meant.size() == 1) return meant.front();
  if (meant.size() > 1) {
    std::vector<std::string> paths;
    for (const domain_place& at : meant) paths.push_back(at.path);
    disagree("exists more than once: " + joined(paths),
             "a mode, 0600 or 0660, and a group that say which is meant");
  }
  // Another user's domain of that name does not prevent an own one.
  struct stat s {};
  if (mode != 0 && !all.empty() && all.front().mode != mode &&
      lstat(all.front().path.c_str(), &s) == 0 && s.st_uid == geteuid())
    disagree("has mode " + mode_text(all.front().mode) + ", not " + mode_text(mode) + ": " +
                 all.front().path,
             "mode " + mode_text(all.front().mode) + ", or another name");
  return mode == 0660 ? shared_place(name, group_of(group)) : private_place(name);
}

}  // namespace lockflight::detail
