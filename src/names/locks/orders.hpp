// Orders about the holds of this host (lockflight/hold_orders.hpp), and their lines between
// programs and agents.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lockflight/hold_orders.hpp"
#include "names/file/file.hpp"

namespace lockflight::detail {

/// Gives the order about the holds of this host, by the rights of this process.
[[nodiscard]] std::vector<ordered_hold> order_here(domain_file& file, const hold_order& what);

}  // namespace lockflight::detail
