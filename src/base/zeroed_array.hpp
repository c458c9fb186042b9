// A large array of zeros, most of which nobody ever reads or writes.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>

namespace lockflight {

/// `count` elements whose value is all zero bits. Pages that are not touched have no memory, as
/// those of a static variable.
template <class T, std::size_t count>
class zeroed_array {
  static_assert(std::is_trivially_destructible_v<T>);

 public:
  zeroed_array() : all_(static_cast<T*>(std::calloc(count, sizeof(T)))) {
    if (all_ == nullptr) throw std::bad_alloc();
  }
  [[nodiscard]] T& operator[](std::size_t i) const { return all_[i]; }

 private:
  struct give_back {
    void operator()(T* it) const { std::free(it); }
  };
  std::unique_ptr<T[], give_back> all_;
};

}  // namespace lockflight
