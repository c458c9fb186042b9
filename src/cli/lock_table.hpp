// The lock table, without what runs the locks.
#pragma once

#include <string>
#include <vector>

#include "catalogue/parameters.hpp"
#include "lockflight/lock/about.hpp"

namespace lockflight::cli {

struct lock_row {
  lock::facts about;
  std::vector<std::string> fabrics;  ///< the fabrics that the lab beside this program runs it on
  catalogue::parameter_rows parameters;
};

/// Every lock in the order of the table.
[[nodiscard]] std::vector<lock_row> lock_table();

/// Called by main(): the fabric that this program's lab has beside those of every lab, or "".
void build_in(std::string fabric);

}  // namespace lockflight::cli
