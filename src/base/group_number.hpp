// A group of users, as all interfaces take it: a text that is its name or its number.
#pragma once

#include <grp.h>
#include <sys/types.h>

#include <optional>
#include <string>

#include "base/number.hpp"

namespace lockflight {

constexpr const char* accepted_group = "the name or the number of a group";

/// None if there is no such group. The number may be one without a name; 0 is a number like others.
[[nodiscard]] inline std::optional<gid_t> group_number(const std::string& text) {
  constexpr auto no_group = static_cast<gid_t>(-1);  // for chown(2): the file keeps its group
  if (const auto number = read_number<gid_t>(text))
    return *number == no_group ? std::nullopt : number;
  const group* const named = getgrnam(text.c_str());
  return named == nullptr ? std::nullopt : std::optional(named->gr_gid);
}

}  // namespace lockflight
