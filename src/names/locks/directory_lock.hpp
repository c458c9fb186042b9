// The right to change the directory, which one participant has at a time.
#pragma once

#include <optional>

#include "names/locks/directory.hpp"

namespace lockflight::detail {

/// Takes the right, and gives it back at its end. If the last owner of the right died, the chains
/// are repaired first. Throws directory_is_busy if another participant has the right for longer
/// than a caller with a deadline waits, and domain_error (system) if that participant does not go
/// on.
class directory_lock {
 public:
  directory_lock(attachment& by, const time_limit& how_long);
  ~directory_lock();
  directory_lock(const directory_lock&) = delete;
  directory_lock& operator=(const directory_lock&) = delete;

 private:
  void enter(bool after_a_death);
  [[nodiscard]] int slot_of(rma::word holder) const;
  [[nodiscard]] bool is_gone(rma::word holder) const;
  [[noreturn]] void refuse(rma::word holder) const;

  domain_file& file_;
  std::optional<signals_held> signals_;
};

}  // namespace lockflight::detail
