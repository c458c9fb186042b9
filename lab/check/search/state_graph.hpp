// All states of an endless program and the steps between them, for properties of cycles.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lab/check/engine/engine.hpp"

namespace lockflight::check {

/// States are numbered from 0, the first one, in the order in which they were reached.
class state_graph {
 public:
  using number = std::uint32_t;

  struct edge {
    number to;
    step what;
    std::uint8_t duty;  ///< the bit of the duty, or `none`
  };
  static constexpr std::uint8_t none = 64;

  /// The facts of a state: the duties (engine::duty) that are possible in it; a bit for each rank
  /// that is in a round, and for each that releases.
  struct facts {
    std::uint64_t duties;
    std::uint16_t in_round;
    std::uint16_t leaving;
  };

  /// The state that `e` is in; its edges lead to 0 until they are set.
  number add(const engine& e) {
    steps_.clear();
    e.enabled(steps_);
    facts here{0, e.in_round(), e.leaving()};
    for (const step s : steps_) {
      const std::uint64_t duty = e.duty(s);
      here.duties |= duty;
      edges_.push_back(packed(s, static_cast<std::uint8_t>(std::countr_zero(duty))));
    }
    facts_.push_back(here);
    first_.push_back(edges_.size());
    return static_cast<number>(facts_.size() - 1);
  }
  void lead(std::size_t from_edge, number to) { edges_[from_edge].to = to; }

  [[nodiscard]] std::size_t size() const { return facts_.size(); }
  [[nodiscard]] std::size_t steps() const { return edges_.size(); }
  [[nodiscard]] const facts& of(number state) const { return facts_[state]; }
  /// A state's edges are those from `first` to before `last`.
  [[nodiscard]] std::size_t first(number state) const { return first_[state]; }
  [[nodiscard]] std::size_t last(number state) const { return first_[state + 1]; }
  [[nodiscard]] edge at(std::size_t i) const {
    const packed_edge& e = edges_[i];
    return {e.to,
            {static_cast<step::kind>(e.kind), static_cast<std::uint8_t>(e.fiber),
             static_cast<std::uint8_t>(e.index), static_cast<std::uint8_t>(e.choice)},
            static_cast<std::uint8_t>(e.duty)};
  }
  [[nodiscard]] std::uint64_t duty_at(std::size_t i) const {
    return edges_[i].duty == none ? 0 : std::uint64_t{1} << edges_[i].duty;
  }

 private:
  // An edge in eight bytes, since there are many.
  struct packed_edge {
    number to;
    std::uint32_t kind : 3;
    std::uint32_t fiber : 3;
    std::uint32_t index : 5;
    std::uint32_t choice : 8;
    std::uint32_t duty : 7;
  };
  static_assert(sizeof(packed_edge) == 8 && most_fibers <= 8 && most_posted <= 32);

  [[nodiscard]] static packed_edge packed(step s, std::uint8_t duty) {
    return {
        0,          static_cast<std::uint32_t>(s.what) & 7, s.fiber & 7u, s.index & 31u, s.choice,
        duty & 127u};
  }

  std::vector<facts> facts_;
  std::vector<std::size_t> first_{0};
  std::vector<packed_edge> edges_;
  std::vector<step> steps_;  // of one state
};

}  // namespace lockflight::check
