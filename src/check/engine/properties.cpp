// The properties: which participants may be inside together, and how often a waiter may be
// overtaken.
#include "check/engine/engine.hpp"

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

void engine::begin_acquire(rank_t me) {
  const auto i = static_cast<std::size_t>(me);
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

void engine::enter(rank_t me, bool exclusive) {
  shared_state& all = world_.all;
  if (all.writers > 0 || (exclusive && all.readers > 0))
    fail("mutual exclusion",
         "rank " + std::to_string(me) + " enters " + (exclusive ? "exclusively" : "shared") +
             " while " +
             (all.writers > 0 ? "a writer is in"
                              : std::to_string(all.readers) + " reader(s) are in"));
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
  world_.all.where[static_cast<std::size_t>(me)] = stage::releasing;
}

void engine::released(rank_t me) {
  const auto i = static_cast<std::size_t>(me);
  world_.all.where[i] = stage::outside;
  world_.all.retries[i] = 0;
  world_.all.quiet[i] = 0;
}

void engine::give_up_acquire(rank_t me) { released(me); }

}  // namespace lockflight::check
