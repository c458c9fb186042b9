// A participant that is killed in the middle of its work, at an operation that a test chooses.
#pragma once

#include <array>
#include <cstdint>

#include "lockflight/fabric/decorator.hpp"
#include "support.hpp"

namespace lockflight::test {

/// A decorator that counts down the operations before its participant dies; a negative number is
/// endless. Messages count twice: the participant may die before or after.
class mortal : public fabric::decorator<shm::port> {
  using base = fabric::decorator<shm::port>;

 public:
  mortal(shm::port& inner, std::int64_t life) : base(inner), life_(life) {}

  void put(auto to, rma::word value) { age(), base::put(to, value); }
  void get(auto from, rma::word& result) { age(), base::get(from, result); }
  void add(rma::nic_cell to, rma::word value) { age(), base::add(to, value); }
  void fetch_add(rma::nic_cell at, rma::word value, rma::word& before) {
    age(), base::fetch_add(at, value, before);
  }
  void swap(rma::nic_cell at, rma::word value, rma::word& before) {
    age(), base::swap(at, value, before);
  }
  void compare_swap(rma::nic_cell at, rma::word expected, rma::word desired, rma::word& before) {
    age(), base::compare_swap(at, expected, desired, before);
  }
  [[nodiscard]] rma::word load(auto from) { return age(), base::load(from); }
  void store(auto to, rma::word value) { age(), base::store(to, value); }
  rma::word await(auto on, auto done) { return age(), base::await(on, done); }

  void send(rma::rank_t to, std::array<rma::word, 3> body) { age(), base::send(to, body), age(); }
  [[nodiscard]] rma::message receive() {
    age();
    const rma::message got = base::receive();
    age();
    return got;
  }
  [[nodiscard]] bool try_receive(rma::message& got) {
    age();
    const bool is_there = base::try_receive(got);
    age();
    return is_there;
  }

 private:
  void age() {
    if (life_-- == 0) die();
  }

  std::int64_t life_;
};

}  // namespace lockflight::test
