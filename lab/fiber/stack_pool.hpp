#ifndef LOCKFLIGHT_FIBER_STACK_POOL_HPP
#define LOCKFLIGHT_FIBER_STACK_POOL_HPP

#include <cstddef>
#include <utility>
#include <vector>

namespace lockflight::fiber {

class stack_pool;

/// Owns a stack, which goes back to its pool when this object is destroyed. Sixteen bytes, movable.
class stack {
 public:
  /// No stack.
  stack() noexcept = default;
  stack(stack&& other) noexcept
      : pool_(std::exchange(other.pool_, nullptr)), base_(std::exchange(other.base_, nullptr)) {}
  stack& operator=(stack&& other) noexcept {
    stack taken(std::move(other));
    std::swap(pool_, taken.pool_);
    std::swap(base_, taken.base_);
    return *this;
  }
  stack(const stack&) = delete;
  stack& operator=(const stack&) = delete;
  ~stack();

  /// True if there is a stack.
  explicit operator bool() const noexcept { return base_ != nullptr; }
  /// The stack's lowest usable byte. A guard page, if there is one, lies right below.
  std::byte* base() const noexcept { return base_; }
  /// The number of the stack's usable bytes; stacks grow down from `base() + bytes()`.
  std::size_t bytes() const noexcept;

 private:
  friend class stack_pool;
  stack(stack_pool* pool, std::byte* base) noexcept : pool_(pool), base_(base) {}

  stack_pool* pool_ = nullptr;
  std::byte* base_ = nullptr;
};

/// The memory below each stack, which an overflow meets.
enum class guard {
  /// Nothing: an overflow runs into the next stack. `fiber::resume` notices it, afterwards, if the
  /// fiber is suspended that deep. No memory, no system calls.
  none,
  /// A page that faults when touched. One system call the first time a stack is handed out. On
  /// Linux 6.13 and later the page is a mark in the page table, and a million guarded stacks are
  /// fine. Before, it is `mapping`.
  page,
  /// A page that faults when touched, as a memory mapping of its own. Every stack then counts twice
  /// against the kernel's vm.max_map_count, 65,530 by default: 32,000 stacks a process.
  mapping,
};

/// Stacks of one size, mapped in large slabs and used again when they come back.
///
/// A stack takes memory only for the pages that were touched: a fiber that stays shallow takes one
/// page, 4 KiB on x86. The slabs are mapped without reserving swap space and without huge pages,
/// which would commit 2 MiB at the first touch. Memory stays with the pool until `trim` or its end.
///
/// Not thread-safe: one pool per thread, or the owner's own lock around it. Stacks may be used on
/// any thread. A pool must outlive its stacks; the process ends with a message if it does not.
class stack_pool {
 public:
  /// The smallest stack. It holds a few frames of plain code, and a throw; printf needs more.
  static constexpr std::size_t min_stack_bytes = 8 * 1024;

  /// Stacks of `stack_bytes` usable bytes, rounded up to whole pages and to `min_stack_bytes`.
  /// Under the address or thread sanitizer a stack has at least 256 KiB, as instrumented frames
  /// and the sanitizer's own need it. Maps nothing yet.
  explicit stack_pool(std::size_t stack_bytes, guard below = guard::page);
  stack_pool(const stack_pool&) = delete;
  stack_pool& operator=(const stack_pool&) = delete;
  ~stack_pool();

  /// A stack: the one that came back last, else one never used. Amortised constant time; without
  /// guards a system call only once per slab. Throws std::system_error if the kernel refuses the
  /// memory or the guard page, saying which limit it met.
  stack take();

  /// Gives the memory of all stacks that are not handed out back to the kernel, and returns how
  /// many those are. They stay mapped and can be taken again. One system call per stack.
  std::size_t trim() noexcept;

  /// Usable bytes of each stack.
  std::size_t stack_bytes() const noexcept { return stack_bytes_; }
  /// Stacks handed out now.
  std::size_t live() const noexcept { return carved_ - free_.size(); }
  /// Stacks ever used, the most that were live at one time.
  std::size_t peak() const noexcept { return carved_; }

 private:
  friend class stack;

  struct slab {
    std::byte* base;
    std::size_t bytes;
  };

  void put_back(std::byte* base) noexcept;
  void add_slab();
  void protect(std::byte* page);

  std::size_t page_bytes_;
  std::size_t stack_bytes_;
  std::size_t stride_;  // from one stack to the next: the stack and the guard page below it
  guard guard_;
  std::vector<slab> slabs_;
  std::vector<std::byte*>
      free_;                   // capacity for every stack there is, so that returning is noexcept
  std::byte* next_ = nullptr;  // the first stack of the newest slab that was never handed out
  std::byte* end_ = nullptr;
  std::size_t carved_ = 0;
};

inline std::size_t stack::bytes() const noexcept {
  return pool_ == nullptr ? 0 : pool_->stack_bytes();
}

inline stack::~stack() {
  if (base_ != nullptr) {
    pool_->put_back(base_);
  }
}

}  // namespace lockflight::fiber

#endif  // LOCKFLIGHT_FIBER_STACK_POOL_HPP
