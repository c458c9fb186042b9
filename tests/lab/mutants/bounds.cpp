// The meaning of the mutants' bounds.
#include <charconv>
#include <functional>
#include <map>
#include <sstream>
#include <stdexcept>

#include "tests/lab/mutants/mutant.hpp"

namespace lockflight::mutants {
namespace {

[[nodiscard]] int number_in(const std::string& text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    throw std::invalid_argument("'" + text + "' is no number");
  return value;
}

/// "2", or for each rank "3,3,1,0".
void set_rounds(check::request& asked, const std::string& text) {
  std::istringstream in(text);
  std::vector<int> of;
  for (std::string one; std::getline(in, one, ',');) of.push_back(number_in(one));
  if (of.size() == 1)
    asked.rounds = of.front();
  else
    asked.rounds_of = of;
}

void set_off(check::request& asked, const std::string& text) {
  for (const char c : text) {
    if (c == 'e') asked.how.delayed_effects = false;
    if (c == 's') asked.how.store_buffering = false;
    if (c == 'o') asked.how.reordering = false;
    if (c == 'm') asked.how.report_mixed = false;
  }
}

void set_one(check::request& asked, const std::string& key, const std::string& value) {
  std::map<std::string, int*> counts{{"node_level", &asked.node_level},
                                     {"retries", &asked.how.retries},
                                     {"deaths", &asked.how.deaths},
                                     {"stops", &asked.how.stops}};
  for (const check::part_row& row : check::part_rows) counts[row.key] = &(asked.*row.count);
  const auto count = counts.find(key);
  if (count != counts.end())
    *count->second = number_in(value);
  else if (key == "most_overtaken")
    asked.how.most_overtaken = number_in(value);
  else if (key == "rounds")
    set_rounds(asked, value);
  else if (key == "levels")
    asked.levels = value;
  else if (key == "starvation")
    asked.starvation = check::watched_named(value);
  else if (key == "random")
    asked.random = true, asked.random_until.executions = number_in(value);
  else if (key == "depth")
    asked.random_until.depth = number_in(value);
  else if (key == "seed")
    asked.random_until.seed = static_cast<std::uint64_t>(number_in(value));
  else if (key == "memory")
    asked.how.memory = check::memory_kind::views;  // the only one besides the default
  else if (key == "off")
    set_off(asked, value);
  else
    asked.set[key] =
        number_in(value);  // the checker refuses a parameter that the lock does not have
}

}  // namespace

check::request request_of(const std::string& bound) {
  check::request asked;
  asked.writers = 0;
  asked.until.shorten = false;
  std::istringstream in(bound);
  for (std::string one; in >> one;) {
    const std::size_t equals = one.find('=');
    if (equals == std::string::npos || equals == 0)
      throw std::invalid_argument("'" + one + "' is not KEY=VALUE");
    set_one(asked, one.substr(0, equals), one.substr(equals + 1));
  }
  return asked;
}

}  // namespace lockflight::mutants
