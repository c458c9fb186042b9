#ifndef LOCKFLIGHT_TESTS_FIBER_SUPPORT_HPP
#define LOCKFLIGHT_TESTS_FIBER_SUPPORT_HPP

#include <unistd.h>

#include <cstddef>
#include <fstream>
#include <utility>

namespace lockflight::fiber::testing {

enum class sanitizer { none, address, thread };

#if defined(__SANITIZE_ADDRESS__)
inline constexpr sanitizer active = sanitizer::address;
#elif defined(__SANITIZE_THREAD__)
inline constexpr sanitizer active = sanitizer::thread;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
inline constexpr sanitizer active = sanitizer::address;
#elif __has_feature(thread_sanitizer)
inline constexpr sanitizer active = sanitizer::thread;
#else
inline constexpr sanitizer active = sanitizer::none;
#endif
#else
inline constexpr sanitizer active = sanitizer::none;
#endif

/// Bytes of memory this process has resident.
inline std::size_t resident_bytes() {
  std::ifstream counts("/proc/self/statm");
  std::size_t mapped = 0;
  std::size_t resident = 0;
  counts >> mapped >> resident;
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

/// Sets a flag when it is destroyed.
class witness {
 public:
  explicit witness(bool& destroyed) : destroyed_(&destroyed) {}
  witness(witness&& other) noexcept : destroyed_(std::exchange(other.destroyed_, nullptr)) {}
  witness& operator=(witness&&) = delete;
  witness(const witness&) = delete;
  witness& operator=(const witness&) = delete;
  ~witness() {
    if (destroyed_ != nullptr) {
      *destroyed_ = true;
    }
  }

 private:
  bool* destroyed_;
};

inline constexpr std::size_t kib = 1024;
inline constexpr std::size_t mib = 1024 * kib;

}  // namespace lockflight::fiber::testing

#endif  // LOCKFLIGHT_TESTS_FIBER_SUPPORT_HPP
