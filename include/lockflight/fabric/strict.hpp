// A decorator that rejects operations that the contract forbids but a tolerant fabric accepts.
#pragma once

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "lockflight/fabric/decorator.hpp"

namespace lockflight::fabric {

/// Thrown when a lock breaks a clause of the contract.
struct contract_violation : std::logic_error {
  using std::logic_error::logic_error;
};

/// Throws contract_violation on an immediate operation or a wait on another node's cell (C10, C16),
/// on an unflushed operation when its participant starts to wait (C9), on an operation on no rank,
/// and, where the port knows the size of a segment, on one beyond it or on "no cell" (C21).
template <rma::port Inner>
class strict : public decorator<Inner> {
  using base = decorator<Inner>;

 public:
  using base::base;

  template <class Cell>
  void put(Cell to, rma::word value) {
    posted(to);
    base::put(to, value);
  }
  template <class Cell>
  void get(Cell from, rma::word& result) {
    posted(from);
    base::get(from, result);
  }
  void add(rma::nic_cell to, rma::word value) {
    posted(to);
    base::add(to, value);
  }
  void fetch_add(rma::nic_cell at, rma::word value, rma::word& before) {
    posted(at);
    base::fetch_add(at, value, before);
  }
  void swap(rma::nic_cell at, rma::word value, rma::word& before) {
    posted(at);
    base::swap(at, value, before);
  }
  void compare_swap(rma::nic_cell at, rma::word expected, rma::word desired, rma::word& before) {
    posted(at);
    base::compare_swap(at, expected, desired, before);
  }
  void flush(rma::rank_t rank) {
    must_exist(rank);
    base::flush(rank);
    std::erase(pending_, rank);
  }
  void flush() {
    base::flush();
    pending_.clear();
  }

  template <class Cell>
  [[nodiscard]] rma::word load(Cell from) {
    must_be_here(from, "load");
    return base::load(from);
  }
  template <class Cell>
  void store(Cell to, rma::word value) {
    must_be_here(to, "store");
    base::store(to, value);
  }
  [[nodiscard]] rma::word cpu_fetch_add(rma::cpu_cell at, rma::word value) {
    must_be_here(at, "cpu_fetch_add");
    return base::cpu_fetch_add(at, value);
  }
  [[nodiscard]] rma::word cpu_swap(rma::cpu_cell at, rma::word value) {
    must_be_here(at, "cpu_swap");
    return base::cpu_swap(at, value);
  }
  [[nodiscard]] rma::word cpu_compare_swap(rma::cpu_cell at, rma::word expected,
                                           rma::word desired) {
    must_be_here(at, "cpu_compare_swap");
    return base::cpu_compare_swap(at, expected, desired);
  }

  template <class Cell, class Predicate>
  rma::word await(Cell on, Predicate done) {
    must_be_here(on, "await");
    must_be_flushed("await");
    return base::await(on, done);
  }
  template <class Cell, class Predicate>
  rma::word await_until(Cell on, Predicate done, rma::deadline until) {
    must_be_here(on, "await_until");
    must_be_flushed("await_until");
    return base::await_until(on, done, until);
  }
  template <class Cell, class Predicate>
  rma::word poll(Cell from, Predicate done, rma::backoff back_off) {
    must_be_flushed("poll");
    return rma::poll_by_get(*this, from, done, back_off);
  }

  void send(rma::rank_t to, std::array<rma::word, 3> body)
    requires rma::messaging_port<Inner>
  {
    must_exist(to);
    base::send(to, body);
  }
  [[nodiscard]] rma::message receive()
    requires rma::messaging_port<Inner>
  {
    must_be_flushed("receive");
    return base::receive();
  }

 private:
  template <class Cell>
  void must_exist(const Cell& c) const {
    must_exist(c.home);
    if constexpr (requires(const Inner& p) { p.words_per_rank(); }) {
      const std::uint32_t words = this->inner().words_per_rank();
      if (c.index == 0 || c.index >= words)
        throw contract_violation("an operation on cell " + std::to_string(c.index) +
                                 " of a segment of " + std::to_string(words));
    }
  }
  void must_exist(rma::rank_t rank) const {
    if (rank < 0 || rank >= this->machine().ranks())
      throw contract_violation("an operation on rank " + std::to_string(rank) + " of " +
                               std::to_string(this->machine().ranks()));
  }
  template <class Cell>
  void must_be_here(const Cell& c, const char* operation) const {
    must_exist(c);
    if (!this->on_my_node(c.home))
      throw contract_violation(std::string(operation) + " by rank " + std::to_string(this->rank()) +
                               " on a cell of rank " + std::to_string(c.home) +
                               ", which is on another node");
  }
  void must_be_flushed(const char* operation) const {
    if (!pending_.empty())
      throw contract_violation(std::string(operation) + " by rank " + std::to_string(this->rank()) +
                               " while an operation is not flushed");
  }
  template <class Cell>
  void posted(const Cell& c) {
    must_exist(c);
    const rma::rank_t target = c.home;
    // The search begins at the back, since the last target is the likely one.
    if (std::find(pending_.rbegin(), pending_.rend(), target) == pending_.rend())
      pending_.push_back(target);
  }

  std::vector<rma::rank_t> pending_;  // targets of operations that are not flushed, each once
};

}  // namespace lockflight::fabric
