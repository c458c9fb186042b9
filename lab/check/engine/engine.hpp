// Runs a program of a few participants one step at a time, in whatever order its caller chooses.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "lab/check/memory/memory.hpp"
#include "lab/check/memory/world.hpp"
#include "lab/fiber/fiber.hpp"
#include "lockflight/rma/assert.hpp"
#include "lockflight/rma/port.hpp"

namespace lockflight::check {

class engine;

/// The memory orders and fences of a port, for a memory that needs them; by default those of
/// fabric/cpu_operations.hpp.
struct port_orders {
  order load{.acquires = true, .releases = false};
  order await{.acquires = true, .releases = false};  ///< also of poll
  order get{.acquires = true, .releases = false};
  order store{.acquires = false, .releases = true};
  order put{.acquires = false, .releases = true};
  order cpu_rmw{.acquires = true, .releases = true};
  order nic_rmw{.acquires = true, .releases = true};
  bool fence = true;            ///< fence() is one
  bool fence_after_rmw = true;  ///< a CPU's
  bool fence_at_flush = true;   ///< behind the puts and RMWs that it completes
  bool fence_at_get = true;     ///< between an earlier store and the get (C12)

  /// True if some operation neither acquires nor releases all that it could.
  [[nodiscard]] bool are_weak() const {
    return !(load.acquires && await.acquires && get.acquires && store.releases && put.releases &&
             cpu_rmw.acquires && cpu_rmw.releases && nic_rmw.acquires && nic_rmw.releases);
  }
};

/// The memory model, each part switchable, and the bounds of one execution.
struct model {
  memory_kind memory = memory_kind::tso;
  port_orders orders = {};      ///< views only
  bool delayed_effects = true;  ///< posted operations take effect at any moment until their flush
  bool reordering = true;  ///< posted operations to a rank take effect in any order; if not, in the
                           ///< one that they were called in, as where a port orders posts
  bool store_buffering = true;  ///< stores are seen by others at any later moment, in order
  bool report_mixed = true;     ///< a cell with RMWs of both classes is a violation by itself; if
                                ///< not, RMWs through the fabric are not atomic with CPUs'
  int retries = 2;  ///< fruitless attempts of one acquire, after which the participant stands still
  std::optional<std::int64_t> most_overtaken =
      std::nullopt;  ///< by later comers that exclude it; nullopt: the lock's bound, if it has one
  bool has_doorway = false;  ///< a waiter's place counts from begin_waiting on; if not, from its
                             ///< first wait on
  /// Every participant comes and retries without end, so that schedules do not end. The key of a
  /// state then depends on its content and not on its history, so that a schedule can return to
  /// one.
  bool endless = false;
  int deaths = 0;  ///< at most so many participants die
  int stops = 0;   ///< at most so many stop for ever without dying
};

/// The program: the same on every execution, but for the schedule.
struct program {
  rma::topology machine = rma::topology::flat(1);
  std::function<void(engine&, rank_t)> body;  ///< of each participant; called on its fiber
  /// True if a participant that dies now says that it holds exclusively; for a mortal lock.
  std::function<bool(const engine&, rank_t)> says_that_it_holds = nullptr;
  /// True if another participant may take a dead one's place. No participant writes to the dead
  /// one's queue nodes then.
  std::function<bool(const engine&, rank_t)> is_free_to_take = nullptr;
  /// True if a participant says that it holds, exclusively or not.
  std::function<bool(const engine&, rank_t)> says_that_it_holds_any = nullptr;
  /// True if a participant has the right to repair.
  std::function<bool(const engine&, rank_t)> repairs = nullptr;
};

/// A step: something that can happen next.
struct step {
  enum class kind : std::uint8_t {
    run,     ///< a participant goes on
    effect,  ///< the participant's posted operation `index` takes effect
    drain,   ///< the participant's oldest buffered store becomes visible
    expire,  ///< the participant's deadline is over
    death,   ///< the participant dies, or its death becomes known
    stop,    ///< the participant stops for ever
    lapse,   ///< the deadline of a grant is over: it goes on from its wait or pause
  };
  kind what = kind::run;
  std::uint8_t fiber = 0;
  std::uint8_t index = 0;
  std::uint8_t choice = 0;  ///< the message that it reads, or that its write goes behind, from the
                            ///< newest on; of a wait with a lifeline, in the upper half, the
                            ///< message of that cell

  friend bool operator==(const step&, const step&) = default;
};

/// The rule that was broken.
struct violation {
  std::string property;  ///< "mutual exclusion", "deadlock", …
  std::string detail;
};

/// A program in a state. Not copyable; a state can be saved and returned to (save, restore).
class engine final : private rma::assertion_listener {
 public:
  engine(program what, const model& how);
  ~engine();
  engine(const engine&) = delete;
  engine& operator=(const engine&) = delete;

  // ---- for the search ----

  /// Goes back to the beginning: every participant is about to take its first step.
  void start();
  /// The enabled steps, in a fixed order. Empty when all participants have finished or none can go
  /// on.
  void enabled(std::vector<step>& steps) const;
  [[nodiscard]] bool is_enabled(step s) const;
  /// Carries out a step. Afterwards `broken()` says whether a rule was broken.
  void take(step s);
  [[nodiscard]] const std::optional<violation>& broken() const { return broken_; }
  [[nodiscard]] bool all_finished() const;
  /// True if a participant stands still because it has used up its retries: then the end is no
  /// deadlock.
  [[nodiscard]] bool somebody_gave_up() const;
  /// True if some participant must go on by itself if scheduled; effects that no flush waits for
  /// may never happen.
  [[nodiscard]] bool only_unflushed(std::span<const step> steps) const;
  /// True if no participant that can go no further had to: a stopped one holds.
  [[nodiscard]] bool all_are_excused() const;
  /// Why no participant can go on.
  [[nodiscard]] violation describe_deadlock() const;
  /// Two states with the same key have the same future, but for hash collisions (64 bits).
  [[nodiscard]] std::uint64_t key() const;
  /// The duty of a step, at most one bit: a fair schedule does it sooner or later if it stays
  /// possible. A participant in a round goes on, an operation that a flush waits for takes effect,
  /// a store becomes visible, a message from one rank to another arrives and is served before the
  /// receiver comes, a death becomes known. It is no duty (0) that an operation takes effect for
  /// which no flush waits, nor that a participant comes, nor that one dies.
  [[nodiscard]] std::uint64_t duty(step s) const;
  /// True if a participant is in a round and no duty is possible.
  [[nodiscard]] bool nobody_goes_on() const;
  /// A bit for each living participant that is in a round, between coming and having left, and a
  /// bit for each that releases.
  [[nodiscard]] std::uint16_t in_round() const;
  [[nodiscard]] std::uint16_t leaving() const;
  /// Grows when the search learns that a participant retries, or with drop_unread that it reads a
  /// cell; a search that saw it grow starts over.
  [[nodiscard]] unsigned learned() const { return retrying_ + (memory_->learned() << most_fibers); }
  /// For a search that starts over: the memory drops what no participant has been seen to read, and
  /// fences that add nothing to what others see are part of the step before.
  void drop_unread() { memory_->drop_unread(); }
  /// The number of fences that were part of the last step.
  [[nodiscard]] int fences_at_once() const { return fences_at_once_; }

  /// The whole state, to return to. Reuses the capacity of `into`.
  struct saved {
    world state;
    std::vector<std::byte> words;
    std::optional<violation> broken;
    std::array<std::vector<std::byte>, most_fibers> image;
  };
  void save(saved& into) const;
  void restore(const saved& from);

  /// The changes of one step, to undo it. The participant's state and, if it ran, its stack are
  /// pushed onto `images`, a stack of bytes that all records share.
  struct undo {
    shared_state all;
    step what;
    memory::undo words;
    std::size_t state_at = 0;  ///< in `images`
    std::size_t image_at = 0;  ///< in `images`
    bool has_image = false;
  };
  /// As take(s), and records how to undo the step.
  void take(step s, undo& record, std::vector<std::byte>& images);
  void take_back(const undo& record, std::vector<std::byte>& images);

  /// True if stacks can be copied: not under a sanitizer. Otherwise a search re-executes.
  [[nodiscard]] static bool can_copy_stacks();

  /// Sets the limit of retries, for example to ask whether a fair schedule makes progress without
  /// it.
  void set_retry_limit(int most) { how_.retries = most; }
  [[nodiscard]] int retry_limit() const { return how_.retries; }
  /// How often a participant entered a critical section or finished.
  [[nodiscard]] std::uint64_t progress() const { return progress_; }

  // ---- for descriptions ----

  [[nodiscard]] std::string describe(step s) const;
  /// The cell that `s` would write; no_cell if none.
  [[nodiscard]] cell_id written_by(step s) const;
  [[nodiscard]] std::string cell_name(cell_id cell) const;
  [[nodiscard]] stage where(rank_t f) const {
    return world_.all.where[static_cast<std::size_t>(f)];
  }
  /// The newest value of a cell.
  [[nodiscard]] word value(cell_id cell) const { return memory_->newest(cell); }
  /// The value of a cell; 0 for a cell that was not touched.
  [[nodiscard]] word value(rma::plain_cell at) const {
    const cell_id known = number_of_[static_cast<std::size_t>(at.home) * most_words + at.index];
    return known == no_cell ? 0 : memory_->newest(known);
  }
  [[nodiscard]] std::string value_name(word value) const;
  /// Names a block of cells, for traces; `count` cells from `first`, on every rank.
  void name_cells(std::uint32_t first, std::uint32_t count, const std::string& name);
  /// Cells outside [first, last) of the named blocks may not be touched.
  void allow_cells(std::uint32_t first, std::uint32_t last);
  /// The queue nodes of each participant.
  void set_places(std::uint32_t first, std::uint32_t count) {
    places_first_ = first;
    places_count_ = count;
  }
  /// A cell that counts up and decides nothing: what is stored there is 0, so that the states of an
  /// endless schedule are finitely many.
  void set_counter(rma::plain_cell at) { counter_ = number(at.home, at.index); }

  // ---- for the port and the program, on a fiber ----

  [[nodiscard]] const rma::topology& machine() const { return what_.machine; }
  [[nodiscard]] bool orders_posts() const { return !how_.reordering; }
  word act(rank_t me, action what, cell_id cell = no_cell, word a = 0, word b = 0,
           predicate test = {}, rank_t target = -1, cell_id line = no_cell);
  void post(rank_t me, posted_kind kind, cell_id cell, rank_t target, word a, word b, word* result);
  void store(rank_t me, cell_id cell, word value);
  /// Orders a read through the fabric behind the participant's earlier stores (C12).
  void before_get(rank_t me);
  /// The fence that a port puts behind an operation, where the memory needs it.
  void fence_behind(rank_t me);
  /// The same behind a CPU's RMW (C14).
  void after_rmw(rank_t me) {
    if (how_.orders.fence_after_rmw) fence_behind(me);
  }
  void flush(rank_t me, rank_t target);
  void fence_node(rank_t me);
  void send(rank_t me, rank_t to, const std::array<word, 3>& body);
  /// From here on the participant's waits end also when a message is there.
  void serve(rank_t me, bool on) { state(me).serves = on; }
  /// In place of a target, for a wait with a lifeline that also ends at the deadline of a grant.
  static constexpr rank_t with_grant = 0;
  /// True if the last action returned because the deadline of a grant is over.
  [[nodiscard]] bool grant_was_over(rank_t me) const { return state(me).grant_was_over; }
  /// True if the last action returned because its deadline is over.
  [[nodiscard]] bool time_was_over(rank_t me) const { return state(me).time_was_over; }
  /// The message that the last action returned with; null if with none.
  [[nodiscard]] const rma::message* got(rank_t me) const;
  /// The number of a cell. Breaks the rules of the cell's class or bounds are violations.
  [[nodiscard]] cell_id number(rank_t home, std::uint32_t index);
  void note_rmw(cell_id cell, std::uint8_t rmw_class);

  /// `only_tries`: the acquire has to end also while a stopped participant holds.
  void begin_acquire(rank_t me, bool only_tries = false);
  /// From here on, participants that begin later overtake this one.
  void begin_waiting(rank_t me);
  /// The deadline of its acquire is over: it has no place any more that others could overtake.
  void begin_giving_up(rank_t me);
  void enter(rank_t me, bool exclusive);
  void leave(rank_t me, bool exclusive);
  void released(rank_t me);
  /// Its handle is gone, and its hold is about to be ended for it: the next holder is to be told.
  void abandon(rank_t me) {
    leave(me, true);
    world_.all.holder_died = true;
  }
  void give_up_acquire(rank_t me);
  /// Checks the values that a mortal lock returns to its holder (C45).
  void check_token(rank_t me, word token);
  void check_told(rank_t me, bool that_a_holder_died);
  void mark_consistent() { world_.all.holder_died = false; }
  void fail(std::string property, std::string detail);

 private:
  void check_loop(rank_t f, stage before);
  /// Ends the search with the exception. The lock under test could catch it, so on a fiber the
  /// participant stands still instead, and resume() throws.
  [[noreturn]] void exceed(const limit_exceeded& limit);
  /// The participant that runs stands still for good: it may be in a function that throws nothing.
  void violated(const char* what, const std::source_location& where) override;

  struct named_block {
    std::uint32_t first, count;
    std::string name;
  };
  struct address {
    rank_t home;
    std::uint32_t index;
  };
  static constexpr std::uint32_t most_words = 4096;
  static constexpr std::size_t stack_bytes = 32 * 1024;

  /// "" when no named block holds `a`.
  [[nodiscard]] std::string name_in_block(address a) const;
  [[nodiscard]] std::string text_of(word message) const;
  [[nodiscard]] word value_read(step s) const;
  [[nodiscard]] static std::string overwritten(step s);
  [[nodiscard]] fiber_state& state(rank_t f) { return world_.fiber[static_cast<std::size_t>(f)]; }
  [[nodiscard]] const fiber_state& state(rank_t f) const {
    return world_.fiber[static_cast<std::size_t>(f)];
  }
  static constexpr int line_choice = 16;  // the weight of the lifeline's choice
  /// Calls `each` with every choice that the participant's next action has.
  template <class Each>
  void each_choice(rank_t f, Each&& each) const {
    const fiber_state& s = state(f);
    const int of_cell = s.cell != no_cell ? memory_->choices(f, s.cell) : 1;
    const int of_line = s.line != no_cell ? memory_->choices(f, s.line) : 1;
    if (std::max(of_cell, of_line) > line_choice)
      throw limit_exceeded(std::to_string(line_choice) +
                           " messages of a cell that one read may see");
    for (int line = 0; line < of_line; ++line)
      for (int cell = 0; cell < of_cell; ++cell)
        each(static_cast<std::uint8_t>(cell + line_choice * line));
  }
  [[nodiscard]] bool is_choice(step s) const;
  [[nodiscard]] int choices(const posted& p) const {
    return p.kind == posted_kind::get ? memory_->choices(p) : 1;
  }
  [[nodiscard]] bool can_run(rank_t f, int choice = 0) const;
  [[nodiscard]] bool can_take_effect(const fiber_state& s, const posted& p) const;
  [[nodiscard]] bool in_two_steps(const posted& p) const;
  [[nodiscard]] bool nic_is_free(const posted& p) const;
  [[nodiscard]] bool has_what_it_waits_for(const fiber_state& s) const;
  [[nodiscard]] bool waits_for(const fiber_state& s, const posted& p) const;
  [[nodiscard]] bool can_change(rank_t f, int choice) const;
  [[nodiscard]] bool ends_wait(rank_t f, int choice) const;
  [[nodiscard]] order order_of(action a) const;
  [[nodiscard]] order order_of(posted_kind kind) const;
  void before_write(cell_id cell) {
    if (world_.all.dead != 0) check_place(cell);
  }
  void after_write(rank_t by, bool changes);
  void write(rank_t by, cell_id cell, word value, int choice);
  void modify(rank_t by, cell_id cell, word value, int choice);
  void follow(rank_t f, int later, int earlier);
  void access(rank_t f, posted& p, int choice, bool at_once);
  [[nodiscard]] std::uint8_t& duty_of_messages(rank_t from, rank_t to) {
    return message_duty_[static_cast<std::size_t>(from * most_fibers + to)];
  }
  [[nodiscard]] bool goes_on(rank_t f, int choice = 0) const;
  [[nodiscard]] bool is_idle(rank_t f) const;
  [[nodiscard]] bool is_next_to(const fiber_state& s, const posted& p) const;
  void post_to_memory(rank_t me, posted& p);
  void put_under_way(rank_t me, posted_kind kind, cell_id cell, rank_t target, word a, word b,
                     word* result);
  void arrive(rank_t f, int index);
  void take_message(rank_t f);
  [[nodiscard]] word number_of_message(const rma::message& m);
  [[nodiscard]] word number_of_queue(const std::vector<word>& queue);
  void begin(rank_t me);
  [[nodiscard]] bool can_expire(rank_t f, int choice) const;
  [[nodiscard]] bool can_die(rank_t f) const;
  [[nodiscard]] bool can_stop(rank_t f) const;
  [[nodiscard]] bool can_lapse(rank_t f) const;
  [[nodiscard]] bool can_lapse(rank_t f, int choice) const;
  [[nodiscard]] bool nothing_else_happens() const;
  void enabled_but_lapses(std::vector<step>& steps) const;
  [[nodiscard]] bool is_stopped(rank_t f) const { return (world_.all.stopped & 1u << f) != 0; }
  /// True if a stopped participant holds, or is in the middle of a repair.
  [[nodiscard]] bool waits_for_a_stopped_holder() const;
  /// True if a participant that is in a round need not get on.
  [[nodiscard]] bool is_excused(rank_t f) const;
  void stop(rank_t f);
  void leave_what_was_posted(rank_t f, action as);
  [[nodiscard]] bool is_dead(rank_t f) const { return (world_.all.dead & 1u << f) != 0; }
  [[nodiscard]] word deaths() const { return static_cast<word>(std::popcount(world_.all.known)); }
  [[nodiscard]] bool has_come_to_nothing(rank_t f) const;
  void die(rank_t f);
  void check_place(cell_id written);
  void carry_out(step s);
  void run(step s);
  void resume(rank_t f);
  void take_effect(rank_t f, int index, int choice, bool at_once = false);
  void drain(rank_t f);
  /// Of the participant `me`, whose live frames lie above `lowest`.
  void deliver(rank_t me, const void* lowest);
  [[nodiscard]] std::uint64_t fiber_key(rank_t f) const;
  [[nodiscard]] std::uint64_t held_key(rank_t f) const;
  [[nodiscard]] std::uint64_t shared_key(rank_t f) const;
  [[nodiscard]] bool resumes(step s) const;

  program what_;
  model how_;
  int fibers_;
  world world_;
  std::optional<violation> broken_;
  std::optional<limit_exceeded> exceeded_;  // by the participant that runs
  unsigned retrying_ = 0;
  std::uint64_t progress_ = 0;
  int fences_at_once_ = 0;
  rank_t running_ = -1;
  rank_t resumed_ = -1;  // in the step under way
  std::unique_ptr<memory> memory_;

  std::unique_ptr<fiber::stack_pool> stacks_;
  std::vector<fiber::fiber> fiber_;

  std::vector<cell_id> number_of_;  // [home × most_words + index]
  std::vector<address> cells_;
  std::vector<named_block> names_;
  // Messages, and the queues of messages in inboxes, are words: they are numbered as they are first
  // seen. 0 is no message, and an empty inbox. A suspended participant may have a pointer to a
  // message on its stack, which must be the same whenever the participant is there again.
  std::deque<rma::message> messages_{1};
  std::vector<std::vector<word>> queues_{1};
  // The bit of the messages from each rank to each, numbered as they are first seen; 0 is none.
  std::array<std::uint8_t, most_fibers * most_fibers> message_duty_{};
  std::uint8_t message_duties_ = 0;
  std::uint32_t places_first_ = 0;
  std::uint32_t places_count_ = 0;
  cell_id counter_ = no_cell;
  std::uint32_t allowed_first_ = 0;
  std::uint32_t allowed_last_ = most_words;
};

}  // namespace lockflight::check
