// The paths of domain files, and the checks by which a process decides whether to trust a file.
//
// A private domain (mode 0600) lies in a folder that only its user can write to, a shared one
// (0660) under one path for all users of its group. The number of the format is part of a file's
// name, so domains of different formats never meet.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/descriptor.hpp"
#include "lockflight/domain.hpp"
#include "names/file/fork.hpp"

namespace lockflight::detail {

/// The number of the format: it grows with each change of the file's layout, or of the protocols of
/// the locks in it.
constexpr int format = 4;

struct domain_place {
  std::string path;
  std::string name;
  unsigned mode = 0600;
  gid_t group = 0;  ///< of a shared one
};

/// The place of a user's own domain: in $LOCKFLIGHT_DOMAINS, or for root in /run, or in /dev/shm.
[[nodiscard]] domain_place private_place(std::string_view name);
[[nodiscard]] domain_place shared_place(std::string_view name, gid_t group);

/// The prefix of the names of clusters' domains. No other domain has a colon in its name.
constexpr std::string_view cluster_prefix = "etcd:";
[[nodiscard]] constexpr bool is_cluster_name(std::string_view name) {
  return name.starts_with(cluster_prefix);
}

/// Throws domain_error (invalid).
void check_domain_name(std::string_view name);
/// The group of that name or number; our effective one if it is empty. Throws domain_error
/// (invalid) if there is none, or if we are not in it.
[[nodiscard]] gid_t group_of(const std::string& given);

/// A descriptor of the file, 3 or above, or none if there is no file. Throws domain_error (damaged)
/// for a file that we cannot trust: the error names the file, its owner and the remedy.
[[nodiscard]] descriptor open_place(const domain_place& at);

/// Removes the sockets and records of agents of a cluster's domain.
void unlink_files_beside(const domain_place& at);

/// The right to take away the path of a domain's file. One open file has it at a time, and the
/// kernel takes it from a process that ends. So while we have it, no other remover takes the path
/// away, and no other process can make a domain there: the file that we have checked is the one
/// that we remove.
class removal_right {
 public:
  /// Takes the right for the file that is there now. Throws domain_error (held) if another process
  /// has had the right for a second, and as open_place does.
  explicit removal_right(const domain_place& at);
  /// True if there is a file.
  explicit operator bool() const { return static_cast<bool>(file_); }
  /// Takes the path away. False if a process that is no remover has done so. Throws domain_error
  /// (system).
  bool unlink();

 private:
  [[nodiscard]] bool is_at_path() const;

  domain_place at_;
  descriptor file_;
  std::optional<closed_in_children> not_inherited_;
};

/// The error of a file or a folder that the system refuses to make.
[[nodiscard]] domain_error cannot_be_made(const std::string& path, int error);

/// Makes the folder of a private domain. Throws domain_error (damaged) if another user has it.
void make_folder(const domain_place& at);
/// Removes that folder if it is empty.
void drop_folder(const domain_place& at);
[[nodiscard]] std::string folder_of(const domain_place& at);

/// The place of this user's own domain of that name, if there is one. It comes before those of
/// groups.
[[nodiscard]] std::optional<domain_place> own_place(std::string_view name);
/// The places of that name that exist and that this process may use, the private one first; of all
/// names if it is empty.
[[nodiscard]] std::vector<domain_place> find_places(std::string_view name);
/// The places that a name without a mode means: the private one if it exists, else the places of
/// groups that this process is in. Root may use the domains of other groups, but does so only if
/// the mode says that it is to.
[[nodiscard]] std::vector<domain_place> places_meant(std::string_view name);
/// The place of the domain that is meant, whether it exists or not. `mode` 0 is this user's own if
/// there is one, else that of a group that this process is in; an empty group is any of those that
/// we may use. Throws domain_error (disagrees) if more than one is meant, or if this user's domain
/// of that name has another mode.
[[nodiscard]] domain_place place_of(std::string_view name, unsigned mode, const std::string& group);

}  // namespace lockflight::detail
