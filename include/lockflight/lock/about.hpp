// The facts of a lock: its name, kind, source and sizes, and its parameters. `lockflight locks`
// prints them and the bench's --set uses them.
#pragma once

#include <cstdint>
#include <string_view>

#include "lockflight/rma/cxx20.hpp"

namespace lockflight::lock {

enum class kind : std::uint8_t {
  mutex,  ///< lock, unlock
  rw,     ///< lock, unlock, lock_shared, unlock_shared
};

[[nodiscard]] constexpr std::string_view to_string(kind k) {
  return k == kind::mutex ? "mutex" : "rw";
}

/// The facts of one lock. Bytes are those of the cells that it uses, before padding to cache lines.
struct facts {
  std::string_view name;  ///< as in the design's lock table; fixed
  kind what;
  std::string_view source;  ///< the paper and section; of a lock of this project, "lockflight: …"
  int bytes_home;           ///< per lock, at its home
  int bytes_per_node;       ///< per lock, on each node (at default parameters, one level of nodes)
  int bytes_per_participant;  ///< per participant and nesting depth, whatever the number of locks
  /// Comes on top of bytes_home for each rank of the machine.
  int bytes_home_per_rank = 0;
  /// Comes on top of bytes_per_node where a node has many ranks: at most, in whole cache lines.
  int bytes_of_counters = 0;
  bool node_at_home =
      false;  ///< the words of the home's node lie at the home and count in bytes_home
  bool needs_native_memory = false;  ///< runs on shm only
  bool needs_messages = false;
  bool bears_lost_waiters = false;  ///< goes on without a lost rank (C39) that does not hold it
  bool as_printed = false;          ///< a paper's listing, for the checker and simulated runs alone
  bool defers = false;  ///< guards only operations that go through it, at the release: lock::defers
};

/// A tunable number of a lock: a member of its `parameters`, with its range.
template <class Parameters>
struct parameter {
  std::string_view name;
  std::int64_t& (*of)(Parameters&);
  std::int64_t min;
  std::int64_t max;
  std::string_view what;
};

/// The size of a table of locks: how many locks, and how many ranks use them.
struct table_size {
  std::int64_t locks;
  std::int64_t ranks;
};

/// The parameters of one lock among many; they may make it take less memory.
template <class Parameters>
[[nodiscard]] constexpr Parameters one_of(const Parameters& set, table_size of) {
  if constexpr (requires { set.one_of(of); })
    return set.one_of(of);
  else
    return set;
}

/// The parameters of a lock in a table; some have other defaults there.
template <class Parameters>
[[nodiscard]] constexpr Parameters in_table(const Parameters& set, table_size of) {
  if constexpr (requires { set.in_table(of); })
    return set.in_table(of);
  else
    return set;
}

}  // namespace lockflight::lock
