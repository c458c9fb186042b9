// Where the files of domains lie, and which of them are ours to trust.
//
// A private domain (mode 0600) lies in a folder that only its user can write to, a shared one
// (0660) under one path for all users of its group. The number of the format is part of a file's
// name, so domains of different formats never meet.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

namespace lockflight::detail {

/// Of the file's layout, and of the protocols of the locks in it: grows with each change of either.
constexpr int format = 2;

struct domain_place {
  std::string path;
  std::string name;
  unsigned mode = 0600;
  gid_t group = 0;  ///< of a shared one
};

/// The user's own, in $LOCKFLIGHT_DOMAINS, or for root in /run, or in /dev/shm.
[[nodiscard]] domain_place private_place(std::string_view name);
[[nodiscard]] domain_place shared_place(std::string_view name, gid_t group);

/// Throws domain_error (invalid).
void check_domain_name(std::string_view name);
/// The group of that name or number; our effective one if it is empty. Throws domain_error
/// (invalid) if there is none, or if we are not in it.
[[nodiscard]] gid_t group_of(const std::string& given);

/// A descriptor of the file, 3 or above, or -1 if there is none. Throws domain_error (damaged) for
/// a file that is not ours to trust: it names the file, its owner and the way out.
[[nodiscard]] int open_place(const domain_place& at);
/// While it exists, no other process makes or removes a domain in that folder: so what is removed
/// is what was looked at. A process that is stopped in between is not waited for long.
class folder_lock {
 public:
  explicit folder_lock(const domain_place& at);
  ~folder_lock();
  folder_lock(const folder_lock&) = delete;
  folder_lock& operator=(const folder_lock&) = delete;

 private:
  int fd_;
};

/// Makes the folder of a private domain. Throws domain_error (damaged) if another user has it.
void make_folder(const domain_place& at);
/// Removes that folder if it is empty.
void drop_folder(const domain_place& at);
[[nodiscard]] std::string folder_of(const domain_place& at);

/// Those of that name that exist and that we may use, the private one first; all if it is empty.
[[nodiscard]] std::vector<domain_place> find_places(std::string_view name);

}  // namespace lockflight::detail
