// A semaphore among the names of a domain. It consists of N + 1 locks: the *queue*, which has the
// semaphore's own name, and N *units*, each a lock whose name is the semaphore's with a suffix that
// no name of a user can have. The queue's kind, `semaphore`, has N as its parameter, so that the
// domain itself makes all users of the name agree about N. N is noted among the queue's words, so
// that all semaphores are one class of the directory, and so that N can be changed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lockflight/lock/robust/semaphore.hpp"
#include "names/file/file.hpp"
#include "names/locks/kinds.hpp"
#include "names/locks/unit_set.hpp"

namespace lockflight::detail {

/// The suffix of a unit's name after its semaphore's name: a new line and a number.
constexpr std::size_t longest_unit_suffix = 5;

/// The kind of the queue: `flight` in strict order of arrival, and a line of the semaphore's own
/// words. It is not among domain_kinds(), since only a semaphore makes it.
[[nodiscard]] const domain_kind& semaphore_kind();
/// The kind of a unit, which is never shared.
[[nodiscard]] const domain_kind& unit_kind();
[[nodiscard]] inline bool is_semaphore(const domain_kind& kind) {
  return &kind == &semaphore_kind();
}
/// The text "units=3", or of chosen units "units=3,mask=11", and the units of such a text.
[[nodiscard]] std::string parameters_of_semaphore(const unit_set& units);
[[nodiscard]] unit_set units_of_semaphore(const std::string& parameters);
/// The parameters of the class of all semaphores, which says nothing of their units.
inline constexpr const char* parameters_of_semaphores = "units=0";
/// "a semaphore of 3 units", "a semaphore of the units 0 and 3"; for another kind its name: "a
/// flight-rw".
[[nodiscard]] std::string described(const domain_kind& kind, const std::string& parameters);

/// The place of the semaphore's own words in the queue's block, whose size is without its name.
struct semaphore_words {
  /// Changes whenever a unit is released.
  std::uint32_t released = 0;
  /// Not 0: the participant at the head of the queue has found no free unit, and waits for one.
  std::uint32_t head_waits = 0;
  /// In a cluster's domain, not 0: the hosts agree about N.
  std::uint32_t agreed = 0;
  /// How many units the semaphore was made with.
  std::uint32_t units = 0;
  /// 0, or which units these are if they were chosen (unit_set::bits).
  std::uint32_t chosen = 0;
  /// The units that there are now (unit_set::bits), perhaps set by an operator (set_by_operator):
  /// in a cluster's domain this is then a copy of the note in etcd. 0: those with which it was
  /// made, by an earlier version.
  std::uint32_t present = 0;
};
[[nodiscard]] constexpr semaphore_words words_of_semaphore(std::uint32_t first_word,
                                                           std::uint32_t words) {
  const std::uint32_t line = first_word + words - rma::line_words;
  return {line, line + 1, line + 2, line + 3, line + 4, line + 5};
}
/// The units that an operator has set, or none. Throws domain_error (damaged).
[[nodiscard]] std::optional<unit_set> set_units_in(const domain_file& file,
                                                   const semaphore_words& words);
[[nodiscard]] unit_set units_from_words(const domain_file& file, const semaphore_words& words);
/// The units that the semaphore has now. Throws domain_error (damaged).
[[nodiscard]] inline unit_set units_in(const domain_file& file, const semaphore_words& words) {
  // Acquire: the words of the semaphore were there before it.
  const rma::word now = file.word(words.present).load(std::memory_order_acquire);
  if (now >= 1 && now <= most_units) [[likely]]
    return unit_set::first(static_cast<int>(now));
  return units_from_words(file, words);
}
/// Changes the word `released`, and wakes the head of the queue.
inline void note_release(const domain_file& file, const semaphore_words& words) {
  file.word(words.released).fetch_add(1, std::memory_order_seq_cst);
  file.bell_of_line(words.released / rma::line_words).ring_after_rmw();
}

[[nodiscard]] std::string name_of_unit(std::string_view semaphore, int unit);
/// A name of the directory as its user knows it.
struct user_name {
  std::string_view name;
  int unit = -1;  ///< of a semaphore; -1: it is the name of a lock, or of a semaphore's queue
  bool is_value = false;  ///< it is the name of a lock's value (value.hpp)
};
[[nodiscard]] user_name user_name_of(std::string_view name);

}  // namespace lockflight::detail
