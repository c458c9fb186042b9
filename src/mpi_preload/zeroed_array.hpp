// Arrays with an element for each rank, of which a process uses few.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <new>
#include <type_traits>

namespace lockflight::mpi_preload {

/// An array of so many elements, all zero. A large array takes memory page by page, as elements are
/// written.
template <class T>
class zeroed_array {
  static_assert(std::is_trivially_destructible_v<T>, "elements are not destroyed");

 public:
  zeroed_array() = default;
  explicit zeroed_array(std::size_t size) : size_(size) {
    // Small ones share pages: a program may have thousands of windows.
    constexpr std::size_t large = 4 * 4096;
    is_mapped_ = size * sizeof(T) >= large;
    void* const at = is_mapped_ ? mmap(nullptr, size * sizeof(T), PROT_READ | PROT_WRITE,
                                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
                                : ::operator new(size * sizeof(T));
    if (at == MAP_FAILED) throw std::bad_alloc();
    elements_ = static_cast<T*>(at);
    // Zero pages hold zeroed elements already: these are numbers and pointers.
    if (!is_mapped_)
      for (std::size_t i = 0; i < size; ++i) new (elements_ + i) T{};
  }
  ~zeroed_array() {
    if (is_mapped_)
      munmap(elements_, size_ * sizeof(T));
    else
      ::operator delete(elements_);
  }
  zeroed_array(const zeroed_array&) = delete;
  zeroed_array& operator=(const zeroed_array&) = delete;

  [[nodiscard]] T& operator[](std::size_t i) { return elements_[i]; }
  [[nodiscard]] const T& operator[](std::size_t i) const { return elements_[i]; }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  T* elements_ = nullptr;
  std::size_t size_ = 0;
  bool is_mapped_ = false;
};

}  // namespace lockflight::mpi_preload
