// The papers' claims about speed, as read from claim files; claims/README.md explains the keys.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace lockflight::reproduce {

/// A claim file that cannot be used: one line with the file, the line in it, the key, its value and
/// what is accepted.
struct bad_claims : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

enum class kind : std::uint8_t {
  ratio,      ///< within a factor
  value,      ///< within a fraction
  direction,  ///< above or below, without tolerance
};
[[nodiscard]] std::string_view to_string(kind what);

/// The settings of a run by their names in claim files: values that were checked, with the paper's
/// machine filled in. Equal ones are the same run.
using run = nlohmann::json;

/// How to measure a claim.
struct measure {
  enum class side : std::uint8_t { numerator, denominator, both };

  std::string metric;
  run numerator;
  std::optional<run> denominator;
  std::vector<run> sweep;  ///< each laid over the runs of `sweep_of`; empty: the runs as they are
  bool take_most = true;
  side sweep_of = side::both;
};

struct claim {
  std::string paper;
  std::string id;
  std::string where;
  std::string what;
  kind how_close = kind::direction;
  char relation = '>';  ///< direction: how our value relates to `value`
  double value = 0;
  std::string unit;
  bool calibrated = false;
  bool quick = false;  ///< measured in a second
  std::string note;
  std::string needs;  ///< what is missing to measure it; then there is no `how`
  std::optional<measure> how;
  std::string at;  ///< "claims/rma.toml:12"
};

struct paper {
  std::string name;
  std::string title;
  std::string machine;
  std::vector<claim> claims;
};

/// "figure 3" of "section 5.1, figure 3", "table 2", or "text".
[[nodiscard]] std::string figure_of(const claim& c);

/// Reads a claim file's text; `path` is for errors. Throws bad_claims.
[[nodiscard]] paper parse_claims(std::string_view text, const std::string& path);

/// A claim file that is part of the program.
struct built_in_claims {
  std::string_view name;
  std::string_view text;
};

/// Those of claims/, by name. Generated (CMakeLists.txt).
[[nodiscard]] const std::vector<built_in_claims>& all_built_in_claims();

/// Their names.
[[nodiscard]] std::vector<std::string> names_of_papers();

/// The papers of that name, or that file, or "all". Throws bad_claims.
[[nodiscard]] std::vector<paper> find_papers(const std::string& name_or_path);

}  // namespace lockflight::reproduce
