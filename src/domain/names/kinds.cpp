#include "domain/names/kinds.hpp"

#include "catalogue/nearest.hpp"
#include "catalogue/parameters.hpp"

namespace lockflight::detail {

void add_flight_kinds(std::vector<domain_kind>& to);
void add_queue_kinds(std::vector<domain_kind>& to);
void add_rw_kinds(std::vector<domain_kind>& to);

const std::vector<domain_kind>& domain_kinds() {
  static const auto* const all = [] {
    auto* const made = new std::vector<domain_kind>;  // for threads that outlive static objects
    add_flight_kinds(*made);
    add_queue_kinds(*made);
    add_rw_kinds(*made);
    return made;
  }();
  return *all;
}

const domain_kind* find_kind(std::string_view name) {
  for (const domain_kind& one : domain_kinds())
    if (one.name == name) return &one;
  return nullptr;
}

const domain_kind& kind_named(std::string_view name) {
  if (const domain_kind* const found = find_kind(name)) return *found;
  std::vector<std::string> known;
  for (const domain_kind& one : domain_kinds()) known.emplace_back(one.name);
  throw domain_error(domain_error::reason::invalid,
                     in_a_line("kind '" + std::string(name) + "' ") +
                         catalogue::accepted_names(std::string(name), known));
}

std::string without_defaults(const domain_kind& kind, const std::string& parameters) {
  const auto defaults = parse_parameters(kind.canonical({}));
  std::string text;
  for (const auto& [name, value] : parse_parameters(parameters)) {
    if (defaults.at(name) == value) continue;
    text += (text.empty() ? "" : ",") + name + "=" + std::to_string(value);
  }
  return text;
}

lock::parameter_values parse_parameters(std::string_view text) {
  try {
    return catalogue::parse_assignments(text);
  } catch (const std::invalid_argument& e) {
    throw domain_error(domain_error::reason::invalid, in_a_line(e.what()));
  }
}

}  // namespace lockflight::detail
