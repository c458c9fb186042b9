// State that each process has once; a child begins with new state.
//
// Invariants:
// - `image_page` is wiped by the kernel in each child that gets a copy of this process's memory,
//   whichever function has made it: fork(), _Fork(), clone() or clone3(). So a child never takes
//   its parent's state for its own, also if none of its fork handlers were called. If the kernel
//   cannot wipe pages (before Linux 4.14), the handlers do it.
// - A child that shares the memory, as that of vfork() does, is its parent here.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

namespace lockflight::detail {

struct image_words {
  std::atomic<std::uint64_t> number;  ///< 0: not drawn yet
  std::atomic<std::uint32_t> child;   ///< how far the process is with what each child does first
};
inline constinit image_words no_image{};
inline constinit std::atomic<image_words*> image_page{&no_image};

/// The number of this process image: drawn at its first use, after each exec and in each child, so
/// that no two images have the same. Never 0. Async-signal-safe, once it has been called.
[[nodiscard]] std::uint64_t image();
/// The same without a call, or 0 in a process that has not asked yet: a child whose parent has.
[[nodiscard, gnu::always_inline]] inline std::uint64_t known_image() {
  // Relaxed: it changes in a child alone, which begins with what its parent had seen.
  return image_page.load(std::memory_order_relaxed)->number.load(std::memory_order_relaxed);
}

/// Guards lists of this process; a fork waits for it, so that it is free in the child.
[[nodiscard]] std::mutex& process_mutex();

/// `what` is called once in each child, before the child uses anything of ours. It may only call
/// async-signal-safe functions. `owns_descriptors` says whether the child has a descriptor table of
/// its own, so that it may close what its parent has left open. At most four.
void call_in_children(void (*what)(bool owns_descriptors));

/// While this object exists, a child of a fork closes the descriptor, which would otherwise keep
/// the bytes that the parent has locked. There may be 64 such objects at a time.
class closed_in_children {
 public:
  explicit closed_in_children(int fd);
  ~closed_in_children();
  closed_in_children(const closed_in_children&) = delete;
  closed_in_children& operator=(const closed_in_children&) = delete;

 private:
  int fd_;
};

/// A thread's own number, which no other thread of its image has. 0: it has none yet. Every acquire
/// and release reads it: so it lies where a shared library, too, reads it without a call.
[[gnu::tls_model("initial-exec")]] inline constinit thread_local std::uint64_t thread_number = 0;

/// Gives this thread a number, if it has none.
void number_this_thread();

}  // namespace lockflight::detail
