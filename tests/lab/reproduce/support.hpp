// A claim file that is fine, to be spoilt line by line.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "lab/reproduce/claims.hpp"

namespace lockflight::reproduce {

inline const std::string head = R"(paper = "some"
title = "Some paper"
machine = "piz-daint"
)";

/// Four ranks of one node: a moment.
inline const std::string one_claim = R"([[claim]]
id = "one"
where = "section 5.1, figure 3"
what = "queues beat spinning"
kind = "direction"
relation = ">"
value = 0.001
unit = "x"
calibrated = false
[claim.measure]
metric = "throughput"
numerator = { lock = "d-mcs", workload = "ecsb", procs = 4, levels = "1x4", writers = 1.0, ops = 200 }
denominator = { lock = "spin", workload = "ecsb", procs = 4, levels = "1x4", writers = 1.0, ops = 200 }
)";

/// `text` with the first `from` replaced.
[[nodiscard]] inline std::string replaced(std::string text, const std::string& from,
                                          const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

}  // namespace lockflight::reproduce
