// The base of the decorators: a port that forwards every operation to another port.
#pragma once

#include <array>
#include <cstdint>

#include "lockflight/rma/port.hpp"

namespace lockflight::fabric {

/// A decorator derives from it and hides the operations that it changes. The types of the
/// operations stay exact, so a cpu RMW on a nic cell does not compile through a decorator either.
template <rma::port Inner>
class decorator {
 public:
  static constexpr rma::capability_set capabilities = Inner::capabilities;

  explicit decorator(Inner& inner)
      : inner_(inner),
        node_of_(inner.machine().nodes_of_ranks().data()),
        my_node_(node_of_[inner.rank()]) {}
  decorator(const decorator&) = delete;
  decorator& operator=(const decorator&) = delete;

  [[nodiscard]] Inner& inner() { return inner_; }
  [[nodiscard]] const Inner& inner() const { return inner_; }
  [[nodiscard]] rma::rank_t rank() const { return inner_.rank(); }
  [[nodiscard]] const rma::topology& machine() const { return inner_.machine(); }
  [[nodiscard]] bool orders_posts() const { return rma::orders_posts(inner_); }
  [[nodiscard]] bool shares_cores() const { return rma::shares_cores(inner_); }

  template <class Cell>
  void put(Cell to, rma::word value) {
    inner_.put(to, value);
  }
  template <class Cell>
  void get(Cell from, rma::word& result) {
    inner_.get(from, result);
  }
  void add(rma::nic_cell to, rma::word value) { inner_.add(to, value); }
  void fetch_add(rma::nic_cell at, rma::word value, rma::word& before) {
    inner_.fetch_add(at, value, before);
  }
  void swap(rma::nic_cell at, rma::word value, rma::word& before) {
    inner_.swap(at, value, before);
  }
  void compare_swap(rma::nic_cell at, rma::word expected, rma::word desired, rma::word& before) {
    inner_.compare_swap(at, expected, desired, before);
  }
  void flush(rma::rank_t rank) { inner_.flush(rank); }
  void flush() { inner_.flush(); }

  template <class Cell>
  [[nodiscard, gnu::always_inline]] rma::word load(Cell from) {
    return inner_.load(from);
  }
  template <class Cell>
  [[gnu::always_inline]] void store(Cell to, rma::word value) {
    inner_.store(to, value);
  }
  [[nodiscard, gnu::always_inline]] rma::word cpu_fetch_add(rma::cpu_cell at, rma::word value) {
    return inner_.cpu_fetch_add(at, value);
  }
  [[nodiscard]] rma::word cpu_swap(rma::cpu_cell at, rma::word value) {
    return inner_.cpu_swap(at, value);
  }
  [[nodiscard, gnu::always_inline]] rma::word cpu_compare_swap(rma::cpu_cell at, rma::word expected,
                                                               rma::word desired) {
    return inner_.cpu_compare_swap(at, expected, desired);
  }
  void fence() { inner_.fence(); }

  void fence_node()
    requires rma::node_fencing_port<Inner>
  {
    inner_.fence_node();
  }

  template <class Cell, class Predicate>
  rma::word await(Cell on, Predicate done) {
    return inner_.await(on, done);
  }
  template <class Cell, class Predicate>
  rma::word poll(Cell from, Predicate done, rma::backoff back_off) {
    return inner_.poll(from, done, back_off);
  }
  void pause(std::uint64_t nanoseconds) { inner_.pause(nanoseconds); }

  [[nodiscard]] rma::deadline deadline_in(std::uint64_t nanoseconds) {
    return inner_.deadline_in(nanoseconds);
  }
  [[nodiscard]] bool is_over(rma::deadline until) { return inner_.is_over(until); }
  template <class Cell, class Predicate>
  rma::word await_until(Cell on, Predicate done, rma::deadline until) {
    return inner_.await_until(on, done, until);
  }

  void send(rma::rank_t to, std::array<rma::word, 3> body)
    requires rma::messaging_port<Inner>
  {
    inner_.send(to, body);
  }
  [[nodiscard]] rma::message receive()
    requires rma::messaging_port<Inner>
  {
    return inner_.receive();
  }
  [[nodiscard]] bool try_receive(rma::message& got)
    requires rma::messaging_port<Inner>
  {
    return inner_.try_receive(got);
  }
  void serve_with(rma::message_handler* handler)
    requires rma::messaging_port<Inner>
  {
    inner_.serve_with(handler);
  }

  [[nodiscard]] bool may_lose() const
    requires rma::losing_port<Inner>
  {
    return inner_.may_lose();
  }
  [[nodiscard]] bool is_lost(rma::rank_t rank)
    requires rma::losing_port<Inner>
  {
    return inner_.is_lost(rank);
  }
  [[nodiscard]] bool never_received(rma::rank_t rank, const std::array<rma::word, 3>& body) const
    requires rma::losing_port<Inner>
  {
    return inner_.never_received(rank, body);
  }

  template <class Cell>
  [[nodiscard]] void* native_address(Cell c)
    requires rma::native_port<Inner>
  {
    return inner_.native_address(c);
  }

 protected:
  [[nodiscard]] bool on_my_node(rma::rank_t other) const { return node_of_[other] == my_node_; }

 private:
  Inner& inner_;
  const int* node_of_;  // [rank]; one load, since every posted operation asks
  int my_node_;
};

}  // namespace lockflight::fabric
