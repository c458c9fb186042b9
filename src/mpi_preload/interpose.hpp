// Defines the functions that a program calls in place of MPI's own.
//
// MPI's profiling interface has each call twice: a tool defines MPI_X, and calls PMPI_X (MPI-3.1,
// section 14.2). The drop-in does its work in PMPI_X. Its MPI_X goes to the next MPI_X behind it:
// that of a tool, if there is one, whose PMPI_X is the drop-in's; else the drop-in's own PMPI_X.
#pragma once

#include "mpi_preload/bindings.hpp"
#include "mpi_preload/pmpi.hpp"

// LOCKFLIGHT_INTERPOSE(Win_create, (void* base, …), (base, …)) { … }
#define LOCKFLIGHT_INTERPOSE(call, parameters, arguments) \
  LOCKFLIGHT_INTERPOSE_QUICKLY(call, parameters, arguments, )

// `quickly` is a statement that returns where the call is for a window that was found alone
// (windows.hpp: no tool is behind us then) and there is little to do; else it does nothing.
#define LOCKFLIGHT_INTERPOSE_QUICKLY(call, parameters, arguments, quickly)       \
  static int work_of_##call parameters;                                          \
  [[gnu::noinline]] static int behind_##call parameters {                        \
    const auto& behind = lockflight::mpi_preload::behind();                      \
    if (behind.next.call != behind.own.call) return behind.next.call arguments;  \
    return work_of_##call arguments;                                             \
  }                                                                              \
  extern "C" __attribute__((visibility("default"))) int MPI_##call parameters {  \
    quickly;                                                                     \
    return behind_##call arguments;                                              \
  }                                                                              \
  extern "C" __attribute__((visibility("default"))) int PMPI_##call parameters { \
    quickly;                                                                     \
    return work_of_##call arguments;                                             \
  }                                                                              \
  [[gnu::noinline]] int work_of_##call parameters

// The same for a call that the MPI does by itself but for what some windows need. Its names are a
// jump each to where bindings.hpp has them lead. The steps of a check are in functions of their own
// with the same arguments, so that the first one has no registers to save or move.
//
// `quickly` as above.
#define LOCKFLIGHT_INTERPOSE_PASSED_ON(call, parameters, arguments, quickly)               \
  static int checked_##call parameters;                                                    \
  [[gnu::noinline]] static int behind_##call parameters {                                  \
    const auto& behind = lockflight::mpi_preload::behind();                                \
    if (behind.next.call != behind.own.call) return behind.next.call arguments;            \
    return checked_##call arguments;                                                       \
  }                                                                                        \
  int lockflight::mpi_preload::checks::of_name::call parameters {                          \
    quickly;                                                                               \
    return behind_##call arguments;                                                        \
  }                                                                                        \
  int lockflight::mpi_preload::checks::of_profiling_name::call parameters {                \
    quickly;                                                                               \
    return checked_##call arguments;                                                       \
  }                                                                                        \
  extern "C" __attribute__((visibility("default"))) int MPI_##call parameters {            \
    return lockflight::mpi_preload::bindings::of_name.call.load(std::memory_order_relaxed) \
        arguments;                                                                         \
  }                                                                                        \
  extern "C" __attribute__((visibility("default"))) int PMPI_##call parameters {           \
    return lockflight::mpi_preload::bindings::of_profiling_name.call.load(                 \
        std::memory_order_relaxed) arguments;                                              \
  }                                                                                        \
  [[gnu::noinline]] int checked_##call parameters
