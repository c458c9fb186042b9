// What a lock says of itself is true: names and order as in the lock table, parameters that keep to
// their ranges, and the bytes that it takes, measured as the cells that it touches.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lockflight/rma/barrier.hpp"
#include "subjects.hpp"

namespace lockflight::test {
namespace {

/// The design's lock table. Names are fixed: the program's users and reports rely on them.
constexpr std::pair<std::string_view, lock::kind> table[] = {
    {"spin", lock::kind::mutex},        {"spin-backoff", lock::kind::mutex},
    {"d-mcs", lock::kind::mutex},       {"rma-mcs", lock::kind::mutex},
    {"alock", lock::kind::mutex},       {"dq", lock::kind::mutex},
    {"dq-fair", lock::kind::mutex},     {"dlm-server", lock::kind::mutex},
    {"fompi-rw", lock::kind::rw},       {"fompi-rw-backoff", lock::kind::rw},
    {"rma-rw", lock::kind::rw},         {"rma-rw-listing", lock::kind::rw},
    {"mcs-rw-rp", lock::kind::rw},      {"mcs-rw-wp", lock::kind::rw},
    {"mcs-rw-fair", lock::kind::rw},    {"msg", lock::kind::rw},
    {"msg-deferred", lock::kind::rw},   {"flight", lock::kind::mutex},
    {"flight-rw", lock::kind::rw},      {"pthread-mutex", lock::kind::mutex},
    {"pthread-rwlock", lock::kind::rw},
};

/// Those that exist. A lock that is added, or loses its name, is a change of the table.
constexpr std::string_view present[] = {
    "spin",      "spin-backoff", "d-mcs",    "rma-mcs",          "alock",    "dq",
    "dq-fair",   "dlm-server",   "fompi-rw", "fompi-rw-backoff", "rma-rw",   "mcs-rw-rp",
    "mcs-rw-wp", "mcs-rw-fair",  "msg",      "flight",           "flight-rw"};

/// Calls `visit.operator()<Lock>()` for every lock on a port, the baselines included.
template <class Port, class Visit>
void for_each_lock(Visit visit) {
  const auto call = [&]<class Family>(Family) {
    visit.template operator()<typename Family::template on<Port>>();
  };
  lock::all::for_each(call);
  baselines::for_each(call);
}

TEST(facts, names_are_those_of_the_table_in_its_order) {
  std::vector<std::string_view> names;
  std::vector<std::ptrdiff_t> places;
  for_each_lock<shm::port>([&]<class Lock>() {
    const lock::facts about = Lock::about;
    SCOPED_TRACE(about.name);
    const auto* const at =
        std::find(std::begin(table), std::end(table), std::pair(about.name, about.what));
    ASSERT_NE(at, std::end(table)) << "no lock of this name and kind in the table";
    names.push_back(about.name);
    places.push_back(at - std::begin(table));
  });
  EXPECT_TRUE(std::is_sorted(places.begin(), places.end()));
  EXPECT_EQ(std::set(names.begin(), names.end()).size(), names.size()) << "names are unique";

  names.resize(names.size() - 2);  // the baselines
  EXPECT_EQ(names, std::vector(std::begin(present), std::end(present)));
}

TEST(facts, say_where_a_lock_comes_from_and_what_it_needs) {
  for_each_lock<shm::port>([]<class Lock>() {
    const lock::facts about = Lock::about;
    SCOPED_TRACE(about.name);
    EXPECT_FALSE(about.source.empty());
    EXPECT_EQ(about.needs_native_memory, about.name.starts_with("pthread-"));
    EXPECT_EQ(about.needs_messages, about.name.starts_with("msg") || about.name == "dlm-server");
    EXPECT_EQ(about.bears_lost_waiters, about.name == "dlm-server");
    EXPECT_GE(about.bytes_home, 0);
    EXPECT_GE(about.bytes_per_node, 0);
    EXPECT_GE(about.bytes_per_participant, 0);
    EXPECT_EQ(lock::to_string(about.what), lock::shared<Lock> ? "rw" : "mutex");
  });
}

// ---- parameters ----

TEST(facts, parameters_have_unique_names_and_defaults_in_their_ranges) {
  for_each_lock<shm::port>([]<class Lock>() {
    typename Lock::parameters set;
    std::set<std::string_view> names;
    for (const auto& p : Lock::parameters::all()) {
      SCOPED_TRACE(std::string(Lock::about.name) + " " + std::string(p.name));
      EXPECT_TRUE(names.insert(p.name).second) << "named twice";
      EXPECT_TRUE(std::all_of(p.name.begin(), p.name.end(), [](unsigned char c) {
        return std::isalnum(c) != 0 || c == '_';
      })) << "must be usable in --set name=value";
      EXPECT_FALSE(p.what.empty());
      EXPECT_LE(p.min, p.max);
      EXPECT_GE(p.of(set), p.min) << "the default";
      EXPECT_LE(p.of(set), p.max) << "the default";
    }
  });
}

TEST(facts, each_parameter_is_a_member_of_its_own) {
  for_each_lock<shm::port>([]<class Lock>() {
    const auto all = Lock::parameters::all();
    typename Lock::parameters set;
    std::int64_t value = 1'000'000;
    for (const auto& p : all) p.of(set) = value++;
    value = 1'000'000;
    for (const auto& p : all) EXPECT_EQ(p.of(set), value++) << Lock::about.name << " " << p.name;
  });
}

// ---- bytes ----

/// The cells that were touched, by all ranks. Threads write, so it is guarded.
class touched_cells {
 public:
  void note(rma::rank_t home, std::uint32_t index) {
    const std::lock_guard guard(mutex_);
    touched_[home].insert(index);
  }
  /// How many bytes of `rank`'s segment were touched among [from, to).
  [[nodiscard]] int bytes(rma::rank_t rank, std::uint32_t from, std::uint32_t to) const {
    const auto at = touched_.find(rank);
    if (at == touched_.end()) return 0;
    const auto count = std::distance(at->second.lower_bound(from), at->second.lower_bound(to));
    return static_cast<int>(count * static_cast<std::ptrdiff_t>(sizeof(rma::word)));
  }

 private:
  std::mutex mutex_;
  std::map<rma::rank_t, std::set<std::uint32_t>> touched_;
};

/// A decorator that notes every cell it is asked for.
template <rma::port Inner>
class noting : public fabric::decorator<Inner> {
  using base = fabric::decorator<Inner>;

 public:
  noting(Inner& inner, touched_cells& notes) : base(inner), notes_(notes) {}

  void put(auto to, rma::word value) { base::put(note(to), value); }
  void get(auto from, rma::word& result) { base::get(note(from), result); }
  void add(rma::nic_cell to, rma::word value) { base::add(note(to), value); }
  void fetch_add(rma::nic_cell at, rma::word value, rma::word& before) {
    base::fetch_add(note(at), value, before);
  }
  void swap(rma::nic_cell at, rma::word value, rma::word& before) {
    base::swap(note(at), value, before);
  }
  void compare_swap(rma::nic_cell at, rma::word expected, rma::word desired, rma::word& before) {
    base::compare_swap(note(at), expected, desired, before);
  }
  [[nodiscard]] rma::word load(auto from) { return base::load(note(from)); }
  void store(auto to, rma::word value) { base::store(note(to), value); }
  [[nodiscard]] rma::word cpu_fetch_add(rma::cpu_cell at, rma::word value) {
    return base::cpu_fetch_add(note(at), value);
  }
  [[nodiscard]] rma::word cpu_swap(rma::cpu_cell at, rma::word value) {
    return base::cpu_swap(note(at), value);
  }
  [[nodiscard]] rma::word cpu_compare_swap(rma::cpu_cell at, rma::word expected,
                                           rma::word desired) {
    return base::cpu_compare_swap(note(at), expected, desired);
  }
  rma::word await(auto on, auto done) { return base::await(note(on), done); }
  rma::word poll(auto from, auto done, rma::backoff back_off) {
    return base::poll(note(from), done, back_off);
  }

 private:
  template <class Cell>
  Cell note(Cell c) {
    notes_.note(c.home, c.index);
    return c;
  }

  touched_cells& notes_;
};

using noting_port = noting<shm::port>;

/// What a lock takes on a machine of 2 nodes of 3 ranks, its home a rank that leads nothing.
struct taken {
  static constexpr rma::rank_t home = 4;
  touched_cells cells;
  std::uint32_t begin = 0, end = 0;  // the lock's part of the layout
  std::uint32_t lines_end = 0;       // the queue nodes' part starts where the layout does
  std::atomic<int> coming{0};        // ranks that are about to call lock()
};

template <class Lock>
void use(taken& notes) {
  const shm::config what{.machine = rma::topology::balanced({2, 3}), .threads = true};
  shm::run_ports(what, [&](shm::port& bare) {
    noting_port p(bare, notes.cells);
    rma::participant<noting_port> me(p, what.words_per_rank);
    const std::uint32_t lines_end = me.cells().used();
    const auto where =
        Lock::cells::place(me.cells(), me.machine(), typename Lock::parameters{}, taken::home);
    if (me.rank() == 0) {
      notes.lines_end = lines_end;
      notes.begin = lines_end;
      notes.end = me.cells().used();
    }
    Lock lock(me, where, {});
    rma::barrier all(me);
    const auto exclusive = [&] { lock.lock(); };
    const auto end_exclusive = [&] { lock.unlock(); };
    // One holds the lock while all others want it.
    const auto meet = [&](rma::rank_t holder, auto hold, auto release, auto take, auto give) {
      if (me.rank() == holder) {
        hold();
        notes.coming = 0;
      }
      all.arrive_and_wait();
      if (me.rank() == holder) {
        while (notes.coming != me.machine().ranks() - 1) me.port().pause(1000);
        for (int i = 0; i < 4; ++i) me.port().pause(50'000);
        release();
      } else {
        ++notes.coming;
        take();
        give();
      }
      all.arrive_and_wait();
    };
    // Everybody in turn, since who never waits touches less; and several times, since who of a node
    // waits behind whom is left to chance.
    for (int turn = 0; turn < 6 * me.machine().ranks(); ++turn) {
      const rma::rank_t holder = turn % me.machine().ranks();
      meet(holder, exclusive, end_exclusive, exclusive, end_exclusive);
      if constexpr (lock::shared<Lock>) {
        const auto shared = [&] { lock.lock_shared(); };
        const auto end_shared = [&] { lock.unlock_shared(); };
        meet(holder, exclusive, end_exclusive, shared, end_shared);
        meet(holder, shared, end_shared, exclusive, end_exclusive);
        meet(holder, shared, end_shared, shared, end_shared);
      }
      if constexpr (lock::can_time<Lock>) {
        bool in_time = false;
        const auto for_a_moment = [&] { in_time = lock.try_lock_within(20'000); };
        const auto end_if_held = [&] {
          if (in_time) lock.unlock();
        };
        meet(holder, exclusive, end_exclusive, for_a_moment, end_if_held);
      }
    }
  });
}

TEST(facts, bytes_are_those_of_the_cells_touched) {
  lock::all::for_each([]<class Family>(Family) {
    using lock_type = typename Family::template on<noting_port>;
    const lock::facts about = lock_type::about;
    SCOPED_TRACE(about.name);
    taken notes;
    ASSERT_NO_THROW(use<lock_type>(notes));
    int most_of_lines = 0;
    for (rma::rank_t rank = 0; rank < 6; ++rank) {
      SCOPED_TRACE(testing::Message() << "rank " << rank);
      const bool leads_node = rank == 0 || (rank == 3 && !about.node_at_home);
      EXPECT_EQ(
          notes.cells.bytes(rank, notes.begin, notes.end),
          (rank == taken::home ? about.bytes_home : 0) + (leads_node ? about.bytes_per_node : 0));
      // Who never happened to wait behind another one of its node touched less.
      const int of_lines = notes.cells.bytes(rank, 0, notes.lines_end);
      EXPECT_LE(of_lines, about.bytes_per_participant);
      most_of_lines = std::max(most_of_lines, of_lines);
    }
    EXPECT_EQ(most_of_lines, about.bytes_per_participant);
  });
}

// What place() takes of the layout is what the facts say, but for whole lines and for the blocks
// being symmetric: each block of a lock has at least one cell that it uses somewhere.
TEST(facts, place_takes_what_the_facts_say) {
  constexpr int line_bytes = static_cast<int>(rma::line_words * sizeof(rma::word));
  for_each_lock<shm::port>([]<class Lock>() {
    const lock::facts about = Lock::about;
    SCOPED_TRACE(about.name);
    rma::layout fresh(1u << 12);
    const std::uint32_t before = fresh.used();
    static_cast<void>(
        Lock::cells::place(fresh, rma::topology::balanced({2, 3}), typename Lock::parameters{}, 0));
    const int bytes = static_cast<int>((fresh.used() - before) * sizeof(rma::word));
    const int said = about.bytes_home + about.bytes_per_node;
    const int blocks = said / static_cast<int>(sizeof(rma::word));  // one word each, at worst
    EXPECT_GE(bytes, said);
    EXPECT_LE(bytes, std::max(blocks * line_bytes, said + line_bytes));
  });
}

// The design's promise: one lock at most 64 bytes at its home and 16 bytes on each node. Three have
// more on a node: rma-rw, whose writers' queue and readers' counter lie there, as in the paper;
// flight, whose nodes have a lock of their own and an entry in the queue of nodes; and flight-rw,
// which has both.
TEST(facts, locks_are_as_small_as_promised) {
  for_each_lock<shm::port>([]<class Lock>() {
    const lock::facts about = Lock::about;
    EXPECT_LE(about.bytes_home, 64) << about.name;
    const std::map<std::string_view, int> more{{"rma-rw", 32}, {"flight", 32}, {"flight-rw", 48}};
    const auto found = more.find(about.name);
    EXPECT_LE(about.bytes_per_node, found == more.end() ? 16 : found->second) << about.name;
    EXPECT_LE(about.bytes_per_participant, static_cast<int>(rma::line_words * sizeof(rma::word)))
        << about.name;
  });
}

}  // namespace
}  // namespace lockflight::test
