// The locks that a domain can have, by name, behind one virtual call each.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "catalogue/any_lock.hpp"
#include "lockflight/lock/about.hpp"
#include "lockflight/lock/parameters.hpp"
#include "lockflight/lock/robust.hpp"
#include "names/file/text.hpp"
#include "names/life/port.hpp"

namespace lockflight::detail {

using domain_participant = lock::robust_participant<domain_port>;

/// A participant's handle of a lock at a place.
class any_robust : public catalogue::any_lock {
 public:
  [[nodiscard]] virtual std::uint64_t token() const = 0;
  [[nodiscard]] virtual bool owner_died() = 0;
  virtual void mark_consistent() = 0;
  virtual void abandon() = 0;
  /// Called by another thread than the holder's: takes the lock away as if the participant that
  /// holds it with that record had died.
  virtual void abandon_from_elsewhere(rma::rank_t holder, int record) = 0;
  virtual void repair_if_needed() = 0;
  /// The record by which the participant holds, and the coarse time since when.
  int held_record = -1;
  std::uint64_t held_since_ns = 0;
};

struct domain_kind {
  lock::facts about;
  catalogue::abilities can;
  /// All parameters with their values, in the lock's order, those that are not given as domains
  /// have them: another release may have other defaults. Throws domain_error.
  std::string (*canonical)(const lock::parameter_values&);
  /// How many words a lock with these parameters takes.
  std::uint32_t (*words)(const lock::parameter_values&);
  std::unique_ptr<any_robust> (*make)(domain_participant&, std::uint32_t first, std::uint32_t words,
                                      const lock::parameter_values&);
};

/// Makes the kinds of a part of the locks.
template <std::size_t Part, std::size_t Parts>
void make_kinds(std::span<domain_kind> all);

/// Every lock of the table that can be robust, in its order.
[[nodiscard]] const std::vector<domain_kind>& domain_kinds();
/// The kind of that name among domain_kinds(). Throws domain_error (invalid), which names them all.
[[nodiscard]] const domain_kind& kind_named(std::string_view name);
/// The kind of that name, also those of semaphores and of values. Null if there is none.
[[nodiscard]] const domain_kind* find_kind(std::string_view name);
/// The parameters that differ from the defaults of a domain's locks of that kind: for display only.
[[nodiscard]] std::string without_defaults(const domain_kind& kind, const std::string& parameters);
/// "local_budget=16,barge=2". Throws domain_error (invalid).
[[nodiscard]] lock::parameter_values parse_parameters(std::string_view text);

}  // namespace lockflight::detail
