// Tables of searches that leave no lock of the catalogue out.
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

#include "lab/check/check.hpp"

namespace lockflight::check {

/// True of the locks that are broken on purpose: tests/lab/mutants/listing_test.cpp.
[[nodiscard]] inline bool is_broken(const subject& lock) {
  return lock.about.name == "rma-rw-listing" || lock.about.name == "cql-listing";
}

/// The locks that no row names.
template <class Row>
[[nodiscard]] std::vector<const subject*> locks_without(const std::vector<Row>& rows) {
  std::vector<const subject*> found;
  for (const subject& lock : subjects())
    if (!is_broken(lock) && std::ranges::none_of(rows, [&](const Row& row) {
          return lock.about.name == std::string_view(row.lock);
        }))
      found.push_back(&lock);
  return found;
}

/// The rows, and for each lock that none of them names the smallest row: two participants, one of
/// them a reader if the lock has readers.
template <class Row>
[[nodiscard]] std::vector<Row> with_each_lock(std::vector<Row> rows, Row smallest) {
  for (const subject* const lock : locks_without(rows)) {
    smallest.lock = lock->about.name.data();  // a literal
    smallest.writers = lock->shared ? 1 : 2;
    smallest.readers = lock->shared ? 1 : 0;
    rows.push_back(smallest);
  }
  return rows;
}

}  // namespace lockflight::check
