// The words of cql: its header, and its entries.
//
// Source: "DecLock: A Case of Decoupled Locking for Disaggregated Memory" (arXiv 2505.17641): excl,
// size and head of the header, and the entries of the queue.
#pragma once

#include <cstdint>

#include "lockflight/rma/layout.hpp"
#include "lockflight/rma/packed.hpp"

namespace lockflight::lock {

/// The word of a cql lock. `head` lies on top, where a carry leaves the word.
struct cql_header : rma::packed<cql_header> {
  static constexpr rma::field writers{.at = 0, .bits = 16};  ///< excl: places of writers
  static constexpr rma::field size{.at = 16, .bits = 16};  ///< places in the queue, of holders too
  static constexpr rma::field head{.at = 32, .bits = 32};  ///< the number of the first place
  static_assert(rma::are_disjoint({writers, size, head}));

  /// The sum that an arrival adds; a release subtracts it and serves a place.
  [[nodiscard]] static constexpr rma::word arrival(bool exclusive) {
    return (rma::word{1} << size.at) + (exclusive ? rma::word{1} << writers.at : 0);
  }
  [[nodiscard]] static constexpr rma::word release(bool exclusive) {
    return (rma::word{1} << head.at) - arrival(exclusive);
  }

  /// The number of the place after the last one: 32 bits that wrap around.
  [[nodiscard]] constexpr std::uint32_t end() const {
    return static_cast<std::uint32_t>(get(head) + get(size));
  }
  /// True if the first place comes after this one. Numbers wrap around.
  [[nodiscard]] constexpr bool has_served(std::uint32_t place_number) const {
    const auto ahead = static_cast<std::uint32_t>(get(head)) - place_number;
    return ahead != 0 && ahead < 1u << 31;
  }
  [[nodiscard]] constexpr bool admits(bool exclusive) const {
    return exclusive ? get(size) == 0 : get(writers) == 0;
  }
};

/// An entry of the ring: a waiter and its place. All zero: none.
struct cql_entry : rma::packed<cql_entry> {
  static constexpr rma::field written{.at = 0, .bits = 1};
  static constexpr rma::field exclusive{.at = 1, .bits = 1};
  static constexpr rma::field node{.at = 2, .bits = 6};  ///< which of the waiter's queue nodes
  static constexpr rma::field rank{.at = 8, .bits = 24};
  static constexpr rma::field place{.at = 32, .bits = 32};
  static_assert(rma::are_disjoint({written, exclusive, node, rank, place}));

  /// Queue nodes are the first cells of a segment, so their lines have small numbers.
  [[nodiscard]] static constexpr cql_entry of(rma::plain_cell first, bool is_exclusive,
                                              std::uint32_t place_number) {
    return cql_entry{}
        .with(written)
        .with(exclusive, is_exclusive ? 1 : 0)
        .with(node, first.index / rma::line_words)
        .with(rank, static_cast<rma::word>(first.home))
        .with(place, place_number);
  }
  [[nodiscard]] constexpr rma::plain_cell waiter() const {
    return {static_cast<rma::rank_t>(get(rank)),
            static_cast<std::uint32_t>(get(node)) * rma::line_words};
  }
  [[nodiscard]] constexpr bool is_of(std::uint32_t place_number) const {
    return has(written) && get(place) == place_number;
  }
  /// True if the entry is of a place from `first` to before `end`. Numbers wrap around.
  [[nodiscard]] constexpr bool is_of_one(std::uint32_t first, std::uint32_t end) const {
    return has(written) && static_cast<std::uint32_t>(get(place)) - first < end - first;
  }
  /// True if the entry is of a place after this one. Numbers wrap around.
  [[nodiscard]] constexpr bool is_after(std::uint32_t place_number) const {
    const auto ahead = static_cast<std::uint32_t>(get(place)) - place_number;
    return has(written) && ahead != 0 && ahead < 1u << 31;
  }
};

}  // namespace lockflight::lock
