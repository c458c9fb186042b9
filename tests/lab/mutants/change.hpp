// A change of a source's text that makes a mutant, and how tables of mutants are read.
#pragma once

#include <algorithm>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace lockflight::mutants {

using lines = std::vector<std::string>;

/// Whole lines, but for their indentation.
struct change {
  std::string file;
  lines before;
  lines after;
};

[[nodiscard]] inline std::string trimmed(const std::string& text) {
  const std::size_t first = text.find_first_not_of(' ');
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

[[nodiscard]] inline lines read_lines(const std::string& path) {
  std::ifstream in(path);
  if (!in) throw std::runtime_error("cannot read " + path);
  lines all;
  for (std::string line; std::getline(in, line);) all.push_back(line);
  return all;
}

/// Replaces the one place in `source` that reads like `what.before`. False if there is not one.
[[nodiscard]] inline bool apply(const change& what, lines& source) {
  const auto alike = [](const std::string& line, const std::string& wanted) {
    return trimmed(line) == wanted;
  };
  const auto find_from = [&](lines::iterator from) {
    return std::search(from, source.end(), what.before.begin(), what.before.end(), alike);
  };
  const auto at = find_from(source.begin());
  if (what.before.empty() || at == source.end() || find_from(at + 1) != source.end()) return false;
  const auto hole = source.erase(at, at + static_cast<std::ptrdiff_t>(what.before.size()));
  lines put = what.after;
  put.insert(put.begin(), "// MUTANT:");
  source.insert(hole, put.begin(), put.end());
  return true;
}

}  // namespace lockflight::mutants
