// Broken locks, each with the verdict that it must earn.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "check/check.hpp"

namespace lockflight::mutants {

/// A lock whose source was changed in one place (make_mutants.cpp says how), or that was written
/// broken.
struct mutant {
  std::string name;
  std::string lock;  ///< what was changed
  std::string why;
  std::string base;   ///< what must pass at the same bound: `lock`, or the name of another mutant
  std::string bound;  ///< "writers=2 rounds=2 T_R=1"
  std::string expected;  ///< a property, or "ok"
  std::string stale;     ///< not empty: the source does not have the lines that were to be changed
  check::subject broken;
};

/// So that a failing test names the mutant instead of dumping its bytes.
inline void PrintTo(const mutant& m, std::ostream* out) { *out << m.name; }

// One for each table, NAME.mutants or handmade.cpp.
[[nodiscard]] std::vector<mutant> mutants_of_spin();
[[nodiscard]] std::vector<mutant> mutants_of_d_mcs();
[[nodiscard]] std::vector<mutant> mutants_of_rma_mcs();
[[nodiscard]] std::vector<mutant> mutants_of_alock();
[[nodiscard]] std::vector<mutant> mutants_of_dq();
[[nodiscard]] std::vector<mutant> mutants_of_dq_fair();
[[nodiscard]] std::vector<mutant> mutants_of_dlm_server();
[[nodiscard]] std::vector<mutant> mutants_of_fompi_rw();
[[nodiscard]] std::vector<mutant> mutants_of_rma_rw();
[[nodiscard]] std::vector<mutant> mutants_of_mcs_rw_rp();
[[nodiscard]] std::vector<mutant> mutants_of_mcs_rw_wp();
[[nodiscard]] std::vector<mutant> mutants_of_mcs_rw_fair();
[[nodiscard]] std::vector<mutant> mutants_of_msg();
[[nodiscard]] std::vector<mutant> mutants_of_msg_deferred();
[[nodiscard]] std::vector<mutant> mutants_of_rooms_window();
[[nodiscard]] std::vector<mutant> mutants_of_global_window();
[[nodiscard]] std::vector<mutant> mutants_of_server_guest();
[[nodiscard]] std::vector<mutant> mutants_of_flight();
[[nodiscard]] std::vector<mutant> mutants_of_flight_rw();
[[nodiscard]] std::vector<mutant> handmade_mutants();

/// All of them.
[[nodiscard]] const std::vector<mutant>& all_mutants();

/// What a bound asks of the checker. Throws std::invalid_argument.
[[nodiscard]] check::request request_of(const std::string& bound);

}  // namespace lockflight::mutants
