#ifndef LOCKFLIGHT_FIBER_FIBER_HPP
#define LOCKFLIGHT_FIBER_FIBER_HPP

#include <concepts>
#include <cstddef>
#include <memory>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

#include "lab/fiber/stack_pool.hpp"

namespace lockflight::fiber {

/// Thrown by `fiber::suspend` in a fiber that is being unwound. Code in a fiber may catch it to
/// clean up, and then rethrows it; it is no std::exception, so that only `catch (...)` meets it.
struct forced_unwind final {};

/// A function that runs on its own stack and can stop in the middle.
///
/// The *owner* calls `resume`, which runs the fiber's body until it calls `suspend` or ends. The
/// body is kept in place at the top of the stack, as is all else about the fiber: the object here
/// is one pointer, and a fiber that stays shallow touches one page. Nothing here uses the heap, and
/// a round trip of resume and suspend is two jumps without a system call. The jumps themselves take
/// 8 ns; the returns after them, which the processor cannot predict, 10 ns each.
///
/// Threads: a fiber is resumed by one thread at a time, and it may be another one each time if the
/// threads synchronise; thread_local variables then change under it. A fiber may resume others. It
/// may suspend inside a catch block or a destructor that runs because of an exception: each fiber
/// has its own exception state. It has no floating-point environment of its own: a switch clears
/// the exception flags, and rounding modes should not be changed.
///
/// A suspended fiber that is destroyed, assigned to or reset is unwound first, unless `abandon` was
/// called. Breaking a rule below (resuming a fiber that is done or running, dropping one that runs,
/// suspending outside) ends the process with a message, in release builds too.
class fiber {
 public:
  /// The largest body that is kept in place. Capture a reference to what is larger.
  static constexpr std::size_t max_body_bytes = 256;

  /// No stack, nothing to run: `done`.
  fiber() noexcept = default;

  /// A fiber with a stack and nothing to run: `done` until `reset`. Takes 128 to 1,024 bytes of
  /// it: tops of stacks are staggered so that they do not compete for the same cache lines.
  explicit fiber(stack memory);

  /// A fiber that runs `body()` when it is resumed first.
  template <class F>
    requires std::invocable<std::decay_t<F>&>
  fiber(stack memory, F&& body) : fiber(std::move(memory)) {
    reset(std::forward<F>(body));
  }

  /// Handles move at any time, while the fiber runs too.
  fiber(fiber&& other) noexcept : control_(std::exchange(other.control_, nullptr)) {}
  fiber& operator=(fiber&& other) noexcept {
    fiber taken(std::move(other));
    std::swap(control_, taken.control_);
    return *this;
  }
  fiber(const fiber&) = delete;
  fiber& operator=(const fiber&) = delete;

  /// Unwinds the fiber if it is suspended and gives the stack back. An exception that comes out of
  /// the unwinding is lost; call `unwind` first to see it. The fiber must not be running.
  ~fiber();

  /// Starts over: the next `resume` runs `body()` on the same stack. A fiber that is suspended is
  /// unwound first, as by `unwind`; after `abandon` this costs about as much as one switch. Only
  /// for a fiber that has a stack and does not run.
  template <class F>
    requires std::invocable<std::decay_t<F>&>
  void reset(F&& body) {
    using body_type = std::decay_t<F>;
    static_assert(sizeof(body_type) <= max_body_bytes, "capture a reference to what is this large");
    static_assert(std::is_nothrow_destructible_v<body_type>);
    void* const place = make_room(sizeof(body_type), alignof(body_type));
    ::new (place) body_type(std::forward<F>(body));
    if constexpr (std::is_trivially_destructible_v<body_type>) {
      arm(place, &run_body<body_type>, nullptr);
    } else {
      arm(place, &run_body<body_type>, &destroy_body<body_type>);
    }
  }

  /// Runs the fiber until it suspends, which returns true, or ends, which returns false. The body
  /// is destroyed when it ends. An exception of the body leaves this call, and the fiber is done.
  /// Only for a fiber that is neither done nor running.
  bool resume();

  /// Ends a suspended fiber so that everything on its stack is destroyed: `suspend` throws
  /// `forced_unwind` in it. Costs a throw, about a microsecond. A fiber that did not begin only
  /// loses its body. If another exception comes out of it, this rethrows it.
  ///
  /// While it is unwound the fiber does not stop: a `suspend` in a destructor returns at once, and
  /// one after a `catch (...)` that swallowed the exception throws anew. A destructor that waits in
  /// a loop of suspends must therefore ask `unwinding`; the process ends after a million of them.
  /// As with any exception, no noexcept function may lie in its way.
  void unwind();

  /// Drops the fiber's work. Nothing on its stack is destroyed, so this is only for bodies whose
  /// frames own nothing; the body object itself is destroyed. Then the fiber is done. A few
  /// nanoseconds. The fiber must not be running.
  void abandon() noexcept;

  /// Asks for the top of the stack, so that it is in the cache when the fiber is resumed soon.
  void prefetch() const noexcept { __builtin_prefetch(control_); }

  /// True if there is nothing to resume: the body ended, was dropped, or there never was one.
  bool done() const noexcept;

  /// All bytes that make up a fiber that does not run: its live stack and where it continues. Copy
  /// them away, and `restore` returns the fiber to that moment, any number of times. Valid until
  /// the fiber is resumed, reset, unwound or destroyed. Only for a fiber that has a stack, whose
  /// body and frames own nothing elsewhere and that no exception is passing through, and not under
  /// the address or thread sanitizer, which keep their own books of a stack.
  std::span<const std::byte> image() const noexcept;

  /// Returns to the moment at which `image` was copied from this fiber, which must not be running.
  /// The effects of the fiber since then are not undone. A memcpy.
  void restore(std::span<const std::byte> image) noexcept;

  /// The live stack alone: `image` without the fiber's own records, which say where its owner
  /// continues. The same rules.
  std::span<const std::byte> live_stack() const noexcept;

  /// Zeroes what is free of the stack of a fiber that does not run, so that frames to come hold
  /// nothing of those that were there before. Then what a fiber does next, and what its live stack
  /// holds afterwards, depends on nothing but the live stack and its input.
  void wipe_free() noexcept;

  /// Returns to the caller of `resume`, until the fiber is resumed again. Throws
  /// `forced_unwind` if the fiber is being unwound. Only inside a fiber.
  static void suspend();

  /// True if the caller runs in a fiber.
  static bool inside() noexcept;

  /// True if the caller runs in a fiber that is being unwound.
  static bool unwinding() noexcept;

 private:
  struct control;

  template <class B>
  static void destroy_body(void* body) noexcept {
    std::destroy_at(static_cast<B*>(body));
  }

  // Destroys the body on the fiber's own stack, whichever way it ends.
  template <class B>
  static void run_body(void* body) {
    struct at_end {
      B& body;
      ~at_end() { std::destroy_at(&body); }
    };
    const at_end running{*static_cast<B*>(body)};
    static_cast<void>(running.body());
  }

  void* make_room(std::size_t bytes, std::size_t alignment);
  void arm(void* body, void (*run)(void*), void (*destroy)(void*) noexcept) noexcept;

  control* control_ = nullptr;  // at the top of the fiber's stack
};

}  // namespace lockflight::fiber

#endif  // LOCKFLIGHT_FIBER_FIBER_HPP
