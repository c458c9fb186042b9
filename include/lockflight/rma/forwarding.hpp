// A port that forwards the operations to another port: what ports that change a few operations
// derive from, the decorators of fabrics (fabric/decorator.hpp) and rma::interruptible. What a port
// need not have, such as resolve, get_lines and the operations of deaths, is not forwarded: a port
// that derives from this one adds what it can promise, and rma::get_lines, say, does without.
#pragma once

#include <array>
#include <cstdint>

#include "lockflight/rma/port.hpp"

namespace lockflight::rma {

/// A port derives from it and hides the operations that it changes. The types of the operations
/// stay exact, so a cpu RMW on a nic cell does not compile through such a port either.
template <port Inner>
class forwarding {
 public:
  static constexpr capability_set capabilities = Inner::capabilities;

  explicit forwarding(Inner& inner) : inner_(inner) {}
  forwarding(const forwarding&) = delete;
  forwarding& operator=(const forwarding&) = delete;

  [[nodiscard]] Inner& inner() { return inner_; }
  [[nodiscard]] const Inner& inner() const { return inner_; }
  [[nodiscard]] rank_t rank() const { return inner_.rank(); }
  [[nodiscard]] const topology& machine() const { return inner_.machine(); }
  [[nodiscard]] bool orders_posts() const { return rma::orders_posts(inner_); }
  [[nodiscard]] bool shares_cores() const { return rma::shares_cores(inner_); }

  template <class Cell>
  void put(Cell to, word value) {
    inner_.put(to, value);
  }
  template <class Cell>
  void get(Cell from, word& result) {
    inner_.get(from, result);
  }
  void add(nic_cell to, word value) { inner_.add(to, value); }
  void fetch_add(nic_cell at, word value, word& before) { inner_.fetch_add(at, value, before); }
  void swap(nic_cell at, word value, word& before) { inner_.swap(at, value, before); }
  void compare_swap(nic_cell at, word expected, word desired, word& before) {
    inner_.compare_swap(at, expected, desired, before);
  }
  void flush(rank_t rank) { inner_.flush(rank); }
  void flush() { inner_.flush(); }

  template <class Cell>
  [[nodiscard, gnu::always_inline]] word load(Cell from) {
    return inner_.load(from);
  }
  template <class Cell>
  [[gnu::always_inline]] void store(Cell to, word value) {
    inner_.store(to, value);
  }
  template <of_class<cell_class::cpu> Cell>
  [[nodiscard, gnu::always_inline]] word cpu_fetch_add(Cell at, word value) {
    return inner_.cpu_fetch_add(at, value);
  }
  template <of_class<cell_class::cpu> Cell>
  [[nodiscard, gnu::always_inline]] word cpu_swap(Cell at, word value) {
    return inner_.cpu_swap(at, value);
  }
  template <of_class<cell_class::cpu> Cell>
  [[nodiscard, gnu::always_inline]] word cpu_compare_swap(Cell at, word expected, word desired) {
    return inner_.cpu_compare_swap(at, expected, desired);
  }
  void fence() { inner_.fence(); }

  void fence_node()
    requires node_fencing_port<Inner>
  {
    inner_.fence_node();
  }

  template <class Cell, class Predicate>
  word await(Cell on, Predicate done) {
    return inner_.await(on, done);
  }
  template <class Cell, class Predicate>
  word poll(Cell from, Predicate done, backoff back_off) {
    return inner_.poll(from, done, back_off);
  }
  void pause(std::uint64_t nanoseconds) { inner_.pause(nanoseconds); }

  [[nodiscard]] deadline deadline_in(std::uint64_t nanoseconds) {
    return inner_.deadline_in(nanoseconds);
  }
  [[nodiscard]] bool is_over(deadline until) { return inner_.is_over(until); }
  template <class Cell, class Predicate>
  word await_until(Cell on, Predicate done, deadline until) {
    return inner_.await_until(on, done, until);
  }

  void send(rank_t to, std::array<word, 3> body)
    requires messaging_port<Inner>
  {
    inner_.send(to, body);
  }
  [[nodiscard]] message receive()
    requires messaging_port<Inner>
  {
    return inner_.receive();
  }
  [[nodiscard]] bool try_receive(message& got)
    requires messaging_port<Inner>
  {
    return inner_.try_receive(got);
  }
  void serve_with(message_handler* handler)
    requires messaging_port<Inner>
  {
    inner_.serve_with(handler);
  }

  [[nodiscard]] bool may_lose() const
    requires losing_port<Inner>
  {
    return inner_.may_lose();
  }
  [[nodiscard]] bool is_lost(rank_t rank)
    requires losing_port<Inner>
  {
    return inner_.is_lost(rank);
  }
  [[nodiscard]] bool never_received(rank_t rank, const std::array<word, 3>& body) const
    requires losing_port<Inner>
  {
    return inner_.never_received(rank, body);
  }

  template <class Cell>
  [[nodiscard]] void* native_address(Cell c)
    requires native_port<Inner>
  {
    return inner_.native_address(c);
  }

 private:
  Inner& inner_;
};

}  // namespace lockflight::rma
