#include "lab/fiber/fiber.hpp"

#include <cxxabi.h>

#include <cstdint>
#include <cstring>
#include <exception>

#include "lab/fiber/context.hpp"
#include "lab/fiber/fail.hpp"
#include "lab/fiber/sanitizer.hpp"

namespace lockflight::fiber {
namespace {

// The C++ runtime's record of the exceptions in flight, one per thread: the layout is fixed by the
// Itanium C++ ABI, section 2.2.2. A fiber needs its own, or a throw in one fiber would corrupt the
// chain of another that is suspended inside a catch block.
struct [[gnu::may_alias]] exception_state {
  void* caught = nullptr;
  unsigned uncaught = 0;
};

enum class status : std::uint8_t { done, ready, running, suspended };

// Destructors may suspend this often while they are unwound; more is taken for a hang.
constexpr std::uint32_t most_refusals = 1'000'000;

}  // namespace

struct fiber::control {
  explicit control(stack on) : memory(std::move(on)) {}

  detail::context inside = nullptr;  // where the fiber continues
  detail::context owner = nullptr;   // where resume continues, while the fiber runs
  void (*run)(void*) = nullptr;
  void* body = nullptr;
  exception_state exceptions;
  status now = status::done;
  bool unwinding = false;
  std::uint32_t refusals = 0;
  void (*destroy)(void*) noexcept = nullptr;
  std::exception_ptr error;
  stack memory;
  [[no_unique_address]] detail::switch_notes notes;

  // First and last function on the stack. The body's exceptions end here.
  static void enter(detail::arrival from) noexcept {
    auto* const self = static_cast<control*>(from.data);
    self->owner = from.fctx;
    self->notes.on_arrival();
    try {
      self->run(self->body);
    } catch (const forced_unwind&) {
      // The fiber was asked to end and did.
    } catch (...) {
      self->error = std::current_exception();
    }
    self->leave(status::done);
    detail::fail("a fiber went on after its end");
  }

  // To the owner, and back when it resumes.
  [[gnu::always_inline]] void leave(status next) {
    now = next;
    notes.before_leaving(next == status::done);
    const detail::arrival from = detail::jump(owner, nullptr);
    owner = from.fctx;
    notes.on_arrival();
  }

  // Suspending is not possible any more. A destructor that runs because of the unwinding must be
  // let through, as throwing out of it would end the process.
  void refuse() {
    if (std::uncaught_exceptions() == 0) {
      throw forced_unwind{};
    }
    if (++refusals == most_refusals) {
      detail::fail("a destructor waits for ever in a fiber that is being unwound");
    }
  }
};

namespace {

struct thread_state {
  void* current = nullptr;                // the control block of the fiber that runs
  exception_state* exceptions = nullptr;  // the thread's, found once
};

// Read only before a jump: afterwards this may be another thread, and the compiler, which does not
// know that, may have kept the old one's address. For the same reason the functions that read it
// are never inlined into the code of a fiber. `resume` may go on using it, because it always
// returns on the thread it was called on.
constinit thread_local thread_state here;

}  // namespace

fiber::fiber(stack memory) {
  if (!memory) {
    detail::fail("a fiber needs a stack");
  }
  // Two cache lines, aligned, so that a switch touches no third. Were the tops of all stacks a
  // power of two apart they would share few sets of the cache: staggering them by two cache lines
  // halves what a switch among a thousand fibers costs, and is worth the up to 896 bytes.
  constexpr std::size_t line = 64;
  constexpr std::size_t steps = 8;
  const auto top = reinterpret_cast<std::uintptr_t>(memory.base()) + memory.bytes();
  const std::size_t stagger = top / memory.bytes() % steps * 2 * line;
  const std::uintptr_t place = (top - stagger - sizeof(control)) & ~(line - 1);
  control_ = ::new (reinterpret_cast<void*>(place)) control(std::move(memory));
}

fiber::~fiber() {
  if (control_ == nullptr) {
    return;
  }
  try {
    unwind();
  } catch (...) {
    // Documented: a caller that wants the exception calls unwind().
  }
  detail::switch_notes::unpoison(control_->memory.base(), control_);
  const stack memory = std::move(control_->memory);
  std::destroy_at(control_);
}

void* fiber::make_room(std::size_t bytes, std::size_t alignment) {
  if (control_ == nullptr) {
    detail::fail("reset() of a fiber without a stack");
  }
  unwind();
  if (control_->inside != nullptr) {
    detail::switch_notes::unpoison(control_->inside, control_);
  }
  constexpr std::size_t least_alignment = 16;
  const std::size_t unit = alignment < least_alignment ? least_alignment : alignment;
  return reinterpret_cast<void*>((reinterpret_cast<std::uintptr_t>(control_) - bytes) &
                                 ~(unit - 1));
}

void fiber::arm(void* body, void (*run)(void*), void (*destroy)(void*) noexcept) noexcept {
  control* const self = control_;
  self->run = run;
  self->destroy = destroy;
  self->body = body;
  self->exceptions = {};
  self->unwinding = false;
  self->notes.restart();
  std::byte* const base = self->memory.base();
  const auto bytes = static_cast<std::size_t>(static_cast<std::byte*>(body) - base);
  self->inside = detail::make_context(body, bytes, &control::enter);
  self->now = status::ready;
}

[[gnu::noinline]] bool fiber::resume() {
  control* const self = control_;
  if (self == nullptr || (self->now != status::suspended && self->now != status::ready)) {
    detail::fail(done() ? "resume() of a fiber that is done" : "resume() of a fiber that runs");
  }
  if (here.exceptions == nullptr) {
    here.exceptions = reinterpret_cast<exception_state*>(abi::__cxa_get_globals());
  }
  exception_state* const exceptions = here.exceptions;
  const exception_state own_exceptions = *exceptions;
  void* const outer = here.current;
  *exceptions = self->exceptions;
  here.current = self;
  self->now = status::running;
  self->notes.before_entering(self->memory.base(), self->memory.bytes());
  const detail::arrival from = detail::jump(self->inside, self);
  self->notes.after_leaving(self->now == status::done);
  here.current = outer;
  self->inside = from.fctx;
  self->exceptions = *exceptions;
  *exceptions = own_exceptions;
  if (from.fctx < static_cast<void*>(self->memory.base())) [[unlikely]] {
    detail::fail("a fiber overflowed its stack: give it a larger one");
  }
  if (self->now == status::suspended) {
    return true;
  }
  if (self->error != nullptr) [[unlikely]] {
    std::rethrow_exception(std::exchange(self->error, nullptr));
  }
  return false;
}

[[gnu::noinline]] void fiber::suspend() {
  auto* const self = static_cast<control*>(here.current);
  if (self == nullptr) {
    detail::fail("suspend() outside a fiber");
  }
  if (!self->unwinding) [[likely]] {
    self->leave(status::suspended);
  }
  if (self->unwinding) [[unlikely]] {
    self->refuse();
  }
}

void fiber::unwind() {
  if (control_ == nullptr || control_->now != status::suspended) {
    abandon();
    return;
  }
  control_->unwinding = true;
  control_->refusals = 0;
  resume();
}

void fiber::abandon() noexcept {
  control* const self = control_;
  if (self == nullptr || self->now == status::done) {
    return;
  }
  if (self->now == status::running) {
    detail::fail("a fiber that runs cannot be unwound, abandoned, reset or destroyed");
  }
  if (self->now == status::suspended) {
    self->notes.forget(self->memory.base(), self->memory.bytes());
  }
  self->now = status::done;
  if (self->destroy != nullptr) {
    self->destroy(self->body);
  }
}

std::span<const std::byte> fiber::image() const noexcept {
  const control* const self = control_;
  if (self == nullptr || self->now == status::running) {
    detail::fail("image() of a fiber that runs or has no stack");
  }
  const auto* const end = reinterpret_cast<const std::byte*>(self + 1);
  const auto* const from = self->now == status::done ? reinterpret_cast<const std::byte*>(self)
                                                     : static_cast<const std::byte*>(self->inside);
  return {from, end};
}

std::span<const std::byte> fiber::live_stack() const noexcept {
  const std::span<const std::byte> all = image();
  return all.first(all.size() - sizeof(control));
}

void fiber::wipe_free() noexcept {
  const std::span<const std::byte> live = image();
  std::byte* const base = control_->memory.base();
  std::memset(base, 0, static_cast<std::size_t>(live.data() - base));
}

void fiber::restore(std::span<const std::byte> image) noexcept {
  if (control_ == nullptr || control_->now == status::running) {
    detail::fail("restore() of a fiber that runs or has no stack");
  }
  // The control block is the end of every image, so all of them end at the same place.
  auto* const end = reinterpret_cast<std::byte*>(control_ + 1);
  std::memcpy(end - image.size(), image.data(), image.size());
}

bool fiber::done() const noexcept { return control_ == nullptr || control_->now == status::done; }

[[gnu::noinline]] bool fiber::inside() noexcept { return here.current != nullptr; }

[[gnu::noinline]] bool fiber::unwinding() noexcept {
  const auto* const self = static_cast<const control*>(here.current);
  return self != nullptr && self->unwinding;
}

}  // namespace lockflight::fiber
