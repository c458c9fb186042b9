#include "names/locks/semaphore_kind.hpp"

#include "base/number.hpp"
#include "lockflight/domain.hpp"
#include "names/locks/value.hpp"

namespace lockflight::detail {
namespace {

constexpr std::string_view units_parameter = "units";
constexpr std::string_view mask_parameter = "mask";
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

/// Nothing for parameters that no semaphore has.
std::optional<unit_set> units_from(const lock::parameter_values& set) {
  rma::word bits = 0;
  for (const auto& [name, value] : set)
    if (name == mask_parameter && value > 0)
      return unit_set::of_mask(static_cast<rma::word>(value));
    else if (name == units_parameter && value > 0 && bits == 0)
      bits = static_cast<rma::word>(value);
    else if (name != units_parameter)
      return std::nullopt;
  return unit_set::from(bits);
}

std::string canonical(const lock::parameter_values& set) {
  if (const auto units = units_from(set)) return parameters_of_semaphore(*units);
  for (const auto& [name, value] : set)
    if (name != units_parameter || value != 0)
      throw domain_error(
          domain_error::reason::invalid,
          "parameter '" + name + "=" + std::to_string(value) +
              "' of a semaphore (accepted: units=1 to units=" + std::to_string(most_units) + ")");
  return parameters_of_semaphores;
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

std::string parameters_of_semaphore(const unit_set& units) {
  std::string text = std::string(units_parameter) + "=" + std::to_string(units.count());
  if (units.is_chosen())
    text += "," + std::string(mask_parameter) + "=" + std::to_string(units.mask());
  return text;
}

unit_set units_of_semaphore(const std::string& parameters) {
  return units_from(parse_parameters(parameters)).value();
}

std::string described(const domain_kind& kind, const std::string& parameters) {
  if (!is_semaphore(kind)) return "a " + std::string(kind.about.name);
  return "a semaphore of " + units_of_semaphore(parameters).described();
}

namespace {
template <class Set>
unit_set checked(const domain_file& file, const Set& found) {
  if (!found) file.throw_damaged("has been written over");
  return *found;
}
}  // namespace

std::optional<unit_set> set_units_in(const domain_file& file, const semaphore_words& words) {
  const rma::word now = file.word(words.present).load(std::memory_order_acquire);
  return (now & set_by_operator::mark) == 0
             ? std::nullopt
             : std::optional(checked(file, set_by_operator::from(now)));
}

unit_set units_from_words(const domain_file& file, const semaphore_words& words) {
  const rma::word now = file.word(words.present).load(std::memory_order_acquire);
  if (now != 0) return checked(file, unit_set::from(now & ~set_by_operator::mark));
  const rma::word chosen = file.word(words.chosen).load(std::memory_order_acquire);
  return checked(
      file, unit_set::from(chosen != 0 ? chosen
                                       : file.word(words.units).load(std::memory_order_acquire)));
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
