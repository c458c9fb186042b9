#include "names/locks/kinds.hpp"

#include "base/joined.hpp"
#include "catalogue/nearest.hpp"
#include "catalogue/parameters.hpp"
#include "lockflight/lock/all.hpp"
#include "names/locks/semaphore_kind.hpp"
#include "names/locks/value.hpp"

namespace lockflight::detail {

const std::vector<domain_kind>& domain_kinds() {
  static const auto* const all = [] {
    // The list is never destroyed, because threads may outlive static objects.
    auto* const made = new std::vector<domain_kind>(lock::all::size);
    [&]<std::size_t... Part>(std::index_sequence<Part...>) {
      (make_kinds<Part, LOCKFLIGHT_PARTS>(*made), ...);
    }(std::make_index_sequence<LOCKFLIGHT_PARTS>{});
    // Removes locks that need messages, which a domain does not have.
    std::erase_if(*made, [](const domain_kind& each) { return each.make == nullptr; });
    return made;
  }();
  return *all;
}

const domain_kind* find_kind(std::string_view name) {
  for (const domain_kind& one : domain_kinds())
    if (one.about.name == name) return &one;
  for (const domain_kind* const one : {&semaphore_kind(), &value_kind()})
    if (one->about.name == name) return one;
  return nullptr;
}

const domain_kind& kind_named(std::string_view name) {
  std::vector<std::string> known;
  for (const domain_kind& one : domain_kinds()) {
    if (one.about.name == name) return one;
    known.emplace_back(one.about.name);
  }
  throw domain_error(domain_error::reason::invalid,
                     visible("kind '" + std::string(name) + "' ") +
                         catalogue::accepted_names(std::string(name), known));
}

std::string without_defaults(const domain_kind& kind, const std::string& parameters) {
  const auto defaults = parse_parameters(kind.canonical({}));
  std::vector<std::string> changed;
  for (const auto& [name, value] : parse_parameters(parameters))
    // A semaphore has one that is there only if its units were chosen.
    if (const auto usual = defaults.find(name); usual == defaults.end() || usual->second != value)
      changed.push_back(name + "=" + std::to_string(value));
  return joined(changed, ",");
}

lock::parameter_values parse_parameters(std::string_view text) {
  try {
    return catalogue::parse_assignments(text);
  } catch (const std::invalid_argument& e) {
    throw domain_error(domain_error::reason::invalid, visible(e.what()));
  }
}

}  // namespace lockflight::detail
