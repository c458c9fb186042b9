// A row of a table of searches, as what the checker is asked.
#pragma once

#include <ostream>
#include <string>

#include "lab/check/check.hpp"

namespace lockflight::check {

/// `row.off` names what the model leaves out: e effects that come late, s buffered stores, o posts
/// that overtake each other.
template <class Row>
[[nodiscard]] request search_of(const Row& row) {
  const std::string off = row.off;
  const auto keeps = [&](char part) { return off.find(part) == std::string::npos; };
  request r;
  r.lock = row.lock;
  r.writers = row.writers, r.readers = row.readers;
  r.try_writers = row.try_writers, r.try_readers = row.try_readers;
  r.rounds = row.rounds;
  r.levels = row.levels;
  r.set = row.set;
  r.how.delayed_effects = keeps('e');
  r.how.store_buffering = keeps('s');
  r.how.reordering = keeps('o');
  return r;
}

/// For the name of a test's parameter.
template <class Row>
void print_search(const Row& row, std::ostream& out) {
  out << row.lock << " " << row.writers << "w" << row.readers << "r" << row.try_writers << "tw"
      << row.try_readers << "tr x " << row.rounds << " on " << row.levels << " without '" << row.off
      << "'";
}

}  // namespace lockflight::check
