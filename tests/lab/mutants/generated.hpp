// The mutants that tests/lab/mutants/mutate.py has generated, by table.
#pragma once

#include <vector>

#include "tests/lab/mutants/mutant.hpp"

namespace lockflight::mutants {

struct generated_table {
  const char* name;  ///< of the table that it was made beside: tests/lab/mutants/NAME.mutants
  std::vector<mutant> (*make)();
};

[[nodiscard]] const std::vector<generated_table>& generated_tables();

}  // namespace lockflight::mutants
