// The papers' claims about speed, as read from claim files; lab/claims/README.md explains the keys.
#pragma once

#include <cstdint>
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
  direction,  ///< above or below, by more than chance
};
[[nodiscard]] std::string_view to_string(kind what);

/// The settings of a run by their names in claim files: values that were checked, with the paper's
/// machine filled in. Equal ones are the same run.
using run = nlohmann::json;

/// A number from one run, or from two: the first run's metric divided by the second's, or less
/// the second's. With a sweep there are several such numbers, of which one counts.
struct quotient {
  enum class side : std::uint8_t { numerator, denominator, both };
  enum class taking : std::uint8_t {
    most,
    least,
    spread,  ///< the most divided by the least
  };

  run numerator;
  std::optional<run> denominator;
  std::optional<run> less;  ///< instead of a denominator
  std::vector<run> sweep;   ///< each laid over the runs of `sweep_of`; empty: the runs as they are
  taking take = taking::most;
  side sweep_of = side::both;
};

/// How to measure a claim.
struct measure {
  std::string metric;
  quotient of;
  std::optional<quotient> relative_to;  ///< by which `of` is divided
};

/// Why a claim is missed, in a word.
enum class cause : std::uint8_t {
  model,     ///< the model of the machine lacks a cost, or has another one
  lock,      ///< our lock differs from the one that was measured
  workload,  ///< our run differs from theirs
  paper,     ///< the paper leaves something open, or contradicts itself
};
[[nodiscard]] std::string_view to_string(cause why);

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
  std::string missed;            ///< why it is missed, as far as we know; empty if it should hold
  std::optional<cause> because;  ///< the same in a word
  std::string needs;             ///< the means that a measurement lacks; then there is no `how`
  std::optional<measure> how;
  std::string at;  ///< "lab/claims/rma.toml:12"
};

/// A point of a figure whose value the paper's text gives.
struct printed_point {
  std::string curve;
  nlohmann::json x;  ///< a number or a text, as that of the figure's points
  double y = 0;
  std::string said;  ///< where
};

/// A figure of the paper, or one of its panels: our curves on its axes.
struct figure {
  enum class scale : std::uint8_t { linear, logarithmic };
  /// A position on the x axis.
  struct point {
    nlohmann::json x;  ///< a number, or a text
    run with;          ///< settings that make the point
  };
  struct curve {
    std::string name;
    std::string metric;
    std::vector<run> runs;  ///< for each point one; of a distribution exactly one
  };

  std::string paper;
  std::string name;   ///< "figure 3", as in the claims' `where`
  std::string panel;  ///< "a"; empty: the only one
  std::string title;
  std::string metric;
  std::string unit;  ///< of the y axis, or of the x axis of a distribution
  std::string x_label;
  scale x_scale = scale::linear;
  scale y_scale = scale::linear;
  std::vector<point> points;  ///< empty: a distribution
  std::vector<curve> curves;
  std::vector<printed_point> printed;
  std::string note;
  std::string at;  ///< "lab/claims/rma.toml:12"
};

struct paper {
  std::string name;
  std::string title;
  std::string machine;
  std::vector<claim> claims;
  std::vector<figure> figures;
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

/// The texts of lab/claims/, by name. Generated (CMakeLists.txt).
[[nodiscard]] const std::vector<built_in_claims>& all_built_in_claims();

/// The names of the papers.
[[nodiscard]] std::vector<std::string> names_of_papers();

/// The papers of that name, or that file, or "all". Throws bad_claims.
[[nodiscard]] std::vector<paper> find_papers(const std::string& name_or_path);

}  // namespace lockflight::reproduce
