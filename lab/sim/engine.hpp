// The simulator: a fiber for each rank, one queue of events, and the machine's resources.
//
// A rank runs ahead of the queue as long as no event is due before its next operation, since only
// an operation is visible to other ranks. So a rank whose operations are the next ones anyway is
// never suspended, and all accesses to shared state happen in the order of virtual time.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <unordered_set>
#include <vector>

#include "lab/fiber/fiber.hpp"
#include "lab/fiber/stack_pool.hpp"
#include "lab/sim/crossroads.hpp"
#include "lab/sim/event_queue.hpp"
#include "lab/sim/library_call.hpp"
#include "lab/sim/machine.hpp"
#include "lab/sim/memory.hpp"
#include "lockflight/fabric/counting.hpp"
#include "lockflight/rma/port.hpp"
#include "lockflight/rma/topology.hpp"

namespace lockflight::sim {

using rma::rank_t;
using rma::word;

/// A run in which a rank failed, or no rank can continue.
struct rank_failed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A run that has gone beyond setting::most_events.
struct too_many_events : std::runtime_error {
  using std::runtime_error::runtime_error;
};

enum class posted_kind : std::uint8_t { put, get, add, fetch_add, swap, compare_swap, message };

/// The posted compare-and-swaps of a rank that have taken effect.
struct compare_swaps {
  std::uint64_t posted = 0;
  std::uint64_t failed = 0;  ///< found another value than they expected
};

/// A predicate with its type erased.
struct predicate {
  bool (*holds)(const void* on, word now) = nullptr;
  const void* on = nullptr;

  [[nodiscard]] bool operator()(word now) const { return holds(on, now); }
};

struct setting {
  const machine_profile& profile;
  const rma::topology& machine;
  std::uint32_t words_per_rank = 1u << 17;
  std::uint64_t seed = 1;
  std::size_t stack_bytes = std::size_t{64} << 10;
  std::uint64_t most_events = 0;  ///< a run with clearly more is ended; 0: any number
  /// The machine's node for each node of `machine`; empty: the first ones, in order.
  std::vector<std::uint32_t> places{};
};

class engine {
 public:
  /// Throws std::invalid_argument if the machine has too few nodes or cores, or lacks a node of
  /// `places`; std::system_error if there is not enough memory.
  explicit engine(const setting& what);
  ~engine();
  engine(const engine&) = delete;
  engine& operator=(const engine&) = delete;

  /// Runs `body(rank)` on every rank until all have returned. `watch` is called a few times a
  /// second of real time; what it throws ends the run. Throws rank_failed or too_many_events.
  void run(const std::function<void(rank_t)>& body, const std::function<void()>& watch);

  [[nodiscard]] const rma::topology& machine() const { return machine_; }
  [[nodiscard]] bool orders_posts() const { return profile_.nic.ordered_posts; }

  // ---- called by ports; `me` is the rank whose fiber runs ----

  [[nodiscard]] time_ps now(rank_t me) const { return state(me).now; }
  /// Computes until then.
  void compute_until(rank_t me, time_ps then);

  void post(rank_t me, posted_kind kind, rank_t home, std::uint32_t index, word value, word desired,
            word* result, std::uint16_t lines = 1);
  /// True if the processor does posted operations on such cells of the own node.
  [[nodiscard]] bool is_the_processors(rma::cell_class cells) const {
    const own_node own = profile_.nic.own;
    return own == own_node::all || (own == own_node::cells && cells != rma::cell_class::nic);
  }
  /// Throws std::out_of_range unless there is such a cell.
  void check_cell(rank_t home, std::uint32_t index) const;
  /// Takes effect at the call.
  void post_by_cpu(rank_t me, posted_kind kind, rank_t home, std::uint32_t index, word value,
                   word desired, word* result, std::uint16_t lines);
  /// Waits for the rank's operations on `target`; -1: on all targets.
  void flush(rank_t me, rank_t target);

  [[nodiscard]] word load(rank_t me, rank_t home, std::uint32_t index);
  /// The cache lines of the cells come at the same time, as many as a core can wait for at once.
  void load_each(rank_t me, std::span<const rma::cpu_cell> from, std::span<word> results);
  void store(rank_t me, rank_t home, std::uint32_t index, word value);
  [[nodiscard]] word rmw(rank_t me, posted_kind kind, rank_t home, std::uint32_t index, word value,
                         word desired);
  void fence(rank_t me);

  /// Waits until the predicate holds, which returns true and the value, or, if the rank serves,
  /// until a message has come, which returns false.
  [[nodiscard]] bool await(rank_t me, rank_t home, std::uint32_t index, predicate test,
                           word& value);
  void pause(rank_t me, std::uint64_t ns);
  /// From now on `others` other processes of the rank's node run all the time. Those without a core
  /// of their own share one with the rank, by time slices.
  void share_core(rank_t me, std::uint32_t others);
  /// The library's own share of a call.
  void call(rank_t me, library_call what);

  void send(rank_t me, rank_t to, const std::array<word, 3>& body);
  void receive(rank_t me, rma::message& got);
  [[nodiscard]] bool try_receive(rank_t me, rma::message& got);
  void serve(rank_t me, bool serves) { state(me).serves = serves; }

  // ---- what a run reports ----

  [[nodiscard]] const compare_swaps& swaps_of(rank_t me) const { return state(me).swaps; }
  /// How long this rank's processor has been busy with messages.
  [[nodiscard]] time_ps time_on_messages(rank_t me) const { return state(me).on_messages; }
  /// How long the atomic units of this rank's card have been busy, of each unit.
  [[nodiscard]] time_ps time_on_atomics(rank_t me) const {
    return nics_[state(me).node].on_atomics / profile_.nic.atomic_engines;
  }

 private:
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  /// A posted operation or a message on its way, in one cache line.
  struct alignas(64) operation {
    posted_kind kind{};
    bool done : 1 = false;
    bool loops_back : 1 = false;
    bool is_under_way : 1 = false;  // where links have a capacity
    bool follows : 1 = false;       // posts are ordered, and `next` went to the same rank
    std::uint16_t lines = 1;        // cache lines in a row, of each of which a get reads a word
    rank_t origin = -1;
    rank_t home = -1;
    std::uint32_t index = 0;
    std::uint32_t next = none;  // of the same origin, of a mailbox, or of the free ones
    std::uint32_t before = none;
    time_ps way = 0;       // one way; the answer takes as long
    time_ps complete = 0;  // when the origin sees it; before, when it will take effect;
                           // of a message its third word
    word value = 0;
    word desired = 0;
    word* result = nullptr;
  };
  static_assert(sizeof(operation) == 64);

  enum class waiting : std::uint8_t { nothing, turn, flush, cell, message, confirmation };

  /// Each end of a connection has a context, in the card of its rank.
  enum class end_of_connection : std::uint8_t { origin, target };

  // First, in a cache line of their own, the members that every operation needs.
  struct alignas(64) rank_state {
    fiber::fiber fiber;
    time_ps now = 0;
    time_ps resumed = 0;           // the moment of its last event
    std::uint32_t pending = none;  // its unflushed operations, the last first
    std::uint32_t first_mail = none;
    std::uint32_t last_mail = none;
    rank_t next_waiter = -1;   // the next rank that waits for cells of the same home
    rank_t first_waiter = -1;  // the first rank that waits for cells of this rank
    std::uint32_t core = 0;    // of its node
    std::uint32_t node = 0;
    std::uint32_t place = 0;  // of the machine's nodes
    waiting for_what = waiting::nothing;
    bool serves = false;
    bool ended = false;
    time_ps left = 0;  // when its last posted operation left; where posts are ordered
    // waiting::flush
    rank_t flush_target = -1;
    std::uint32_t flushing = 0;  // operations that are still to complete
    time_ps flushed = 0;         // when the last known one completes
    // waiting::cell
    rank_t home = -1;
    std::uint32_t index = 0;
    predicate test;
    bool woken = false;        // by the cell, not by a message
    bool polls_again = false;  // woken, and reading the cell again: many_core.cpp
    bool unflushed = false;    // many_core.cpp
    // a core that is shared
    time_ps others_have_it = 0;  // after each slice of this rank
    time_ps slice_ends = 0;
    word value = 0;
    // messages::confirmed
    std::uint32_t unconfirmed = 0;  // messages of which it is not known when they will be
    bool must_confirm = false;      // there were such messages since the last one was received
    time_ps confirmed = 0;          // when the last known one is
    // the time that a run reports
    time_ps on_messages = 0;
    compare_swaps swaps;
  };

  struct nic {
    std::vector<time_ps> injection;  // each engine: free from then on
    std::vector<time_ps> atomics;
    time_ps reception = 0;
    time_ps answers = 0;          // answers of more than a word come in one after another
    std::uint32_t loopbacks = 0;  // in flight
    time_ps on_atomics = 0;       // the time that a run reports
    std::unordered_set<std::uint64_t> peers;  // connections in use: both ranks, and which end
    double missed = 0;                        // the fraction of a miss that is carried over
    // arbitration::turns
    time_ps entry = 0;  // no operation comes in from the network before
    std::unique_ptr<crossroads> waiting;
  };

  /// A core that polls a cell of its own until the predicate holds.
  struct poller {
    rank_t rank;
    time_ps served;   // when its last read was served
    time_ps arrives;  // when its next one reaches the controller
    time_ps around;   // from the service of one read to the arrival of the next
  };
  struct controller {
    time_ps free = 0;
    std::vector<poller> pollers;
  };
  /// A core that asks for a register again and again.
  struct asker {
    rank_t rank;
    std::uint32_t node;  // whose register it wants
    time_ps arrives;     // when its request, or the answer to it, reaches the port
    time_ps around;      // from the answer at the port to the next request there
    bool answer;         // the transfer is the answer
  };
  /// The port by which a tile is attached to the mesh.
  struct tile_port {
    time_ps free = 0;
    std::vector<asker> asking;  // for the registers of the tile
  };

  [[nodiscard]] rank_state& state(rank_t rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] const rank_state& state(rank_t rank) const {
    return ranks_[static_cast<std::size_t>(rank)];
  }
  [[nodiscard]] operation& at(std::uint32_t number) { return operations_[number]; }

  // engine.cpp: the loop
  void place_ranks(const std::vector<std::uint32_t>& places);
  void handle(const event& now);
  void prefetch(const event& soon) const;
  void resume(rank_t rank, time_ps at);
  [[noreturn]] void fail_stuck() const;
  void reach(rank_state& r, rank_t me) {
    if (queue_.next() < r.now) wait_turn(r, me);
  }
  // The same for an operation that takes effect only after a way through the network. Events that
  // are due before may still happen later; this does no harm, except that ranks that share a
  // network interface may be served in another order if they come within the time of a completion
  // and a post.
  void nearly_reach(rank_state& r, rank_t me) {
    if (r.now > r.resumed + leeway_) reach(r, me);
  }
  void wait_turn(rank_state& r, rank_t me);
  void suspend(rank_state& r, waiting for_what);
  [[nodiscard]] time_ps about(time_ps length);
  void check_own_node(rank_t me, rank_t home, std::uint32_t index) const;
  void note_swap(rank_t me, posted_kind kind, word expected, word found) {
    if (kind != posted_kind::compare_swap) return;
    compare_swaps& of = state(me).swaps;
    ++of.posted;
    of.failed += found == expected ? 0 : 1;
  }

  // network_interface.cpp: posted operations and messages
  [[nodiscard]] std::uint32_t take_operation();
  void release_operation(std::uint32_t number);
  void inject(rank_state& r, std::uint32_t number);
  [[nodiscard]] time_ps way(const rank_state& from, const rank_state& to, operation& what);
  [[nodiscard]] time_ps connection_miss(nic& card, const operation& what, end_of_connection end);
  [[nodiscard]] time_ps link_waits(const rank_state& from, const rank_state& to, time_ps left,
                                   std::uint16_t lines);
  [[nodiscard]] bool must_wait_on_the_way(std::uint32_t number, time_ps arrived);
  void admit(std::uint32_t node, time_ps now);
  void arrive(std::uint32_t number, time_ps at);
  void receive_at(nic& card, std::uint32_t number, time_ps arrived);
  void take_effect(std::uint32_t number, time_ps at);
  void change(operation& what, time_ps at);
  void complete(std::uint32_t number);
  void unlink(rank_state& r, std::uint32_t number);
  void deliver(std::uint32_t number, time_ps at);
  void confirm(const operation& message, time_ps at);
  void await_confirmations(rank_state& r);
  void take_mail(rank_state& r, rma::message& got);

  // processor.cpp: immediate operations and waiting
  void begin_slice(rank_state& r) const;
  void keep_to_slices(rank_state& r) const;
  void touch(rank_state& r, rank_t me, cache_line& line, bool exclusive, time_ps hit);
  [[nodiscard]] time_ps transfer(const rank_state& to, const cache_line& line) const;
  void wake_waiters(rank_t home, std::uint32_t index, word value, time_ps at, cache_line& line);
  void stop_waiting(rank_t me);

  // many_core.cpp: the same on uncached memory behind controllers
  [[nodiscard]] bool is_many_core() const { return !controllers_.empty(); }
  void place_controllers();
  [[nodiscard]] time_ps way_between(std::uint32_t place, std::uint32_t other);
  [[nodiscard]] controller& controller_of(rank_t home);
  [[nodiscard]] time_ps way_to_controller(const rank_state& r, rank_t home);
  [[nodiscard]] tile_port& port_at(std::uint32_t place) {
    return ports_[place / profile_.memory.tile_nodes];
  }
  void serve_askers(tile_port& by, time_ps until);
  void pass(rank_state& r, rank_t me, tile_port& by);
  void come_in(rank_state& r, rank_t me);
  void serve_pollers(controller& by, time_ps until);
  [[nodiscard]] time_ps pass(controller& by, time_ps arrived);
  template <class Effect>
  void access(rank_state& r, rank_t me, rank_t home, time_ps answer, Effect effect);
  void take_register(rank_state& r, rank_t me, rank_t home);
  void wake_first_asker(tile_port& by, std::uint32_t node, time_ps now);
  void reset_register(rank_state& r, rank_t me, rank_t home);
  word uncached_load(rank_state& r, rank_t me, rank_t home, std::uint32_t index);
  void uncached_store(rank_state& r, rank_t me, rank_t home, std::uint32_t index, word value);
  word uncached_rmw(rank_state& r, rank_t me, posted_kind kind, rank_t home, std::uint32_t index,
                    word value, word desired);
  void perform(rank_t me, posted_kind kind, rank_t home, std::uint32_t index, word value,
               word desired, word* result);
  word written(posted_kind kind, rank_t home, std::uint32_t index, word value, word desired,
               time_ps now);
  void begin_to_poll(rank_state& r, rank_t me);
  void poll_again(rank_state& r);
  void wake_poller(rank_t waiter, time_ps now);
  poller stop_polling(rank_t waiter);

  const machine_profile& profile_;
  const rma::topology& machine_;
  std::uint64_t seed_;
  std::uint64_t most_events_;
  memory memory_;
  event_queue queue_;
  std::vector<operation> operations_;
  std::uint32_t free_operations_ = none;
  std::vector<nic> nics_;
  std::vector<controller> controllers_;       // on a many-core only
  std::vector<std::uint32_t> controller_at_;  // of each node
  std::vector<tile_port> ports_;              // of each tile
  std::vector<std::uint8_t> taken_;           // the test-and-set register of each node
  std::vector<time_ps> links_;        // [link]: free from then on; empty if links have no capacity
  std::vector<std::uint32_t> route_;  // of the operation at hand
  time_ps word_time_;                 // to carry one word
  time_ps leeway_;
  std::uint64_t chances_ = 0;  // random numbers drawn so far
  std::uint32_t left_ = 0;     // ranks that have not ended
  fiber::stack_pool stacks_;
  std::vector<rank_state> ranks_;
  std::string failure_;
};

}  // namespace lockflight::sim
