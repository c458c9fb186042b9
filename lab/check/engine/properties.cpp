// The properties: which participants may be inside together, and how often a waiter may be
// overtaken.
#include "lab/check/engine/engine.hpp"

#include <algorithm>
#include <string>

namespace lockflight::check {

void engine::fail(std::string property, std::string detail) {
  if (!broken_) broken_ = violation{std::move(property), std::move(detail)};
}

void engine::violated(const char* what, const std::source_location& where) {
  fail("assertion", "rank " + std::to_string(running_) + ": " +
                        std::string(rma::file_name_of(where)) + ":" + std::to_string(where.line()) +
                        ": " + what);
  ++progress_;
  while (true) act(running_, action::finished);
}

void engine::begin_acquire(rank_t me, bool only_tries) {
  const auto i = static_cast<std::size_t>(me);
  const auto bit = static_cast<std::uint8_t>(1u << me);
  world_.all.tries &= static_cast<std::uint8_t>(~bit);
  if (only_tries) world_.all.tries |= bit;
  world_.all.where[i] = stage::acquiring;
  world_.all.retries[i] = 0;
  world_.all.quiet[i] = 0;
  world_.all.changed[i] = false;
  world_.all.about_to_begin[i] = true;
}

// An acquire begins with its first step: until then no other participant can see it, and those that
// start to wait in the meantime came first.
void engine::begin(rank_t me) {
  world_.all.about_to_begin[static_cast<std::size_t>(me)] = false;
  for (int g = 0; g < fibers_; ++g)
    if (world_.all.where[static_cast<std::size_t>(g)] == stage::waiting)
      world_.all.came_after[static_cast<std::size_t>(g)] |= static_cast<std::uint8_t>(1u << me);
}

void engine::begin_waiting(rank_t me) {
  const auto i = static_cast<std::size_t>(me);
  world_.all.where[i] = stage::waiting;
  world_.all.overtaken[i] = 0;
  world_.all.came_after[i] = 0;
}

void engine::begin_giving_up(rank_t me) {
  world_.all.where[static_cast<std::size_t>(me)] = stage::giving_up;
}

void engine::enter(rank_t me, bool exclusive) {
  shared_state& all = world_.all;
  if (all.writers > 0 || (exclusive && all.readers > 0))
    fail("mutual exclusion",
         "rank " + std::to_string(me) + " enters " + (exclusive ? "exclusively" : "shared") +
             " while " +
             (all.writers > 0 ? "a writer is in"
                              : std::to_string(all.readers) + " reader(s) are in"));
  if (!memory_->has_seen(me, exclusive))
    fail("data race", "rank " + std::to_string(me) + " enters " +
                          (exclusive ? "exclusively" : "shared") +
                          " and need not see what a participant did that was in before");
  ++(exclusive ? all.writers : all.readers);
  const auto i = static_cast<std::size_t>(me);
  all.where[i] = exclusive ? stage::inside : stage::inside_shared;
  all.overtaken[i] = 0;
  all.came_after[i] = 0;
  ++progress_;
  if (!how_.most_overtaken) return;
  for (int g = 0; g < fibers_; ++g) {
    const auto other = static_cast<std::size_t>(g);
    if (all.where[other] != stage::waiting || (all.came_after[other] & 1u << me) == 0) continue;
    all.came_after[other] &= static_cast<std::uint8_t>(~(1u << me));
    if (++all.overtaken[other] > *how_.most_overtaken)
      fail("bounded bypass", "rank " + std::to_string(g) + " waits and was overtaken " +
                                 std::to_string(all.overtaken[other]) +
                                 " times by later comers; the lock allows " +
                                 std::to_string(*how_.most_overtaken));
  }
}

void engine::leave(rank_t me, bool exclusive) {
  std::uint8_t& inside = exclusive ? world_.all.writers : world_.all.readers;
  rma::ensure(inside > 0, "who leaves has entered");
  --inside;
  memory_->mark(me, exclusive);
  world_.all.where[static_cast<std::size_t>(me)] = stage::releasing;
}

void engine::released(rank_t me) {
  const auto i = static_cast<std::size_t>(me);
  world_.all.where[i] = stage::outside;
  world_.all.retries[i] = 0;
  world_.all.quiet[i] = 0;
}

void engine::give_up_acquire(rank_t me) { released(me); }

// Every loop that retries contains a pause (C19). A participant in a loop without one would have
// more and more states, as its history grows.
void engine::check_loop(rank_t f, stage before) {
  constexpr std::uint16_t most_in_a_row = 1'000;  // longer than any acquire, release or repair
  shared_state& all = world_.all;
  const bool goes_on = all.last == f && all.where[static_cast<std::size_t>(f)] == before &&
                       state(f).next != action::pause;
  all.last = static_cast<std::uint8_t>(f);
  all.in_a_row = goes_on ? static_cast<std::uint16_t>(all.in_a_row + 1) : std::uint16_t{0};
  if (all.in_a_row == most_in_a_row)
    fail("livelock", "rank " + std::to_string(f) + " takes " + std::to_string(most_in_a_row) +
                         " steps in a row without a pause");
}

// A death has two steps: the participant dies, and then its death becomes known. deaths() may count
// the death a little later than is_dead reports it (C45).
void engine::die(rank_t f) {
  shared_state& all = world_.all;
  const auto i = static_cast<std::size_t>(f);
  const auto bit = static_cast<std::uint8_t>(1u << f);
  for (int g = 0; g < fibers_; ++g) all.changed[static_cast<std::size_t>(g)] = true;
  if (is_dead(f)) {
    all.known |= bit;
    return;
  }
  all.dead |= bit;
  fiber_state& s = state(f);
  if (s.next == action::rendezvous) --all.arrived;
  if (all.where[i] == stage::inside || all.where[i] == stage::inside_shared)
    memory_->mark(f, all.where[i] == stage::inside);
  if (all.where[i] == stage::inside) --all.writers;
  if (all.where[i] == stage::inside_shared) --all.readers;
  // A participant that is inside holds, whatever its lock has written.
  if (all.where[i] == stage::inside ||
      (what_.says_that_it_holds && what_.says_that_it_holds(*this, f)))
    all.holder_died = true;
  all.where[i] = stage::outside;
  all.about_to_begin[i] = false;
  all.stopped &= static_cast<std::uint8_t>(~bit);
  leave_what_was_posted(f, action::dead);
}

// The participant does nothing more, and stays where it is: inside if it was inside.
void engine::stop(rank_t f) {
  world_.all.stopped |= static_cast<std::uint8_t>(1u << f);
  ++world_.all.stops;
  leave_what_was_posted(f, action::stopped);
}

// The writes that a participant had posted before it stopped or died may still take effect. Its
// other posted operations are dropped, since no participant needs their results.
void engine::leave_what_was_posted(rank_t f, action as) {
  fiber_state& s = state(f);
  const auto writes = [](const posted& p) {
    return !p.took_effect && p.kind != posted_kind::get && p.kind != posted_kind::fence;
  };
  const auto end = std::stable_partition(s.post.begin(), s.post.begin() + s.posts, writes);
  std::fill(end, s.post.end(), posted{});
  std::for_each(s.post.begin(), end, [](posted& p) { p.result = nullptr; });
  s.posts = static_cast<std::uint8_t>(end - s.post.begin());
  s.next = as;
  s.cell = no_cell;
  s.line = no_cell;
  s.a = s.b = 0;
  s.target = -1;
  s.history = 0;  // how it came to this makes no difference
}

// No participant may know a dead one's queue nodes any more when its place is free (C46).
void engine::check_place(cell_id written) {
  const address at = cells_[written];
  if (!is_dead(at.home) || at.index - places_first_ >= places_count_) return;
  if (what_.is_free_to_take(*this, at.home))
    fail("taken place", cell_name(written) + " is written, and another participant may have rank " +
                            std::to_string(at.home) + "'s place");
}

void engine::check_token(rank_t me, word token) {
  if (how_.endless) return;  // set_counter
  if (token <= world_.all.token)
    fail("fencing token", "rank " + std::to_string(me) + " gets " + std::to_string(token) +
                              ", after " + std::to_string(world_.all.token));
  world_.all.token = token;
}

void engine::check_told(rank_t me, bool that_a_holder_died) {
  if (that_a_holder_died == world_.all.holder_died) return;
  fail("owner died", "rank " + std::to_string(me) +
                         (that_a_holder_died ? " is told that a holder died, and none did"
                                             : " is not told that a holder died"));
}

}  // namespace lockflight::check
