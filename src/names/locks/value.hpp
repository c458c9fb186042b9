// The value that a holder publishes under a name (named_handle::publish). It is a block of the
// directory whose name is the lock's with a suffix that no name of a user can have. Its kind,
// `value`, is a lock as any other, so that the directory finds, shows and forgets it as all blocks,
// and behind the lock's words stand two places for values. A publication fills the place that
// readers do not look at, and then adds 1 to the number of publications, whose lowest bit says
// which place counts.
//
// One participant writes at a time: on one machine the exclusive holder of the name, in a cluster's
// domain the agent of the host, which keeps there what etcd has (names/agent/process/notes.hpp).
// Readers stop nobody, and read again if the number has changed meanwhile.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lockflight/domain.hpp"
#include "names/file/stored_value.hpp"
#include "names/locks/directory.hpp"

namespace lockflight::detail {

[[nodiscard]] const domain_kind& value_kind();
/// The directory's name of the value of a lock.
[[nodiscard]] std::string name_of_value(std::string_view lock);
[[nodiscard]] bool is_name_of_value(std::string_view name);
/// The parameters of a block that has room for so many bytes, at most most_value_bytes.
[[nodiscard]] std::string parameters_of_value(std::size_t bytes);

/// The words of the value in a block of that kind.
class value_words {
 public:
  value_words(const domain_file& file, const found_lock& block);

  /// How many bytes a value can have here.
  [[nodiscard]] std::size_t capacity() const;
  /// The number of publications, a word on which readers wait.
  [[nodiscard]] rma::cpu_cell number() const { return {0, first_}; }
  [[nodiscard]] rma::word read_number() const;
  /// Nothing if the block has become another one's, or the file was written over.
  [[nodiscard]] std::optional<stored_value> read() const;
  /// True if nothing was published since the block was made.
  [[nodiscard]] bool is_empty() const {
    const auto now = read();
    return now && now->is_unknown;
  }
  /// Wakes the readers that wait here, since the value is elsewhere now.
  void wake() const;
  /// Publishes, and wakes the readers that wait. Called by one participant at a time.
  void write(const stored_value& what) const;

 private:
  [[nodiscard]] std::uint32_t place(rma::word number) const;

  const domain_file& file_;
  std::uint32_t line_;
  std::uint32_t first_;  // the word with the number
  std::uint32_t words_;  // of a place
};

/// The block of a lock's value, if there is one.
[[nodiscard]] std::optional<found_lock> find_value(const domain_file& file, std::string_view lock);
/// The block of a lock's value with room for so many bytes, made if there is none, or none so
/// large. Throws as look_up().
[[nodiscard]] found_lock room_for_value(attachment& by, std::string_view lock, std::size_t bytes,
                                        const time_limit& how_long);

/// Throws domain_error (invalid) for more bytes than a value can have.
void check_value(std::string_view lock, std::size_t bytes);

}  // namespace lockflight::detail
