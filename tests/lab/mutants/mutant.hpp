// Broken locks, each with the verdict that it must earn.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "lab/check/check.hpp"

namespace lockflight::mutants {

/// A lock whose source was changed in one place (make_mutants.cpp says how), or that was written
/// broken.
struct mutant {
  std::string name;
  std::string lock;  ///< the lock that was changed
  std::string why;
  std::string base;      ///< must pass at the same bound: `lock`, or the name of another mutant
  std::string bound;     ///< "writers=2 rounds=2 T_R=1"
  std::string expected;  ///< a property, or "ok"
  std::string stale;     ///< not empty: the source does not have the lines to change
  check::subject broken;
};

/// So that a failing test names the mutant instead of dumping its bytes.
inline void PrintTo(const mutant& m, std::ostream* out) { *out << m.name; }

[[nodiscard]] std::vector<mutant> handmade_mutants();

/// Those of all tables, and the handmade ones.
[[nodiscard]] const std::vector<mutant>& all_mutants();

/// The checker's request for a bound. Throws std::invalid_argument.
[[nodiscard]] check::request request_of(const std::string& bound);

}  // namespace lockflight::mutants
