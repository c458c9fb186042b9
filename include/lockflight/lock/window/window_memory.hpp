// The places of a window's locks in segments: the window's own lock first, then as many words for
// each target. A target's cells are computed when they are needed, so a rank has no table of them.
//
// Memory that the locks use, in bytes. Pages of a segment that no rank uses take none, where the
// system allows it:
// | first rank of a node    | `fixed` + `each` for every target |
// | other ranks             | `fixed` + `each`                  |
// | one node, any rank      | `fixed` + `each` for every target, at most: what it locks |
// `each` is 64, one cache line, for flight-rw where the ranks are many (flight_rw_parameters). On
// one node a target has a second line, which says whom it favours (window/favour.hpp).
#pragma once

#include <algorithm>
#include <cstdint>
#include <stdexcept>

#include "lockflight/lock/about.hpp"
#include "lockflight/lock/window/window_locks.hpp"
#include "lockflight/rma/layout.hpp"
#include "lockflight/rma/participant.hpp"

namespace lockflight::lock {

/// The parameters of a window's lock: there is one for each rank.
template <class Parameters>
[[nodiscard]] Parameters one_of_window(const Parameters& set, const rma::topology& machine) {
  if constexpr (requires { set.one_of_window(machine.ranks(), machine.nodes()); })
    return set.one_of_window(machine.ranks(), machine.nodes());
  else
    return one_of(set, {machine.ranks(), machine.ranks()});
}

/// Bytes that a window's locks use, as above.
struct window_memory {
  std::uint64_t fixed = 0;
  std::uint64_t each = 0;
  std::uint64_t targets = 0;
  bool one_node = false;

  [[nodiscard]] std::uint64_t on_first_ranks() const { return fixed + each * targets; }
  [[nodiscard]] std::uint64_t on_others() const {
    return one_node ? on_first_ranks() : fixed + each;
  }
};

/// `Way` is the window's own lock, such as window_groups.
template <template <class> class Target, class Way>
class window_layout {
  using port = typename Way::port;
  using lock_of_target = window_lock<Target, whole_window<Way>, port>;

 public:
  using parameters = typename Target<port>::parameters;

  /// Throws std::length_error when segments are full.
  window_layout(rma::layout& in, const rma::topology& machine, const parameters& set)
      : set_(one_of_window(set, machine)),
        window_(Way::cells::place(in, machine, 0)),
        each_(words_of_each(machine, set_)) {
    const std::uint64_t all = std::uint64_t{each_} * static_cast<std::uint64_t>(machine.ranks());
    if (all > UINT32_MAX) throw std::length_error("a window of too many targets");
    first_ = in.take<rma::plain_cell>(static_cast<std::uint32_t>(all)).index;
  }

  [[nodiscard]] const parameters& set() const { return set_; }
  [[nodiscard]] const typename Way::cells& window() const { return window_; }
  [[nodiscard]] typename lock_of_target::cells target(const rma::topology& machine,
                                                      rma::rank_t target) const {
    const std::uint32_t at = first_ + static_cast<std::uint32_t>(target) * each_;
    rma::layout in(at, at + each_);
    return lock_of_target::cells::place(in, machine, set_, target);
  }

  /// Of a window with a participant of its own, and of `more` words beside the locks.
  [[nodiscard]] window_memory memory(const rma::topology& machine, std::uint32_t more) const {
    constexpr std::uint32_t nodes = rma::participant<port>::most_nested * rma::line_words;
    rma::layout in(UINT32_MAX);
    static_cast<void>(Way::cells::place(in, machine, 0));
    const std::uint64_t fixed = std::uint64_t{nodes} + in.used() - rma::line_words + more;
    return {.fixed = fixed * sizeof(rma::word),
            .each = std::uint64_t{each_} * sizeof(rma::word),
            .targets = static_cast<std::uint64_t>(machine.ranks()),
            .one_node = machine.nodes() == 1};
  }

 private:
  [[nodiscard]] static std::uint32_t words_of_each(const rma::topology& machine,
                                                   const parameters& set) {
    std::uint32_t most = 0;
    for (rma::rank_t t = 0; t < machine.ranks(); ++t) {
      rma::layout in(rma::line_words, UINT32_MAX);
      static_cast<void>(lock_of_target::cells::place(in, machine, set, t));
      most = std::max(most, in.used() - rma::line_words);
    }
    return (most + rma::line_words - 1) / rma::line_words * rma::line_words;
  }

  parameters set_;
  typename Way::cells window_;
  std::uint32_t each_;
  std::uint32_t first_ = 0;
};

}  // namespace lockflight::lock
