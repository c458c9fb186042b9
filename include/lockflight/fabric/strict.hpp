// A decorator that rejects operations that the contract forbids but a tolerant fabric accepts.
#pragma once

#include <algorithm>
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
/// on a wait while an operation is not flushed (C9), and on an operation to a rank that does not
/// exist.
template <rma::port Inner>
class strict : public decorator<Inner> {
  using base = decorator<Inner>;

 public:
  using base::base;

  template <class Cell>
  void put(Cell to, rma::word value) {
    posted(to.home);
    base::put(to, value);
  }
  template <class Cell>
  void get(Cell from, rma::word& result) {
    posted(from.home);
    base::get(from, result);
  }
  void add(rma::nic_cell to, rma::word value) {
    posted(to.home);
    base::add(to, value);
  }
  void fetch_add(rma::nic_cell at, rma::word value, rma::word& before) {
    posted(at.home);
    base::fetch_add(at, value, before);
  }
  void swap(rma::nic_cell at, rma::word value, rma::word& before) {
    posted(at.home);
    base::swap(at, value, before);
  }
  void compare_swap(rma::nic_cell at, rma::word expected, rma::word desired, rma::word& before) {
    posted(at.home);
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
    must_be_here(from.home, "load");
    return base::load(from);
  }
  template <class Cell>
  void store(Cell to, rma::word value) {
    must_be_here(to.home, "store");
    base::store(to, value);
  }
  [[nodiscard]] rma::word cpu_fetch_add(rma::cpu_cell at, rma::word value) {
    must_be_here(at.home, "cpu_fetch_add");
    return base::cpu_fetch_add(at, value);
  }
  [[nodiscard]] rma::word cpu_swap(rma::cpu_cell at, rma::word value) {
    must_be_here(at.home, "cpu_swap");
    return base::cpu_swap(at, value);
  }
  [[nodiscard]] rma::word cpu_compare_swap(rma::cpu_cell at, rma::word expected,
                                           rma::word desired) {
    must_be_here(at.home, "cpu_compare_swap");
    return base::cpu_compare_swap(at, expected, desired);
  }

  template <class Cell, class Predicate>
  rma::word await(Cell on, Predicate done) {
    must_be_here(on.home, "await");
    must_be_flushed("await");
    return base::await(on, done);
  }
  template <class Cell, class Predicate>
  rma::word await_until(Cell on, Predicate done, rma::deadline until) {
    must_be_here(on.home, "await_until");
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
  void must_exist(rma::rank_t rank) const {
    if (rank < 0 || rank >= this->machine().ranks())
      throw contract_violation("an operation on rank " + std::to_string(rank) + " of " +
                               std::to_string(this->machine().ranks()));
  }
  void must_be_here(rma::rank_t home, const char* operation) const {
    must_exist(home);
    if (!this->on_my_node(home))
      throw contract_violation(std::string(operation) + " by rank " + std::to_string(this->rank()) +
                               " on a cell of rank " + std::to_string(home) +
                               ", which is on another node");
  }
  void must_be_flushed(const char* operation) const {
    if (!pending_.empty())
      throw contract_violation(std::string(operation) + " by rank " + std::to_string(this->rank()) +
                               " while an operation is not flushed");
  }
  void posted(rma::rank_t target) {
    must_exist(target);
    // From the back: the last target is the likely one.
    if (std::find(pending_.rbegin(), pending_.rend(), target) == pending_.rend())
      pending_.push_back(target);
  }

  std::vector<rma::rank_t> pending_;  // targets of operations that are not flushed, each once
};

}  // namespace lockflight::fabric
