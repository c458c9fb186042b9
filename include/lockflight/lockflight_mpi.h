/* lockflight for C programs with MPI: the ranks of a communicator as participants.
 *
 * Link the library that was built for the program's MPI (lockflight_openmpi or lockflight_mpich)
 * and lockflight. One thread of each process calls both MPI and lockflight. */
#ifndef LOCKFLIGHT_LOCKFLIGHT_MPI_H
#define LOCKFLIGHT_LOCKFLIGHT_MPI_H

#include <lockflight/lockflight.h>
#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Makes a participant of each rank of `comm`, numbered as there. Collective, with the same
 * configuration on all ranks; MPI is initialised. Ranks that MPI finds on one machine are one node
 * unless `config` has levels, whose product is then the number of ranks. `ranks`, `threads` and
 * `unpinned` are lockflight_run's and stay 0. `comm` is duplicated and may be freed.
 *
 * Refuses on all ranks alike: LOCKFLIGHT_INVALID (MPI_COMM_NULL, levels that do not fit),
 * LOCKFLIGHT_UNAVAILABLE (MPI is not initialised; this MPI lacks what several nodes need).
 * A rank that fails later takes the launch with it, as everywhere in MPI.
 *
 * In the header, so that no function of the library has a type of one MPI in its interface. */
static inline int lockflight_join_mpi(MPI_Comm comm, const struct lockflight_config* config,
                                      lockflight_participant** me) {
  int initialised = 0;
  MPI_Initialized(&initialised);
  /* Before MPI_Init a communicator cannot be converted; the library returns the error. */
  return lockflight_join_mpi_f(initialised ? (int)MPI_Comm_c2f(comm) : 0, me, config);
}

#ifdef __cplusplus
}
#endif

#endif
