#ifndef LOCKFLIGHT_FIBER_SANITIZER_HPP
#define LOCKFLIGHT_FIBER_SANITIZER_HPP

// Tells the address and the thread sanitizer about stacks that are switched by hand. Without a
// sanitizer everything here is empty. Internal to this folder.

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#define LOCKFLIGHT_FIBER_ASAN 1
#elif defined(__SANITIZE_THREAD__)
#define LOCKFLIGHT_FIBER_TSAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define LOCKFLIGHT_FIBER_ASAN 1
#elif __has_feature(thread_sanitizer)
#define LOCKFLIGHT_FIBER_TSAN 1
#endif
#endif

#if defined(LOCKFLIGHT_FIBER_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#elif defined(LOCKFLIGHT_FIBER_TSAN)
#include <sanitizer/tsan_interface.h>
#endif

namespace lockflight::fiber::detail {

#if defined(LOCKFLIGHT_FIBER_ASAN) || defined(LOCKFLIGHT_FIBER_TSAN)
/// Instrumented frames are several times larger, and a report is printed on the stack it is about.
inline constexpr std::size_t sanitizer_stack_bytes = 256 * 1024;
#else
inline constexpr std::size_t sanitizer_stack_bytes = 0;
#endif

#if defined(LOCKFLIGHT_FIBER_ASAN)

/// A fiber as the address sanitizer sees it: the bounds of the two stacks, and the "fake stack" of
/// each side (frames that the sanitizer moved to the heap to notice their use after return).
class switch_notes {
 public:
  [[gnu::always_inline]] void before_entering(const void* base, std::size_t bytes) noexcept {
    __sanitizer_start_switch_fiber(&owner_fake_stack_, base, bytes);
  }
  [[gnu::always_inline]] void after_leaving(bool /*for_good*/) noexcept {
    __sanitizer_finish_switch_fiber(owner_fake_stack_, nullptr, nullptr);
  }
  [[gnu::always_inline]] void on_arrival() noexcept {
    __sanitizer_finish_switch_fiber(fiber_fake_stack_, &owner_base_, &owner_bytes_);
  }
  [[gnu::always_inline]] void before_leaving(bool for_good) noexcept {
    // A null place to save it to tells the sanitizer to free the fiber's fake stack.
    __sanitizer_start_switch_fiber(for_good ? nullptr : &fiber_fake_stack_, owner_base_,
                                   owner_bytes_);
  }

  /// The fiber is suspended and will not be resumed. Its fake stack can only be freed by leaving
  /// the fiber for good, so the sanitizer is told of a visit that does not take place. No
  /// instrumented code may run meanwhile, hence the attributes.
  [[gnu::noinline]] __attribute__((no_sanitize("address", "undefined"))) void forget(
      const void* base, std::size_t bytes) noexcept {
    void* own_fake_stack = nullptr;
    const void* own_base = nullptr;
    std::size_t own_bytes = 0;
    __sanitizer_start_switch_fiber(&own_fake_stack, base, bytes);
    __sanitizer_finish_switch_fiber(fiber_fake_stack_, &own_base, &own_bytes);
    __sanitizer_start_switch_fiber(nullptr, own_base, own_bytes);
    __sanitizer_finish_switch_fiber(own_fake_stack, nullptr, nullptr);
    fiber_fake_stack_ = nullptr;
  }

  /// Frames that were left without returning keep their poison; the next ones must not meet it.
  static void unpoison(const void* from, const void* to) noexcept {
    __asan_unpoison_memory_region(from, static_cast<std::size_t>(static_cast<const char*>(to) -
                                                                 static_cast<const char*>(from)));
  }

  /// A new run begins, on no fake stack.
  void restart() noexcept { fiber_fake_stack_ = nullptr; }

 private:
  void* owner_fake_stack_ = nullptr;
  void* fiber_fake_stack_ = nullptr;
  const void* owner_base_ = nullptr;
  std::size_t owner_bytes_ = 0;
};

#elif defined(LOCKFLIGHT_FIBER_TSAN)

/// A fiber as the thread sanitizer sees it. A record costs megabytes of address space and there
/// can be some 8,000 of them, so it exists only from a run's first resume to its end. The calls
/// are inlined by force: they must be made in the very function that switches, or its exit is
/// booked on the wrong side.
class switch_notes {
 public:
  [[gnu::always_inline]] void before_entering(const void* /*base*/,
                                              std::size_t /*bytes*/) noexcept {
    if (fiber_ == nullptr) {
      fiber_ = __tsan_create_fiber(0);
    }
    owner_ = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(fiber_, 0);
  }
  [[gnu::always_inline]] void after_leaving(bool for_good) noexcept {
    if (for_good) {
      forget(nullptr, 0);
    }
  }
  [[gnu::always_inline]] void on_arrival() noexcept {}
  [[gnu::always_inline]] void before_leaving(bool /*for_good*/) noexcept {
    __tsan_switch_to_fiber(owner_, 0);
  }
  void forget(const void* /*base*/, std::size_t /*bytes*/) noexcept {
    __tsan_destroy_fiber(fiber_);
    fiber_ = nullptr;
  }
  static void unpoison(const void* /*from*/, const void* /*to*/) noexcept {}
  void restart() noexcept {}

 private:
  void* owner_ = nullptr;
  void* fiber_ = nullptr;
};

#else

/// No sanitizer: nothing to note.
class switch_notes {
 public:
  void before_entering(const void* /*base*/, std::size_t /*bytes*/) noexcept {}
  void after_leaving(bool /*for_good*/) noexcept {}
  void on_arrival() noexcept {}
  void before_leaving(bool /*for_good*/) noexcept {}
  void forget(const void* /*base*/, std::size_t /*bytes*/) noexcept {}
  static void unpoison(const void* /*from*/, const void* /*to*/) noexcept {}
  void restart() noexcept {}
};

#endif

}  // namespace lockflight::fiber::detail

#endif  // LOCKFLIGHT_FIBER_SANITIZER_HPP
