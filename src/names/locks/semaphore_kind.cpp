#include "names/locks/semaphore_kind.hpp"

#include "base/number.hpp"
#include "lockflight/domain.hpp"
#include "names/locks/value.hpp"

namespace lockflight::detail {
namespace {

constexpr std::string_view units_parameter = "units";
constexpr char before_unit = '\n';

const domain_kind& queue_kind() {
  static const domain_kind& kind = kind_named("flight");
  return kind;
}

// No newcomer overtakes the head of the queue, which sleeps at once, since the holder of the queue
// may wait for long.
const lock::parameter_values& queue_parameters() {
  static const auto* const set = new lock::parameter_values{{"barge", 0}, {"patience", 1}};
  return *set;
}

std::string canonical(const lock::parameter_values& set) {
  int units = 0;
  for (const auto& [name, value] : set) {
    if (name != units_parameter || value < 0 || value > most_units)
      throw domain_error(
          domain_error::reason::invalid,
          "parameter '" + name + "=" + std::to_string(value) +
              "' of a semaphore (accepted: units=1 to units=" + std::to_string(most_units) + ")");
    units = static_cast<int>(value);
  }
  return parameters_of_semaphore(units);
}

domain_kind make_semaphore_kind() {
  domain_kind made = queue_kind();
  made.about.name = "semaphore";
  made.about.source = "lockflight";
  made.canonical = canonical;
  made.words = [](const lock::parameter_values&) {
    return queue_kind().words(queue_parameters()) + rma::line_words;
  };
  made.make = [](domain_participant& me, std::uint32_t first, std::uint32_t words,
                 const lock::parameter_values&) {
    return queue_kind().make(me, first, words - rma::line_words, queue_parameters());
  };
  return made;
}

}  // namespace

const domain_kind& semaphore_kind() {
  static const auto* const made = new domain_kind(make_semaphore_kind());
  return *made;
}

const domain_kind& unit_kind() { return kind_named("flight"); }

std::string parameters_of_semaphore(int units) {
  return std::string(units_parameter) + "=" + std::to_string(units);
}

int units_of_semaphore(const std::string& parameters) {
  const lock::parameter_values set = parse_parameters(parameters);
  const auto found = set.find(std::string(units_parameter));
  return found == set.end() ? 0 : static_cast<int>(found->second);
}

std::string described(const domain_kind& kind, const std::string& parameters) {
  if (!is_semaphore(kind)) return "a " + std::string(kind.about.name);
  const int units = units_of_semaphore(parameters);
  return "a semaphore of " + std::to_string(units) + (units == 1 ? " unit" : " units");
}

semaphore_words words_of_semaphore(std::uint32_t first_word, std::uint32_t words) {
  const std::uint32_t line = first_word + words - rma::line_words;
  return {line, line + 1, line + 2, line + 3};
}

std::string name_of_unit(std::string_view semaphore, int unit) {
  return std::string(semaphore) + before_unit + std::to_string(unit);
}

user_name user_name_of(std::string_view name) {
  const std::size_t at = name.rfind(before_unit);
  if (at == std::string_view::npos) return {name};
  if (is_name_of_value(name)) return {name.substr(0, at), -1, true};
  const auto unit = read_number<int>(name.substr(at + 1));
  if (unit && *unit >= 0 && *unit < most_units) return {name.substr(0, at), *unit};
  return {name};
}

}  // namespace lockflight::detail
