// A machine to show: its topology with names, processors and the places of locks' words.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "lockflight/rma/topology.hpp"

namespace lockflight::cli {

struct machine_view {
  rma::topology machine;
  bool from_hwloc = false;                        ///< by hwloc; else given
  std::vector<std::string> level_names = {};      ///< [level - 1]
  std::vector<int> processor_of_rank = {};        ///< empty for machines given by --levels
  std::vector<rma::rank_t> counter_of_rank = {};  ///< c(p) of rma-rw with its default T_DC

  std::vector<std::vector<std::vector<int>>> members = {};  ///< [level - 1][element]: its ranks

  [[nodiscard]] const std::string& name(int level) const {
    return level_names[static_cast<std::size_t>(level - 1)];
  }
  [[nodiscard]] bool knows_processors() const { return !processor_of_rank.empty(); }

  [[nodiscard]] const std::vector<int>& ranks_of(int level, int element) const {
    return members[static_cast<std::size_t>(level - 1)][static_cast<std::size_t>(element)];
  }
  /// The elements one level down.
  [[nodiscard]] std::vector<int> children(int level, int element) const;
  [[nodiscard]] std::vector<int> processors_of(int level, int element) const;
  /// The ranks of a node that host counters.
  [[nodiscard]] std::vector<int> counters_of(int node) const;
  /// "4", or "3-4" where elements differ.
  [[nodiscard]] std::string ranks_in_each(int level) const;
};

/// The machine that the options describe. Throws usage_error.
[[nodiscard]] machine_view look_at_machine(const std::optional<std::string>& levels,
                                           const std::optional<std::string>& procs,
                                           const std::optional<std::string>& node_level);

[[nodiscard]] nlohmann::ordered_json machine_json(const machine_view& view);

}  // namespace lockflight::cli
