#include "catalogue/parameters.hpp"

#include "base/number.hpp"
#include "catalogue/nearest.hpp"

namespace lockflight::catalogue {

std::string parameter_row::range() const {
  return std::to_string(min) + " to " + std::to_string(max);
}

const parameter_row* find(parameter_rows rows, std::string_view name) {
  const auto at = std::find_if(rows.begin(), rows.end(),
                               [&](const parameter_row& row) { return row.name == name; });
  return at == rows.end() ? nullptr : &*at;
}

std::optional<std::pair<std::string, std::int64_t>> parse_assignment(std::string_view text,
                                                                     char sign) {
  const std::size_t at = text.find(sign);
  if (at == 0 || at == std::string_view::npos) return std::nullopt;
  const auto number = read_number<std::int64_t>(text.substr(at + 1));
  if (!number) return std::nullopt;
  return std::pair(std::string(text.substr(0, at)), *number);
}

lock::parameter_values parse_assignments(std::string_view text) {
  lock::parameter_values found;
  for (bool more = !text.empty(); more;) {
    const std::size_t comma = text.find(',');
    const std::string_view one = text.substr(0, comma);
    const auto read = parse_assignment(one);
    if (!read)
      throw std::invalid_argument("parameters '" + std::string(one) +
                                  "' (accepted: name=number, such as T_R=100, joined by commas)");
    found.insert_or_assign(read->first, read->second);
    more = comma != std::string_view::npos;
    if (more) text.remove_prefix(comma + 1);
  }
  return found;
}

std::string why_unknown(const std::string& name, const std::vector<std::string>& known) {
  if (known.empty()) return "(accepted: none, there are no parameters)";
  return accepted_names(name, known);
}

bad_parameter::bad_parameter(const std::string& what, const std::string& instead, bool has_name)
    : std::invalid_argument("'" + what + "' " + instead),
      given(what),
      why(instead),
      is_known(has_name) {}

void check(parameter_rows rows, const parameter_values& values) {
  for (const auto& [name, value] : values) {
    const parameter_row* const row = find(rows, name);
    if (row == nullptr) {
      std::vector<std::string> known;
      for (const parameter_row& one : rows) known.emplace_back(one.name);
      throw bad_parameter(name, why_unknown(name, known), false);
    }
    if (!row->takes(value))
      throw bad_parameter(name + "=" + std::to_string(value), "(accepted: " + row->range() + ")",
                          true);
  }
}

}  // namespace lockflight::catalogue
