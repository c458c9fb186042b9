// The searches that a mutant without a bound of its own has to be found by.
#pragma once

#include <string>
#include <vector>

#include "lab/check/check.hpp"
#include "tests/lab/mutants/change.hpp"
#include "tests/lab/mutants/mutant.hpp"

namespace lockflight::mutants {

struct named_search {
  std::string name;  ///< as in a table: "writers=2 rounds=2"
  check::request asked;
  bool is_repeated = true;  ///< with a larger bound, if it was too large
};

/// The bounds of a table of mutants, each once, those of all schedules first.
[[nodiscard]] inline std::vector<named_search> searches_of_table(const std::string& path) {
  std::vector<std::string> all, random;
  for (const std::string& line : read_lines(path)) {
    const std::string text = trimmed(line);
    if (!text.starts_with("check ")) continue;
    std::vector<std::string>& into = text.find("random=") == std::string::npos ? all : random;
    const std::string bound = trimmed(text.substr(6));
    if (std::find(into.begin(), into.end(), bound) == into.end()) into.push_back(bound);
  }
  all.insert(all.end(), random.begin(), random.end());
  std::vector<named_search> made;
  for (const std::string& bound : all) made.push_back({bound, request_of(bound)});
  return made;
}

}  // namespace lockflight::mutants
