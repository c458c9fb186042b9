// A participant that may die and outlives others: it brings to every robust lock its records, and
// to the lock inside a participant on a port whose waits can end early.
//
// Cost: no network operation. A participant has 32 queue nodes and as many records as it may hold
// robust locks at the same time.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <memory_resource>
#include <stdexcept>

#include "lockflight/lock/robust/record.hpp"
#include "lockflight/rma/interruptible.hpp"
#include "lockflight/rma/participant.hpp"

namespace lockflight::lock {

template <rma::mortal_port Port>
class robust_participant {
 public:
  /// The most robust locks that a participant can hold or await at the same time.
  static constexpr int most_held = 32;

  /// `words` is the size of each rank's segment. All participants have as many records.
  robust_participant(Port& p, std::uint32_t words, int records = most_held,
                     std::pmr::memory_resource* memory = std::pmr::get_default_resource())
      : port_(p),
        waits_(p),
        inside_(waits_, words, memory),
        records_(
            inside_.cells().template take<rma::plain_cell>(static_cast<std::uint32_t>(records))),
        places_(records),
        free_(records == most_held ? ~0u : (1u << records) - 1) {
    for (int i = 0; i < records; ++i)
      own_[static_cast<std::size_t>(i)] = rma::resolve(p, record_of(rank(), i));
  }

  robust_participant(const robust_participant&) = delete;
  robust_participant& operator=(const robust_participant&) = delete;

  [[nodiscard]] Port& port() { return port_; }
  [[nodiscard]] rma::interruptible<Port>& waits() { return waits_; }
  /// For the lock inside.
  [[nodiscard]] rma::participant<rma::interruptible<Port>>& inside() { return inside_; }
  [[nodiscard]] rma::layout& cells() { return inside_.cells(); }
  [[nodiscard]] rma::rank_t rank() const { return port_.rank(); }
  [[nodiscard]] const rma::topology& machine() const { return port_.machine(); }

  /// How many records each participant has, and where they are.
  [[nodiscard]] int records() const { return places_; }
  [[nodiscard]] rma::plain_cell record_of(rma::rank_t rank, int place) const {
    return records_.at(rank) + static_cast<std::uint32_t>(place);
  }

  [[nodiscard]] const auto& own_record(int place) const {
    return own_[static_cast<std::size_t>(place)];
  }

  /// A record of ours that is idle. Throws std::length_error if there is none.
  [[nodiscard, gnu::always_inline]] int take_record() {
    if (left_ != 0) [[unlikely]]
      collect();
    if (free_ == 0) [[unlikely]]
      refuse();
    const int place = std::countr_zero(free_);
    free_ &= free_ - 1;
    return place;
  }
  /// Gives it back, idle.
  [[gnu::always_inline]] void give_back(int place) {
    port_.store(own_record(place), 0);
    free_ |= 1u << place;
  }
  /// Gives it back, but these queue nodes are still in a queue of its lock. The record stays until
  /// they are not, so that nobody takes our place meanwhile if we die.
  void give_back_when_out(int place, std::uint32_t nodes) {
    for (std::uint32_t& others : nodes_of_) others &= ~nodes;
    nodes_of_[static_cast<std::size_t>(place)] = nodes;
    left_ |= 1u << place;
  }

 private:
  [[noreturn, gnu::noinline]] void refuse() const {
    throw std::length_error("more than " + std::to_string(places_) +
                            " robust locks held at once by one participant");
  }
  [[gnu::noinline]] void collect() {
    for (std::uint32_t rest = left_; rest != 0; rest &= rest - 1) {
      const int place = std::countr_zero(rest);
      std::uint32_t& nodes = nodes_of_[static_cast<std::size_t>(place)];
      nodes &= inside_.abandoned();  // the others have come back
      const auto was = record::from(port_.load(record_of(rank(), place)));
      const auto line = static_cast<std::uint32_t>(was.get(record::lock));
      const rma::word generation = port_.load(rma::plain_cell{0, line * rma::line_words});
      const bool is_over = generation % 2 == 0 && generation != was.get(record::generation);
      if (is_over) inside_.reset(std::exchange(nodes, 0));
      if (nodes != 0) continue;
      left_ &= ~(1u << place);
      give_back(place);
    }
  }

  Port& port_;
  rma::interruptible<Port> waits_;
  rma::participant<rma::interruptible<Port>> inside_;
  rma::plain_cell records_;
  int places_;
  std::array<rma::resolved<Port, rma::plain_cell>, most_held> own_{};  // our records
  std::uint32_t free_;
  std::uint32_t left_ = 0;                           // places given back whose nodes are not out
  std::array<std::uint32_t, most_held> nodes_of_{};  // [place of left_]
};

}  // namespace lockflight::lock
