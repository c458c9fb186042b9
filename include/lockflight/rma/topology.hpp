// The machine as a tree of elements: level 1 is the whole machine, level N has its smallest
// elements. Levels count from 1 as in the papers, elements and ranks from 0.
//
// Source: e(p, i) of "High-Performance Distributed RMA Locks", the element of level i that rank p
// belongs to.
//
// Cost: built once and shared by all participants of a process; look-ups are O(1).
#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "lockflight/rma/cell.hpp"
#include "lockflight/rma/refuse.hpp"

namespace lockflight::rma {

/// Which element of each level a rank belongs to, and which level is the *node*: the largest
/// element whose ranks share coherent memory.
class topology {
 public:
  /// `element_of_level[i - 1][rank]` is rank's element at level i. Level 1 must be all zeroes and
  /// each level must refine the one above; `node_level` is in 1..N. Throws std::invalid_argument.
  topology(std::vector<std::vector<int>> element_of_level, int node_level)
      : element_of_(std::move(element_of_level)), node_level_(node_level) {
    check_levels();
    for (std::size_t i = 0; i < element_of_.size(); ++i) collect_leaders(i);
    std::vector<int> sizes(leaders(node_level_).size());
    for (const int node : nodes_of_ranks())
      largest_node_ = std::max(largest_node_, ++sizes[static_cast<std::size_t>(node)]);
  }

  /// A balanced tree: `fanouts` = {2, 4} is 2 elements of 4 ranks below the machine. The nodes are
  /// the elements of `node_level`; 0 means the smallest elements. Throws std::invalid_argument.
  static topology balanced(const std::vector<int>& fanouts, int node_level = 0) {
    std::size_t ranks = 1;
    for (const int fanout : fanouts) {
      if (fanout < 1) refuse("a level of %d elements", fanout);
      ranks *= static_cast<std::size_t>(fanout);
    }
    topology made;
    std::size_t elements = 1;
    for (const int fanout : fanouts) {
      made.add_equal_elements(elements, ranks / elements);
      elements *= static_cast<std::size_t>(fanout);
    }
    made.node_level_ = node_level == 0 ? made.levels() : node_level;
    made.check_levels();
    made.largest_node_ = made.ranks() / made.nodes();
    return made;
  }

  /// A topology of one element: `ranks` ranks that share memory.
  static topology flat(int ranks) { return balanced({ranks}); }

  [[nodiscard]] int ranks() const { return static_cast<int>(element_of_.front().size()); }
  /// N, the number of levels.
  [[nodiscard]] int levels() const { return static_cast<int>(element_of_.size()); }
  [[nodiscard]] int node_level() const { return node_level_; }
  /// N_i, the number of elements at a level.
  [[nodiscard]] int elements(int level) const { return static_cast<int>(leaders(level).size()); }
  [[nodiscard]] int nodes() const { return elements(node_level_); }
  /// The most ranks that a node has.
  [[nodiscard]] int largest_node() const { return largest_node_; }

  /// e(p, i): the element that `rank` belongs to at `level`.
  [[nodiscard]] int element_of(rank_t rank, int level) const {
    return element_of_[static_cast<std::size_t>(level - 1)][static_cast<std::size_t>(rank)];
  }
  [[nodiscard]] int node_of(rank_t rank) const { return element_of(rank, node_level_); }
  /// [rank], for callers that ask at every operation.
  [[nodiscard]] const std::vector<int>& nodes_of_ranks() const {
    return element_of_[static_cast<std::size_t>(node_level_ - 1)];
  }
  [[nodiscard]] bool same_node(rank_t a, rank_t b) const { return node_of(a) == node_of(b); }

  /// The lowest rank of an element; it hosts the element's cells (tail_rank[i, j] in the paper).
  [[nodiscard]] rank_t leader(int level, int element) const {
    return leaders(level)[static_cast<std::size_t>(element)];
  }
  [[nodiscard]] rank_t leader_of(rank_t rank, int level) const {
    return leader(level, element_of(rank, level));
  }

  /// The deepest level at which two ranks share an element: N if they share a smallest element, 1
  /// if they share only the machine.
  [[nodiscard]] int common_level(rank_t a, rank_t b) const {
    int level = levels();
    while (level > 1 && element_of(a, level) != element_of(b, level)) --level;
    return level;
  }

 private:
  [[nodiscard]] const std::vector<rank_t>& leaders(int level) const {
    return leaders_[static_cast<std::size_t>(level - 1)];
  }

  topology() = default;

  void check_levels() const {
    if (element_of_.empty() || element_of_.front().empty())
      throw std::invalid_argument("a topology needs at least one level and one rank");
    if (node_level_ < 1 || node_level_ > levels())
      refuse("node level %d is not in 1..%d", node_level_, levels());
  }

  /// Adds a level, which is known to refine the one above.
  void add_equal_elements(std::size_t elements, std::size_t ranks_of_each) {
    std::vector<int> element_of(elements * ranks_of_each);
    std::vector<rank_t> leaders(elements);
    for (std::size_t element = 0; element < elements; ++element) {
      leaders[element] = static_cast<rank_t>(element * ranks_of_each);
      for (std::size_t i = 0; i < ranks_of_each; ++i)
        element_of[element * ranks_of_each + i] = static_cast<int>(element);
    }
    element_of_.push_back(std::move(element_of));
    leaders_.push_back(std::move(leaders));
  }

  void collect_leaders(std::size_t i) {
    const auto& element_of = element_of_[i];
    if (element_of.size() != element_of_.front().size())
      refuse("level %zu has another number of ranks", i + 1);
    const int count = *std::max_element(element_of.begin(), element_of.end()) + 1;
    std::vector<rank_t> leaders(static_cast<std::size_t>(count), -1);
    for (std::size_t r = 0; r < element_of.size(); ++r) {
      if (element_of[r] < 0) throw std::invalid_argument("negative element number");
      rank_t& leader = leaders[static_cast<std::size_t>(element_of[r])];
      if (leader < 0) leader = static_cast<rank_t>(r);
      const auto lead = static_cast<std::size_t>(leader);
      if (i > 0 && element_of_[i - 1][r] != element_of_[i - 1][lead])
        refuse("level %zu does not refine level %zu", i + 1, i);
    }
    if (i == 0 && count != 1) throw std::invalid_argument("level 1 must be one element");
    if (std::find(leaders.begin(), leaders.end(), -1) != leaders.end())
      refuse("level %zu has an empty element", i + 1);
    leaders_.push_back(std::move(leaders));
  }

  std::vector<std::vector<int>> element_of_;
  std::vector<std::vector<rank_t>> leaders_;
  int node_level_ = 0;
  int largest_node_ = 0;
};

/// Reads "2x4" into {2, 4}. Throws std::invalid_argument that says what is accepted.
inline std::vector<int> parse_levels(std::string_view spec) {
  constexpr int most = 1 << 24;
  constexpr std::size_t most_shown = 100;
  const auto refuse_spec = [&] {
    refuse("'%.*s' (accepted: positive numbers joined by x, such as 2x4)",
           static_cast<int>(std::min(spec.size(), most_shown)), spec.data());
  };
  std::vector<int> fanouts;
  const char* at = spec.data();
  const char* const end = at + spec.size();
  long long ranks = 1;
  while (true) {
    int fanout = 0;
    const auto [next, error] = std::from_chars(at, end, fanout);
    if (error != std::errc() || fanout < 1 || (ranks *= fanout) > most) refuse_spec();
    fanouts.push_back(fanout);
    if (next == end) return fanouts;
    if (*next != 'x') refuse_spec();
    at = next + 1;
  }
}

}  // namespace lockflight::rma
