// USDT probes, where they are compiled in (the CMake option LOCKFLIGHT_USDT): places at which a
// tracer such as bpftrace can stop by.
//
// Cost: a probe without a tracer is one nop. Its arguments are computed in any case, so they are
// values that the code has at hand.
#pragma once

#ifdef LOCKFLIGHT_USDT
#include <sys/sdt.h>
#define LOCKFLIGHT_PROBE2(provider, probe, a, b) DTRACE_PROBE2(provider, probe, a, b)
#define LOCKFLIGHT_PROBE3(provider, probe, a, b, c) DTRACE_PROBE3(provider, probe, a, b, c)
#else
#define LOCKFLIGHT_PROBE2(provider, probe, a, b) (static_cast<void>(a), static_cast<void>(b))
#define LOCKFLIGHT_PROBE3(provider, probe, a, b, c) \
  (static_cast<void>(a), static_cast<void>(b), static_cast<void>(c))
#endif
