// An object of a process that outlives main.
#pragma once

namespace lockflight {

/// Holds a T that is made without an allocation and never destroyed: a `static` one is still there
/// when other threads, or functions that run at exit, use it.
template <class T>
union never_destroyed {
  T value;

  never_destroyed() : value() {}
  ~never_destroyed() {}
};

}  // namespace lockflight
