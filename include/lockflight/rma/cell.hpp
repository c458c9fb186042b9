// Cells: the words that locks are made of. The class of a cell, a part of its type, says which
// participants may read-modify-write it and how; an access that a network would not make atomic
// does not compile.
//
// Source: Table 1 of the ALock paper ("ALock: Asymmetric Lock Primitive for RDMA Systems", section
// 2), as a type system. The full text is docs/contract.md, clauses C1 to C4.
#pragma once

#include <compare>
#include <cstdint>

#include "lockflight/rma/assert.hpp"
#include "lockflight/rma/cxx20.hpp"

namespace lockflight::rma {

/// The unit of atomicity: an aligned 8-byte word.
using word = std::uint64_t;

/// A participant's number, 0 to P - 1. (The papers count from 1.)
using rank_t = std::int32_t;

/// How a cell may be read-modified-written.
enum class cell_class : std::uint8_t {
  cpu,    ///< by CPU atomics only, by participants on the owner's node
  nic,    ///< through the fabric only, by any participant; loopback on the owner's node
  plain,  ///< not at all: the cell is only read and written
};

/// The global address of a cell: the rank that owns it and its index, in words, in that rank's
/// segment. 8 bytes, trivially copyable; `to_word` makes it storable in another cell.
template <cell_class Class>
struct cell {
  static constexpr cell_class class_of = Class;

  rank_t home = -1;
  std::uint32_t index = 0;

  /// The cell `words` further on in the same segment.
  [[nodiscard]] constexpr cell operator+(std::uint32_t words) const {
    return {home, index + words};
  }
  /// The cell with the same index in the segment of `rank` (segments are symmetric, clause C20).
  [[nodiscard]] constexpr cell at(rank_t rank) const { return {rank, index}; }

  friend constexpr auto operator<=>(const cell&, const cell&) = default;
};

/// A cell of that class, or one that a port has resolved.
template <class Cell, cell_class Class>
concept of_class = Cell::class_of == Class;

using cpu_cell = cell<cell_class::cpu>;
using nic_cell = cell<cell_class::nic>;
using plain_cell = cell<cell_class::plain>;

/// A reference to a cell, packed into a word. 0 is "no cell": index 0 is never given out (C21), so
/// zeroed memory is full of null references.
constexpr word null_ref = 0;

template <cell_class Class>
[[nodiscard]] constexpr word to_word(cell<Class> c) {
  return (static_cast<word>(static_cast<std::uint32_t>(c.home)) << 32) | c.index;
}

/// The inverse of `to_word`. The caller names the class that the cell was packed with.
template <class Cell>
[[nodiscard]] constexpr Cell from_word(word ref) {
  return {static_cast<rank_t>(ref >> 32), static_cast<std::uint32_t>(ref)};
}

static_assert(sizeof(nic_cell) == sizeof(word), "a global reference is 8 bytes");
static_assert(from_word<plain_cell>(to_word(plain_cell{7, 42})) == plain_cell{7, 42});
static_assert(to_word(plain_cell{0, 1}) != null_ref);

}  // namespace lockflight::rma
