// A decorator that counts operations by kind and class. The bench measures locks through it.
//
// Cost: an increment of a plain integer for each operation.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "lockflight/fabric/decorator.hpp"

namespace lockflight::fabric {

/// The operations that one participant has issued. Names as in the bench's JSON.
struct operation_counts {
  // Network operations: posted, whatever their target.
  std::uint64_t put = 0;
  std::uint64_t get = 0;
  std::uint64_t add = 0;
  std::uint64_t fetch_add = 0;
  std::uint64_t swap = 0;
  std::uint64_t cas = 0;
  std::uint64_t flush = 0;
  std::uint64_t loopback = 0;  ///< of the above without flushes, those to the own node
  // The own node's CPU.
  std::uint64_t load = 0;  ///< loads, and awaits (each counts once, however long it takes)
  std::uint64_t store = 0;
  std::uint64_t rmw = 0;

  std::uint64_t messages = 0;  ///< sent

  /// Posted operations together.
  [[nodiscard]] constexpr std::uint64_t network() const {
    return put + get + add + fetch_add + swap + cas;
  }
  constexpr operation_counts& operator+=(const operation_counts& o) {
    put += o.put, get += o.get, add += o.add, fetch_add += o.fetch_add, swap += o.swap;
    cas += o.cas, flush += o.flush, loopback += o.loopback;
    load += o.load, store += o.store, rmw += o.rmw, messages += o.messages;
    return *this;
  }
  friend constexpr bool operator==(const operation_counts&, const operation_counts&) = default;
};

/// Counts in plain integers of the participant.
template <rma::port Inner>
class counting : public decorator<Inner> {
  using base = decorator<Inner>;

 public:
  using base::base;

  /// The operations since construction or the last reset.
  [[nodiscard]] operation_counts counts() const {
    operation_counts all = counts_;
    for (const std::uint64_t n : loads_) all.load += n;
    for (const std::uint64_t n : stores_) all.store += n;
    return all;
  }
  void reset_counts() {
    counts_ = {};
    loads_ = {};
    stores_ = {};
  }

  template <class Cell>
  void put(Cell to, rma::word value) {
    posted(counts_.put, to.home);
    base::put(to, value);
  }
  template <class Cell>
  void get(Cell from, rma::word& result) {
    posted(counts_.get, from.home);
    base::get(from, result);
  }
  template <class Cell>
  void get_lines(Cell first, std::span<rma::word> results) {
    posted(counts_.get, first.home);
    rma::get_lines(this->inner(), first, results);
  }
  void add(rma::nic_cell to, rma::word value) {
    posted(counts_.add, to.home);
    base::add(to, value);
  }
  void fetch_add(rma::nic_cell at, rma::word value, rma::word& before) {
    posted(counts_.fetch_add, at.home);
    base::fetch_add(at, value, before);
  }
  void swap(rma::nic_cell at, rma::word value, rma::word& before) {
    posted(counts_.swap, at.home);
    base::swap(at, value, before);
  }
  void compare_swap(rma::nic_cell at, rma::word expected, rma::word desired, rma::word& before) {
    posted(counts_.cas, at.home);
    base::compare_swap(at, expected, desired, before);
  }
  void flush(rma::rank_t rank) {
    ++counts_.flush;
    base::flush(rank);
  }
  void flush() {
    ++counts_.flush;
    base::flush();
  }

  /// The other decorators have no resolve (C41). This one has, since locks are measured through it
  /// and it does not need the target of an immediate operation.
  template <class Cell>
  [[nodiscard]] rma::resolved<Inner, Cell> resolve(Cell c) {
    return rma::resolve(this->inner(), c);
  }

  template <class Cell>
  void load_each(std::span<const Cell> from, std::span<rma::word> results) {
    loads_[static_cast<std::size_t>(Cell::class_of)] += from.size();
    rma::load_each(this->inner(), from, results);
  }
  template <class Cell>
  [[nodiscard, gnu::always_inline]] rma::word load(Cell from) {
    ++loads_[static_cast<std::size_t>(Cell::class_of)];
    return base::load(from);
  }
  template <class Cell>
  [[gnu::always_inline]] void store(Cell to, rma::word value) {
    ++stores_[value != 0 ? 1 : 0];
    base::store(to, value);
  }
  template <rma::of_class<rma::cell_class::cpu> Cell>
  [[nodiscard, gnu::always_inline]] rma::word cpu_fetch_add(Cell at, rma::word value) {
    ++counts_.rmw;
    return this->inner().cpu_fetch_add(at, value);
  }
  template <rma::of_class<rma::cell_class::cpu> Cell>
  [[nodiscard]] rma::word cpu_swap(Cell at, rma::word value) {
    ++counts_.rmw;
    return this->inner().cpu_swap(at, value);
  }
  template <rma::of_class<rma::cell_class::cpu> Cell>
  [[nodiscard, gnu::always_inline]] rma::word cpu_compare_swap(Cell at, rma::word expected,
                                                               rma::word desired) {
    ++counts_.rmw;
    return this->inner().cpu_compare_swap(at, expected, desired);
  }

  template <class Cell, class Predicate>
  rma::word await(Cell on, Predicate done) {
    ++counts_.load;
    return base::await(on, done);
  }
  template <class Cell, class Predicate>
  rma::word await_until(Cell on, Predicate done, rma::deadline until) {
    ++counts_.load;
    return base::await_until(on, done, until);
  }
  // The poll is made of our own get and flush, so that every poll over the network counts.
  template <class Cell, class Predicate>
  rma::word poll(Cell from, Predicate done, rma::backoff back_off) {
    return rma::poll_by_get(*this, from, done, back_off);
  }

  void send(rma::rank_t to, std::array<rma::word, 3> body)
    requires rma::messaging_port<Inner>
  {
    ++counts_.messages;
    base::send(to, body);
  }

 private:
  void posted(std::uint64_t& kind, rma::rank_t target) {
    ++kind;
    if (this->on_my_node(target)) ++counts_.loopback;
  }

  operation_counts counts_;
  // There are several counters: by class of cell, and by whether the word is zero, as it mostly is
  // when a lock is released. An increment waits for the one before it, so with one counter a short
  // critical section would take as long as several increments in a row.
  std::array<std::uint64_t, 3> loads_{};
  std::array<std::uint64_t, 2> stores_{};
};

}  // namespace lockflight::fabric
