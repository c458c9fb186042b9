// The entries of cql at its home: a ring of slots, and a word of its own for each rank.
//
// The entry of a place is written into the slot of that place, and into its rank's own word (Q2 of
// cql.hpp). A slot has the entry of one of the places that share it; an own word that of its rank's
// last wait.
//
// Cost in network operations, each row in one round trip:
// | write             | 2 puts                                 |
// | read a slot       | 1 get                                  |
// | search slots      | 1 get for each place, at most 8        |
// | search own words  | 1 get for each rank, at most 8         |
// Searches of more take several round trips.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "lockflight/lock/part/cql_words.hpp"
#include "lockflight/rma/participant.hpp"

namespace lockflight::lock {

/// The entries that a search found for the places from `first` to before `end`.
struct cql_census {
  std::uint32_t first;
  std::uint32_t end;
  cql_entry at_first = {};       ///< the entry of `first`, or none
  rma::word writers_behind = 0;  ///< entries of writers for the other places

  void count(cql_entry entry) {
    if (!entry.is_of_one(first, end)) return;
    if (entry.is_of(first))
      at_first = entry;
    else if (entry.has(cql_entry::exclusive))
      ++writers_behind;
  }
};

template <rma::port Port>
class cql_entries {
 public:
  using batch = std::array<rma::word, rma::line_words>;

  cql_entries(rma::participant<Port>& me, rma::nic_cell header, rma::plain_cell ring,
              rma::plain_cell own)
      : port_(me.port()),
        ranks_(static_cast<std::uint32_t>(me.machine().ranks())),
        header_(header),
        ring_(ring),
        own_(own),
        mine_(own + static_cast<std::uint32_t>(me.rank())) {}

  [[nodiscard]] std::uint32_t ranks() const { return ranks_; }
  [[nodiscard]] rma::plain_cell slot_of(std::uint32_t place) const {
    return ring_ + place % ranks_;
  }

  /// Writes our entry, flushed: the participant that is to notify us may be waiting for the entry.
  void write(std::uint32_t place, cql_entry entry) {
    port_.put(mine_, entry.bits());
    port_.put(slot_of(place), entry.bits());
    port_.flush(ring_.home);
  }

  [[nodiscard]] cql_entry read_slot(std::uint32_t place) {
    return cql_entry::from(rma::get_now(port_, slot_of(place)));
  }
  /// Reads the slots from that of `place` on, up to `end` or as many as there is room for, in one
  /// round trip. Returns how many.
  [[nodiscard]] std::uint32_t read_slots(std::uint32_t place, std::uint32_t end, batch& into) {
    const auto count = std::min(end - place, static_cast<std::uint32_t>(into.size()));
    for (std::uint32_t i = 0; i < count; ++i) port_.get(slot_of(place + i), into[i]);
    port_.flush(ring_.home);
    return count;
  }

  /// Two of these places may share a slot where the numbers of places wrap around. The slot is read
  /// twice then, so an entry counts only when the read is for its own place.
  [[nodiscard]] cql_census search_slots(std::uint32_t first, std::uint32_t end) {
    cql_census found{first, end};
    for (batch read{}; first != end;) {
      const std::uint32_t count = read_slots(first, end, read);
      for (std::uint32_t i = 0; i < count; ++i, ++first)
        if (const auto entry = cql_entry::from(read[i]); entry.is_of(first)) found.count(entry);
    }
    return found;
  }

  [[nodiscard]] cql_census search_own_words(std::uint32_t first, std::uint32_t end) {
    cql_census found{first, end};
    batch read{};
    for (std::uint32_t rank = 0; rank < ranks_; rank += static_cast<std::uint32_t>(read.size())) {
      const auto count = std::min(ranks_ - rank, static_cast<std::uint32_t>(read.size()));
      for (std::uint32_t i = 0; i < count; ++i) port_.get(own_ + (rank + i), read[i]);
      port_.flush(own_.home);
      for (std::uint32_t i = 0; i < count; ++i) found.count(cql_entry::from(read[i]));
    }
    return found;
  }

  /// True if the first place in the queue comes after this one. 1 get.
  [[nodiscard]] bool is_served(std::uint32_t place) {
    return cql_header::from(rma::get_now(port_, header_)).has_served(place);
  }

 private:
  Port& port_;
  std::uint32_t ranks_;
  rma::nic_cell header_;
  rma::plain_cell ring_;
  rma::plain_cell own_;
  rma::plain_cell mine_;
};

}  // namespace lockflight::lock
