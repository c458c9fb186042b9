// Starts the engine's participants, and starts them again. The enabled steps are in enabled.cpp,
// their effects in effects.cpp, going back in rewind.cpp, the participants' calls in calls.cpp, the
// properties in properties.cpp, texts in describe.cpp.
#include "lab/check/engine/engine.hpp"

#include <algorithm>
#include <stdexcept>

#if defined(__has_feature)
#define LOCKFLIGHT_HAS_FEATURE(x) __has_feature(x)
#else
#define LOCKFLIGHT_HAS_FEATURE(x) 0
#endif

namespace lockflight::check {

engine::engine(program what, const model& how)
    : what_(std::move(what)),
      how_(how),
      fibers_(what_.machine.ranks()),
      memory_(make_memory(
          how.memory, world_,
          {.buffers_stores = how.store_buffering, .tracks_relaxed = how.orders.are_weak()})),
      stacks_(std::make_unique<fiber::stack_pool>(stack_bytes)),
      number_of_(static_cast<std::size_t>(what_.machine.ranks()) * most_words, no_cell) {
  if (fibers_ > most_fibers)
    throw std::invalid_argument(std::to_string(fibers_) + " participants (accepted: 1 to " +
                                std::to_string(most_fibers) + ")");
  for (int f = 0; f < fibers_; ++f) fiber_.emplace_back(stacks_->take());
}

engine::~engine() {
  for (fiber::fiber& f : fiber_) f.abandon();
}

bool engine::can_copy_stacks() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || \
    LOCKFLIGHT_HAS_FEATURE(address_sanitizer) || LOCKFLIGHT_HAS_FEATURE(thread_sanitizer)
  return false;
#else
  return true;
#endif
}

void engine::start() {
  world_.all = {};
  std::fill_n(world_.fiber.begin(), fibers_, fiber_state{});
  memory_->start(fibers_);
  broken_.reset();
  progress_ = 0;
  for (int f = 0; f < fibers_; ++f) {
    fiber::fiber& one = fiber_[static_cast<std::size_t>(f)];
    one.abandon();
    if (how_.endless) one.wipe_free();
    one.reset([this, f] {
      try {
        what_.body(*this, f);
      } catch (const std::exception& e) {
        fail("assertion", "rank " + std::to_string(f) + ": " + e.what());
      }
      state(f).next = action::finished;
      ++progress_;
    });
  }
  // Up to its first operation a participant does nothing that is visible to others.
  for (int f = 0; f < fibers_; ++f) resume(f);
  memory_->settle();
}

}  // namespace lockflight::check
