#ifndef LOCKFLIGHT_FIBER_CONTEXT_HPP
#define LOCKFLIGHT_FIBER_CONTEXT_HPP

// The one place that knows Boost.Context's fcontext. It is a detail header of Boost; the public
// boost::context::fiber is built on it, but cannot drop a suspended fiber without unwinding it and
// is three times slower to start anew. Only fiber.cpp may include this file.

#include <boost/context/detail/fcontext.hpp>
#include <cstddef>

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace lockflight::fiber::detail {

/// The point at which a stopped stack continues: its saved stack pointer, with the registers above.
using context = boost::context::detail::fcontext_t;

/// The values that a switch delivers: `fctx`, where the side that jumped here continues, and
/// `data`.
using arrival = boost::context::detail::transfer_t;

/// Clears the sticky floating-point exception flags.
///
/// A switch saves and loads the SSE control register with the flags in it. Once an inexact result
/// on one side has made the two values differ, every load changes the register, and the processor
/// drains its pipeline for it: 120 ns a round trip instead of 8. With the flags cleared the values
/// are equal again, and looking costs less than half a nanosecond.
[[gnu::always_inline]] inline void clear_float_flags() noexcept {
#if defined(__SSE__)
  constexpr unsigned flags = 0x3f;
  const unsigned control = _mm_getcsr();
  if ((control & flags) != 0) [[unlikely]] {
    _mm_setcsr(control & ~flags);
  }
#endif
}

/// A context that, once jumped to, runs `entry` on the stack of `bytes` bytes that ends at `top`.
inline context make_context(void* top, std::size_t bytes, void (*entry)(arrival)) noexcept {
  clear_float_flags();
  return boost::context::detail::make_fcontext(top, bytes, entry);
}

/// Stops here and continues at `to`, which receives `message`. Returns when someone jumps back.
[[gnu::always_inline]] inline arrival jump(context to, void* message) {
  clear_float_flags();
  return boost::context::detail::jump_fcontext(to, message);
}

}  // namespace lockflight::fiber::detail

#endif  // LOCKFLIGHT_FIBER_CONTEXT_HPP
