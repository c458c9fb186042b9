/* lockflight for C programs with MPI: the ranks of a communicator become participants.
 * examples/mpi/counter.c is a program.
 *
 * Link the library that was built for the program's MPI (lockflight_openmpi or lockflight_mpich)
 * and lockflight. The same thread of each process must call both MPI and lockflight. */
#ifndef LOCKFLIGHT_LOCKFLIGHT_MPI_H
#define LOCKFLIGHT_LOCKFLIGHT_MPI_H

#include <lockflight/lockflight.h>
#include <mpi.h>

/* C89 has no `inline`; GCC and Clang have their own word in all standards. */
#if defined(__GNUC__)
#define LOCKFLIGHT_INLINE static __inline__
#else
#define LOCKFLIGHT_INLINE static inline
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Makes each rank of `comm` a participant with the same number. MPI must be initialised. The call
 * is collective, with the same configuration on all ranks. Ranks that MPI finds on one machine are
 * one node, unless `config` has levels; the product of the levels is then the number of ranks.
 * `ranks`, `threads` and `unpinned` are for lockflight_run only and stay 0. `comm` is duplicated,
 * so the program may free it.
 *
 * LOCKFLIGHT_INVALID: `comm` is MPI_COMM_NULL, or the levels do not fit. LOCKFLIGHT_UNAVAILABLE:
 * MPI is not initialised, or this MPI lacks what several nodes need. All ranks get the same code.
 * If a rank fails later, the whole launch ends, as always in MPI.
 *
 * The function is in the header so that no function of the library has a type of one MPI in its
 * interface. */
LOCKFLIGHT_INLINE int lockflight_join_mpi(MPI_Comm comm, const struct lockflight_config* config,
                                          lockflight_participant** me) {
  int initialised = 0;
  MPI_Initialized(&initialised);
  /* Before MPI_Init a communicator cannot be converted; the library returns the error. */
  return lockflight_join_mpi_fint(initialised ? (int)MPI_Comm_c2f(comm) : 0, config, me);
}

#ifdef __cplusplus
}
#endif

#endif
