// Suppresses a yield of the processor at the end of an epoch.
#pragma once

namespace lockflight::mpi_preload {

/// While this object exists, the calling thread's first sched_yield returns at once.
///
/// Open MPI 4.1, told that ranks outnumber cores, yields in every flush, also in one that had
/// nothing left to complete. An unlock flushes while it still holds the lock: the yield would hand
/// the processor to a rank that waits for just that lock. A flush that does wait yields again.
class keeping_the_processor {
 public:
  keeping_the_processor();
  ~keeping_the_processor();
  keeping_the_processor(const keeping_the_processor&) = delete;
  keeping_the_processor& operator=(const keeping_the_processor&) = delete;
};

}  // namespace lockflight::mpi_preload
