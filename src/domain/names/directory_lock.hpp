// The right to change the directory, which one participant has at a time.
#pragma once

#include <optional>

#include "domain/names/directory.hpp"

namespace lockflight::detail {

/// Taken and given back. If the last participant that had it died, what that one has left half done
/// is put right first. Throws directory_is_busy if another one has it for longer than a caller with
/// a deadline waits, and domain_error (system) if it does not go on.
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
