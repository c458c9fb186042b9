// A participant that may die or stop while others continue. It gives every robust lock its records,
// and gives the lock inside a participant on a port whose waits can end early.
//
// Cost: no network operation. A participant has 32 queue nodes and as many records as it may hold
// robust locks at the same time.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <memory_resource>
#include <stdexcept>
#include <string>
#include <utility>

#include "lockflight/lock/robust/generation.hpp"
#include "lockflight/lock/robust/record.hpp"
#include "lockflight/rma/interruptible.hpp"
#include "lockflight/rma/participant.hpp"

namespace lockflight::lock {

/// Thrown by an acquire if the last one of its handle, or the release, has never returned, since
/// the caller's program has jumped out of it (siglongjmp in a signal handler). The unfinished call
/// is undone then, and the next acquire can succeed.
struct not_returned : std::logic_error {
  not_returned() : logic_error("the last acquire or release of this lock has not returned") {}
};

/// Sets of queue nodes, one bit each.
struct node_sets {
  std::uint32_t in_use = 0, abandoned = 0;
};

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
        records_(inside_.cells().template take<rma::cpu_cell>(static_cast<std::uint32_t>(records))),
        places_(records),
        free_(all()) {
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
  [[nodiscard]] rma::cpu_cell record_of(rma::rank_t rank, int place) const {
    return records_.at(rank) + static_cast<std::uint32_t>(place);
  }
  [[nodiscard]] const auto& own_record(int place) const {
    return own_[static_cast<std::size_t>(place)];
  }
  /// Calls `is_it(rank, cell)` for each record of each participant until that is true. Skips the
  /// places that no participant has, if the port knows them: their records are empty, and a new
  /// participant makes itself known before it writes its first record.
  template <class Predicate>
  [[nodiscard]] bool any_record(Predicate is_it) {
    const int participants = port_.participants();
    for (int p = 0; p < participants; ++p) {
      const rma::rank_t r = port_.participant(p);
      if constexpr (requires { port_.is_absent(r); })
        if (port_.is_absent(r)) continue;
      for (int i = 0; i < places_; ++i)
        if (is_it(r, record_of(r, i))) return true;
    }
    return false;
  }
  /// True if a participant may still use the words of that generation of that lock, or queue nodes
  /// that were in it. A dead participant counts until its death is acknowledged: operations that it
  /// has posted may still take effect (C46). Once the generation has been replaced, a participant
  /// that has left it never enters it again.
  [[nodiscard]] bool is_anyone_in(rma::word lock, rma::word generation) {
    return any_record([&](rma::rank_t, rma::cpu_cell at) {
      const auto of = record::from(port_.load(at));
      return of.is_in() && of.get(record::lock) == lock && of.get(record::generation) == generation;
    });
  }

  /// A record of ours that is idle. Throws std::length_error if there is none.
  [[nodiscard, gnu::always_inline]] int take_record() {
    if (left_ != 0 || free_ == 0) [[unlikely]]
      collect_if_due();
    const int place = std::countr_zero(free_);
    free_ &= free_ - 1;
    return place;
  }
  /// Notes the queue nodes that are in use while that record says that it holds.
  [[gnu::always_inline]] void note_nodes(int place, std::uint32_t nodes) {
    in_use_[static_cast<std::size_t>(place)] = nodes;
  }
  [[nodiscard]] std::uint32_t nodes_of(int place) const {
    return in_use_[static_cast<std::size_t>(place)];
  }
  [[nodiscard]] node_sets nodes_now() const { return {inside_.taken(), inside_.abandoned()}; }
  [[nodiscard]] node_sets nodes_since(node_sets before) const {
    return {inside_.taken() & ~before.in_use, inside_.abandoned() & ~before.abandoned};
  }
  /// The same without the nodes of our records other than that one. The nodes of an acquire that
  /// has not returned belong to no record: if there are two such acquires, the nodes of one may
  /// come back too early, and its lock is repaired then as after a grant that is not taken up.
  [[nodiscard]] node_sets nodes_since(node_sets before, int place) const {
    const node_sets since = nodes_since(before);
    return {since.in_use & ~union_of(in_use_, all() & ~free_ & ~(1u << place)),
            since.abandoned & ~union_of(abandoned_, left_ & ~(1u << place))};
  }
  /// Gives the record back, idle.
  [[gnu::always_inline]] void give_back(int place) {
    port_.store(own_record(place), 0);
    free_ |= 1u << place;
  }
  /// Gives back a record while others may still write to these queue nodes. The record says `left`
  /// until they no longer do, so that no other participant gets our place meanwhile if we die.
  /// `abandoned` nodes come back as C25 says, or with the others when the generation is over and no
  /// participant is in it. At most one record is kept like this for each generation of each lock.
  void give_back_when_out(int place, std::uint32_t in_use, std::uint32_t abandoned) {
    for (std::uint32_t& others : abandoned_) others &= ~abandoned;
    // Noted before the first operation of the port, which may throw.
    const auto i = static_cast<std::size_t>(place);
    in_use_[i] = in_use;
    abandoned_[i] = abandoned;
    std::uint32_t rest = std::exchange(left_, left_ | 1u << place);
    const rma::word is = port_.load(own_record(place));
    for (; rest != 0; rest &= rest - 1) {
      const auto other = static_cast<std::size_t>(std::countr_zero(rest));
      if (port_.load(own_record(static_cast<int>(other))) != is) continue;
      in_use_[other] |= std::exchange(in_use_[i], 0);
      abandoned_[other] |= std::exchange(abandoned_[i], 0);
      give_back(place);
      left_ &= ~(1u << place);
      return;
    }
  }
  /// Takes back the records whose queue nodes others no longer write to.
  void collect() {
    for (std::uint32_t rest = all() & ~free_; rest != 0; rest &= rest - 1) {
      const int place = std::countr_zero(rest);
      if (is_out(place)) give_back(place);
    }
  }

 private:
  // The number of acquires between two collections that freed nothing: each collection reads all
  // records.
  static constexpr int patience = rma::examines_nothing<Port> ? 0 : 64;
  static constexpr int most_tries = 1000;

  [[nodiscard]] std::uint32_t all() const {
    return places_ == most_held ? ~0u : (1u << places_) - 1;
  }
  [[nodiscard]] static std::uint32_t union_of(const std::array<std::uint32_t, most_held>& of,
                                              std::uint32_t places) {
    std::uint32_t found = 0;
    for (std::uint32_t rest = places; rest != 0; rest &= rest - 1)
      found |= of[static_cast<std::size_t>(std::countr_zero(rest))];
    return found;
  }
  [[noreturn, gnu::noinline]] void refuse() const {
    throw std::length_error("more than " + std::to_string(places_) +
                            " robust locks held at once by one participant");
  }
  [[gnu::noinline]] void collect_if_due() {
    const bool has_node = (inside_.taken() | inside_.abandoned()) != ~0u;
    if (free_ != 0 && has_node && --until_due_ >= 0) return;
    collect();
    until_due_ = patience;
    // Other participants have yet to leave generations that are over: they do as soon as they run.
    if constexpr (!rma::examines_nothing<Port>)
      for (int tries = 0; free_ == 0 && left_ != 0 && tries < most_tries; ++tries) {
        port_.pause(1'000'000);
        collect();
      }
    if (free_ == 0) refuse();
  }

  // True if a record that is not free can be idle now. Frees its queue nodes then.
  [[nodiscard]] bool is_out(int place) {
    const auto i = static_cast<std::size_t>(place);
    const auto is = record::from(port_.load(own_record(place)));
    // While we live, only a participant that has abandoned our hold for us makes the record
    // `acknowledged`, and only then is it made idle by others (robust::abandon_for).
    const bool is_lost = (left_ & 1u << place) == 0 &&
                         (is.bits() == 0 || is.get(record::phase) == record::acknowledged);
    if (is_lost) left_ |= 1u << place;
    if ((left_ & 1u << place) == 0) return false;
    abandoned_[i] &= inside_.abandoned();  // its owner has taken the others back
    if ((in_use_[i] | abandoned_[i]) != 0 && is.bits() != 0) {
      // The generation first, and only an open one says that the one before is over: then the
      // repairer has made every participant that was in it pass a fence, and its record is seen.
      const auto lock = static_cast<std::uint32_t>(is.get(record::lock));
      const rma::word now = port_.load(rma::plain_cell{0, lock * rma::line_words});
      const rma::word generation = is.get(record::generation);
      if (is_closed(now) || now == generation || is_anyone_in(is.get(record::lock), generation))
        return false;
    }
    inside_.reset(in_use_[i] | abandoned_[i]);  // may throw
    in_use_[i] = abandoned_[i] = 0;
    left_ &= ~(1u << place);
    return true;
  }

  Port& port_;
  rma::interruptible<Port> waits_;
  rma::participant<rma::interruptible<Port>> inside_;
  rma::cpu_cell records_;
  int places_;
  std::array<rma::resolved<Port, rma::cpu_cell>, most_held> own_{};  // our records
  std::uint32_t free_;
  std::uint32_t left_ = 0;  // places given back to whose queue nodes others may still write
  int until_due_ = 0;
  // The queue nodes of each place: those that are in use, if it is in `left_` or its record holds,
  // and those that are abandoned, if it is in `left_`.
  std::array<std::uint32_t, most_held> in_use_{}, abandoned_{};
};

}  // namespace lockflight::lock
