#include "lab/fiber/stack_pool.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <string>
#include <system_error>

#include "lab/fiber/fail.hpp"
#include "lab/fiber/sanitizer.hpp"

namespace lockflight::fiber {
namespace {

// MADV_GUARD_INSTALL came with Linux 6.13; the C library's headers may be older than the kernel.
constexpr int advice_guard_install = 102;

// The first slab is small, as a checker needs a handful of stacks. Each further one doubles what
// there is, up to a size at which the system calls no longer count: a million stacks are mapped
// in some 30 calls.
constexpr std::size_t first_slab_stacks = 16;
constexpr std::size_t largest_slab_stacks = 65'536;

std::size_t round_up(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

[[noreturn]] void refuse(int error, const std::string& what) {
  throw std::system_error(error, std::generic_category(), "fiber stacks: " + what);
}

}  // namespace

stack_pool::stack_pool(std::size_t stack_bytes, guard below)
    : page_bytes_(static_cast<std::size_t>(::sysconf(_SC_PAGESIZE))), guard_(below) {
  const std::size_t least = std::max(min_stack_bytes, detail::sanitizer_stack_bytes);
  constexpr std::size_t most = std::numeric_limits<std::size_t>::max() / (4 * largest_slab_stacks);
  if (stack_bytes > most) {
    refuse(EINVAL, std::to_string(stack_bytes) + " bytes a stack, at most " + std::to_string(most));
  }
  stack_bytes_ = round_up(std::max(stack_bytes, least), page_bytes_);
  stride_ = stack_bytes_ + (guard_ == guard::none ? 0 : page_bytes_);
}

stack_pool::~stack_pool() {
  if (live() != 0) {
    detail::fail("a stack pool ends while stacks of it are in use");
  }
  for (const slab& each : slabs_) {
    ::munmap(each.base, each.bytes);
  }
}

stack stack_pool::take() {
  if (!free_.empty()) {
    std::byte* const base = free_.back();
    free_.pop_back();
    return {this, base};
  }
  if (next_ == end_) {
    add_slab();
  }
  std::byte* base = next_;
  if (guard_ != guard::none) {
    protect(base);
    base += page_bytes_;
  }
  next_ += stride_;
  ++carved_;
  return {this, base};
}

void stack_pool::put_back(std::byte* base) noexcept {
  if (free_.size() == carved_) {
    detail::fail("a stack is put back twice");
  }
  free_.push_back(base);
}

void stack_pool::add_slab() {
  const std::size_t stacks = std::clamp(carved_, first_slab_stacks, largest_slab_stacks);
  const std::size_t bytes = stacks * stride_;
  // Every stack may come back at a time when nothing may be thrown.
  if (free_.capacity() < carved_ + stacks) {
    free_.reserve(std::max(2 * free_.capacity(), carved_ + stacks));
  }
  slabs_.reserve(slabs_.size() + 1);
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED) {
    refuse(errno, "cannot map " + std::to_string(bytes) + " bytes more; look at ulimit -v and " +
                      "vm.overcommit_memory");
  }
  // May fail where the kernel has no huge pages, which is as good.
  ::madvise(memory, bytes, MADV_NOHUGEPAGE);
  slabs_.push_back({static_cast<std::byte*>(memory), bytes});
  next_ = static_cast<std::byte*>(memory);
  end_ = next_ + bytes;
}

void stack_pool::protect(std::byte* page) {
  if (guard_ == guard::page && ::madvise(page, page_bytes_, advice_guard_install) != 0) {
    if (errno != EINVAL) {
      refuse(errno, "cannot install a guard page");
    }
    guard_ = guard::mapping;  // a kernel without guard marks, and it will not learn them
  }
  if (guard_ == guard::mapping && ::mprotect(page, page_bytes_, PROT_NONE) != 0) {
    refuse(errno, "no guard page after " + std::to_string(carved_) +
                      " stacks; look at vm.max_map_count, or use stacks without guard pages");
  }
}

std::size_t stack_pool::trim() noexcept {
  for (std::byte* const base : free_) {
    ::madvise(base, stack_bytes_, MADV_DONTNEED);
  }
  return free_.size();
}

}  // namespace lockflight::fiber
