// The words of a robust lock that outlive its generations, and the word that names a generation.
#pragma once

#include <array>
#include <cstdint>

#include "lockflight/rma/layout.hpp"
#include "lockflight/rma/packed.hpp"
#include "lockflight/rma/port.hpp"

namespace lockflight::lock {

/// A generation: its number, and the instance of the lock inside that it uses. 32 bits, so that a
/// record can hold it. All zero: the first one.
struct generation_word : rma::packed<generation_word> {
  static constexpr rma::field closed{.at = 0, .bits = 1};  ///< the generation is to be replaced
  static constexpr rma::field instance{.at = 1, .bits = 2};
  static constexpr rma::field number{.at = 3, .bits = 29};
  static_assert(rma::are_disjoint({closed, instance, number}));

  /// The generation after this one, open.
  [[nodiscard]] constexpr generation_word next(rma::word in) const {
    return generation_word{}.with(number, get(number) + 1).with(instance, in);
  }
};
[[nodiscard]] constexpr bool is_closed(rma::word generation) {
  return generation_word::from(generation).has(generation_word::closed);
}

/// Two lines at rank 0, and then the words of the instances, on all ranks. The first line is read
/// by all and rarely written; the second one is written by every exclusive holder.
struct generation_cells {
  /// How many copies of the lock inside there are. The words of a replaced generation stay
  /// unchanged for participants that have not yet noticed, so the next generation uses other words.
  static constexpr int instances = 3;

  rma::plain_cell line;
  std::array<std::uint32_t, instances> first{}, end{};  ///< the words of each instance

  /// The present generation. Written by the repairer alone, but that a participant may close it.
  [[nodiscard]] constexpr rma::cpu_cell generation() const { return {line.home, line.index}; }
  /// Not 0: a holder died, and the guarded data may be inconsistent.
  [[nodiscard]] constexpr rma::plain_cell died() const { return line + 1; }
  /// Bit 0: there may be a holder from an earlier generation. The bits above are a number that
  /// changes whenever such a holder releases, and whenever a repairer sets bit 0.
  [[nodiscard]] constexpr rma::cpu_cell inherited() const { return {line.home, line.index + 2}; }
  /// 1 + the rank that has the right to repair, and the generation then, or 0.
  [[nodiscard]] constexpr rma::cpu_cell repairer() const { return {line.home, line.index + 3}; }
  /// 4 words for the code that makes locks.
  [[nodiscard]] constexpr rma::plain_cell beside() const { return line + 4; }

  /// How many exclusive acquires there were. Written by the exclusive holder.
  [[nodiscard]] constexpr rma::plain_cell token() const { return line + rma::line_words; }
  /// The waiter that examines the others (waiting.hpp), or 0.
  [[nodiscard]] constexpr rma::cpu_cell watcher() const {
    return {line.home, line.index + rma::line_words + 1};
  }
  /// 6 words for the code that makes locks.
  [[nodiscard]] constexpr rma::plain_cell beside_b() const { return line + rma::line_words + 2; }

  [[nodiscard]] std::uint32_t instance_begin(int i) const {
    return first[static_cast<std::size_t>(i)];
  }
  [[nodiscard]] std::uint32_t instance_end(int i) const { return end[static_cast<std::size_t>(i)]; }
};

/// All words of a robust lock over that one.
template <class Inside>
struct robust_cells : generation_cells {
  std::array<typename Inside::cells, instances> inner;

  static robust_cells place(rma::layout& in, const rma::topology& machine,
                            const typename Inside::parameters& set) {
    robust_cells made{};
    made.line = in.take<rma::plain_cell>(2 * rma::line_words);
    for (std::size_t i = 0; i < instances; ++i) {
      // The next block begins on a new cache line.
      made.first[i] = (in.used() + rma::line_words - 1) / rma::line_words * rma::line_words;
      made.inner[i] = Inside::cells::place(in, machine, set, made.line.home);
      made.end[i] = in.used();
    }
    return made;
  }
};

/// The words that outlive generations, as a participant's port has resolved them.
template <rma::port Port>
struct resolved_generation_cells : generation_cells {
  resolved_generation_cells(const generation_cells& of, Port& p)
      : generation_cells(of),
        token(rma::resolve(p, of.token())),
        died(rma::resolve(p, of.died())),
        generation(rma::resolve(p, of.generation())),
        inherited(rma::resolve(p, of.inherited())),
        repairer(rma::resolve(p, of.repairer())),
        watcher(rma::resolve(p, of.watcher())) {}

  rma::resolved<Port, rma::plain_cell> token, died;
  rma::resolved<Port, rma::cpu_cell> generation, inherited, repairer, watcher;
};

}  // namespace lockflight::lock
