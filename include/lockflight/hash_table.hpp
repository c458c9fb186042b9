// A distributed hash table of 64-bit integers: a set that participants fill and search with
// one-sided operations. Keys cannot be removed.
//
// Source: the DHT of "High-Performance Distributed RMA Locks", section 5.3, after the one of foMPI.
// Every rank owns a *local volume*. It consists of a table of elements, and of an overflow heap for
// elements whose place in the table is taken; both are arrays of fixed size. A participant inserts
// a key into the table by a compare-and-swap. If another key has the place, the participant takes
// an element of the heap by incrementing the volume's next-free pointer, and links this element to
// the end of the chain by a second compare-and-swap.
//
// Invariants: the operations are safe without a lock (the paper's foMPI-A). An insert takes effect
// with the compare-and-swap that puts the key into the table or links its element. A search finds
// every key whose insert has returned. Use a lock if several operations have to be atomic together,
// or to measure the lock.
//
// Cost in network operations, with c elements in the chain:
// | insert, free place of the table | 1 compare-swap                                       |
// | insert, collision               | 1 compare-swap, 2 c - 1 gets in c round trips        |
// | the same, new key               | 1 fetch-add, 1 put, 1 compare-swap more              |
// | contains                        | 2 gets in 1 round trip for each element that is read |
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include "lockflight/rma/cxx20.hpp"
#include "lockflight/rma/participant.hpp"

namespace lockflight {

/// How many elements each local volume has. The first element of a chain is in the table, and the
/// others come from the heap, so n different keys need at most n elements of the heap.
struct hash_table_shape {
  std::uint32_t table = 1024;
  std::uint32_t heap = 1024;
};

template <rma::port Port>
class hash_table {
 public:
  /// The one key that cannot be stored, because fresh memory has to be an empty table.
  static constexpr std::uint64_t reserved_key = ~std::uint64_t{0};

  /// All participants must construct the table at the same point of their layout. This takes no
  /// communication. Throws std::length_error if the segments are full, and std::invalid_argument if
  /// the shape is not accepted.
  explicit hash_table(rma::participant<Port>& me, hash_table_shape shape = {})
      : port_(me.port()), shape_(checked(shape)) {
    next_free_ = me.cells().template take<rma::nic_cell>(1);
    table_ = me.cells().template take<rma::nic_cell>(element_words * shape.table);
    heap_ = me.cells().template take<rma::nic_cell>(element_words * shape.heap);
  }

  /// The rank to whose local volume a key belongs if the table is spread over all ranks.
  [[nodiscard]] rma::rank_t volume_of(std::uint64_t key) const {
    const auto ranks = static_cast<std::uint64_t>(port_.machine().ranks());
    return static_cast<rma::rank_t>((scattered(key) >> 32) * ranks >> 32);
  }

  /// Inserts a key. Returns false if the key is in the table already. Throws std::length_error if
  /// the heap is full, and std::invalid_argument for the reserved key.
  bool insert(std::uint64_t key) { return insert_at(volume_of(key), key); }

  /// True if the key is in the table.
  [[nodiscard]] bool contains(std::uint64_t key) { return contains_at(volume_of(key), key); }

  /// The same in the local volume of a given rank. The caller must use the same volume for a key
  /// each time.
  bool insert_at(rma::rank_t volume, std::uint64_t key) {
    const rma::word stored = to_stored(key);
    element at{.where = first_of(volume, key)};
    at.key = rma::compare_swap_now(port_, at.where, empty, stored);
    if (at.key == empty) return true;

    // Another key has the place. Of the table's element only NEXT is not read yet.
    at.next = rma::get_now(port_, at.where + next_word);
    std::uint64_t mine = none;
    while (true) {
      at = follow(volume, at, stored);
      if (at.key == stored) return false;  // an element that we have taken stays unused
      if (mine == none) mine = take(volume, stored);
      // The key is complete (put and flushed) before another participant can find the element.
      at.next = rma::compare_swap_now(port_, at.where + next_word, none, mine);
      if (at.next == none) return true;
    }
  }

  [[nodiscard]] bool contains_at(rma::rank_t volume, std::uint64_t key) {
    const rma::word stored = to_stored(key);
    return follow(volume, read(first_of(volume, key)), stored).key == stored;
  }

  /// How many elements of a volume's heap have been taken. Costs 1 get.
  [[nodiscard]] std::uint64_t heap_used(rma::rank_t volume) {
    return rma::get_now(port_, next_free_.at(volume));
  }

 private:
  // The words of an element.
  static constexpr std::uint32_t key_word = 0;  // the key + 1, or `empty`
  static constexpr std::uint32_t next_word =
      1;  // the number of the next element in the heap, from 1, or `none`
  static constexpr std::uint32_t element_words = 2;
  static constexpr rma::word empty = 0;
  static constexpr rma::word none = 0;

  struct element {
    rma::nic_cell where;
    rma::word key = empty;
    rma::word next = none;
  };

  [[nodiscard]] static hash_table_shape checked(hash_table_shape shape) {
    constexpr std::uint32_t most = UINT32_MAX / element_words;
    if (shape.table < 1 || shape.table > most || shape.heap > most)
      throw std::invalid_argument("a hash table with " + std::to_string(shape.table) + " + " +
                                  std::to_string(shape.heap) + " elements (accepted: 1 to " +
                                  std::to_string(most) + " + 0 to " + std::to_string(most) + ")");
    return shape;
  }

  [[nodiscard]] static rma::word to_stored(std::uint64_t key) {
    if (key == reserved_key) throw std::invalid_argument("the key 2^64 - 1 cannot be stored");
    return key + 1;
  }

  // The finalizer of splitmix64: the high half chooses the volume, the low half the place.
  [[nodiscard]] static constexpr std::uint64_t scattered(std::uint64_t key) {
    key = (key ^ (key >> 30)) * 0xbf58476d1ce4e5b9;
    key = (key ^ (key >> 27)) * 0x94d049bb133111eb;
    return key ^ (key >> 31);
  }

  [[nodiscard]] rma::nic_cell first_of(rma::rank_t volume, std::uint64_t key) const {
    const std::uint64_t low = static_cast<std::uint32_t>(scattered(key));
    const auto place = static_cast<std::uint32_t>(low * shape_.table >> 32);
    return table_.at(volume) + element_words * place;
  }

  // Both gets in one round trip, in any order: the chain behind NEXT was complete when it was
  // linked, and a key that came into the table between the two gets was inserted during this call.
  [[nodiscard]] element read(rma::nic_cell where) {
    element e{.where = where};
    port_.get(where + key_word, e.key);
    port_.get(where + next_word, e.next);
    port_.flush(where.home);
    return e;
  }

  // From `at` on, the element with the key, or the chain's last.
  [[nodiscard]] element follow(rma::rank_t volume, element at, rma::word stored) {
    while (at.key != stored && at.next != none) {
      const auto place = static_cast<std::uint32_t>(at.next - 1);
      at = read(heap_.at(volume) + element_words * place);
    }
    return at;
  }

  // A fresh element of the heap with the key in it, its NEXT `none`. Returns its number from 1.
  [[nodiscard]] rma::word take(rma::rank_t volume, rma::word stored) {
    const rma::word taken = rma::fetch_add_now(port_, next_free_.at(volume), 1);
    if (taken >= shape_.heap)
      throw std::length_error("the overflow heap of rank " + std::to_string(volume) +
                              "'s local volume is full: " + std::to_string(shape_.heap) +
                              " elements");
    const auto place = static_cast<std::uint32_t>(taken);
    rma::put_now(port_, heap_.at(volume) + element_words * place + key_word, stored);
    return taken + 1;
  }

  Port& port_;
  hash_table_shape shape_;
  rma::nic_cell next_free_;
  rma::nic_cell table_;
  rma::nic_cell heap_;
};

}  // namespace lockflight
