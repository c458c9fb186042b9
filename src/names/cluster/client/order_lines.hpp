// Orders about holds (lockflight/hold_orders.hpp) as lines between programs and agents, and what is
// known of a hold as a line behind that of its user (elsewhere.hpp).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockflight/hold_orders.hpp"

namespace lockflight::detail {

/// The question for an order, which an agent passes on to the others as it is.
inline constexpr std::string_view order_question = "order";

[[nodiscard]] std::vector<std::string> question_of(const hold_order& what);
/// Nothing if the fields are no order.
[[nodiscard]] std::optional<hold_order> order_from(const std::vector<std::string>& question);

/// The answer of a host to an order.
[[nodiscard]] std::string lines_of(const std::string& lock, const std::vector<ordered_hold>& holds);
[[nodiscard]] std::vector<ordered_hold> ordered_from(
    const std::vector<std::vector<std::string>>& lines);

/// The line about the hold of a user: its number, its end, the token and the note of a keeper, and
/// the priority of a candidate. Empty if there is nothing to say. Earlier versions leave it out, or
/// its last fields.
[[nodiscard]] std::string line_of_hold(const lock_user& user);
/// Adds what that line says, if it is one.
void add_hold(const std::vector<std::string>& line, lock_user& to);

}  // namespace lockflight::detail
