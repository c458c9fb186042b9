// A decorator whose port fails: one operation of its participant throws.
#pragma once

#include <array>
#include <cstdint>
#include <exception>

#include "lockflight/fabric/decorator.hpp"

namespace lockflight::test {

/// Of no class that a lock could know.
struct port_failed : std::exception {
  [[nodiscard]] const char* what() const noexcept override { return "an operation has failed"; }
};

template <rma::port Inner>
class throwing : public fabric::decorator<Inner> {
  using base = fabric::decorator<Inner>;

 public:
  using base::base;

  /// From now on the operation of this number throws; the first is 1. 0: none does.
  void throw_at(std::uint64_t number) {
    throws_at_ = number;
    operations_ = 0;
    counts_ = true;
  }
  /// Operations count or not; they do from throw_at() on.
  void count(bool on) { counts_ = on; }
  /// The operations since then.
  [[nodiscard]] std::uint64_t operations() const { return operations_; }

  template <class Cell>
  void put(Cell to, rma::word value) {
    begin();
    base::put(to, value);
  }
  template <class Cell>
  void get(Cell from, rma::word& result) {
    begin();
    base::get(from, result);
  }
  void add(rma::nic_cell to, rma::word value) {
    begin();
    base::add(to, value);
  }
  void fetch_add(rma::nic_cell at, rma::word value, rma::word& before) {
    begin();
    base::fetch_add(at, value, before);
  }
  void swap(rma::nic_cell at, rma::word value, rma::word& before) {
    begin();
    base::swap(at, value, before);
  }
  void compare_swap(rma::nic_cell at, rma::word expected, rma::word desired, rma::word& before) {
    begin();
    base::compare_swap(at, expected, desired, before);
  }
  // Completes first, so that no result arrives in a variable that is gone.
  void flush(rma::rank_t rank) {
    base::flush(rank);
    begin();
  }
  void flush() {
    base::flush();
    begin();
  }

  template <class Cell>
  [[nodiscard]] rma::word load(Cell from) {
    begin();
    return base::load(from);
  }
  template <class Cell>
  void store(Cell to, rma::word value) {
    begin();
    base::store(to, value);
  }
  [[nodiscard]] rma::word cpu_fetch_add(rma::cpu_cell at, rma::word value) {
    begin();
    return base::cpu_fetch_add(at, value);
  }
  [[nodiscard]] rma::word cpu_swap(rma::cpu_cell at, rma::word value) {
    begin();
    return base::cpu_swap(at, value);
  }
  [[nodiscard]] rma::word cpu_compare_swap(rma::cpu_cell at, rma::word expected,
                                           rma::word desired) {
    begin();
    return base::cpu_compare_swap(at, expected, desired);
  }
  void fence() {
    begin();
    base::fence();
  }

  template <class Cell, class Predicate>
  rma::word await(Cell on, Predicate done) {
    begin();
    return base::await(on, done);
  }
  template <class Cell, class Predicate>
  rma::word await_until(Cell on, Predicate done, rma::deadline until) {
    begin();
    return base::await_until(on, done, until);
  }
  template <class Cell, class Predicate>
  rma::word poll(Cell from, Predicate done, rma::backoff back_off) {
    begin();
    return base::poll(from, done, back_off);
  }
  void pause(std::uint64_t nanoseconds) {
    begin();
    base::pause(nanoseconds);
  }

  void send(rma::rank_t to, std::array<rma::word, 3> body)
    requires rma::messaging_port<Inner>
  {
    begin();
    base::send(to, body);
  }
  [[nodiscard]] rma::message receive()
    requires rma::messaging_port<Inner>
  {
    begin();
    return base::receive();
  }
  [[nodiscard]] bool try_receive(rma::message& got)
    requires rma::messaging_port<Inner>
  {
    begin();
    return base::try_receive(got);
  }

 protected:
  void begin() {
    if (counts_ && ++operations_ == throws_at_) throw port_failed();
  }

 private:
  std::uint64_t throws_at_ = 0;
  std::uint64_t operations_ = 0;
  bool counts_ = true;
};

}  // namespace lockflight::test
