/* ARMCI-MPI, which carries Global Arrays over windows of MPI, is a program from elsewhere for the
 * drop-in: its mutexes and its fetch-and-add lock windows in its own way. Run by 2 ranks or more,
 * with the drop-in and without; the first rank that finds a fault aborts with its line.
 */
#include <armci.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "checks.h"

static int rank, ranks;

/* With more ranks than cores MPICH takes 10 ms for each access to another rank. */
enum { rounds = 6, mutexes = 2 };

/* Words of each rank's memory; the rest is there because MPICH 4.0 misses the memory of the other
 * ranks with sizes that are no multiple of 64 bytes. */
enum { under_mutex, summed = under_mutex + mutexes, words = 16 };

/* A counter for each mutex of each rank, read and written back under the mutex. */
static void mutual_exclusion(long** memory) {
  REQUIRE(ARMCI_Create_mutexes(mutexes) == 0);
  for (int i = 0; i < rounds; ++i)
    for (int t = 0; t < ranks; ++t) {
      const int home = (rank + t) % ranks, mutex = i % mutexes;
      long* const counter = memory[home] + under_mutex + mutex;
      long value = 0;
      ARMCI_Lock(mutex, home);
      ARMCI_Get(counter, &value, sizeof value, home);
      ++value;
      ARMCI_Put(&value, counter, sizeof value, home);
      ARMCI_Fence(home);
      ARMCI_Unlock(mutex, home);
    }
  ARMCI_Barrier();
  for (int home = 0; home < ranks; ++home)
    for (int mutex = 0; mutex < mutexes; ++mutex) {
      long value = 0;
      ARMCI_Get(memory[home] + under_mutex + mutex, &value, sizeof value, home);
      REQUIRE(value == (long)ranks * rounds / mutexes);
    }
  ARMCI_Barrier();
  REQUIRE(ARMCI_Destroy_mutexes() == 0);
}

/* Each rank that adds one to rank 0's word gets another number: a rank's grow, their sum is right.
 */
static void fetch_and_add(long** memory) {
  long sum = 0, before = -1;
  for (int i = 0; i < rounds; ++i) {
    long value = -1;
    ARMCI_Rmw(ARMCI_FETCH_AND_ADD_LONG, &value, memory[0] + summed, 1, 0);
    REQUIRE(value > before);
    before = value;
    sum += value;
  }
  long total = 0;
  const long all = (long)ranks * rounds;
  MPI_Allreduce(&sum, &total, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  REQUIRE(total == all * (all - 1) / 2);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  REQUIRE(ARMCI_Init() == 0);
  long** const memory = malloc((size_t)ranks * sizeof *memory);
  REQUIRE(ARMCI_Malloc((void**)memory, words * sizeof(long)) == 0);
  long* const mine = memory[rank];
  ARMCI_Access_begin(mine);
  for (int i = 0; i < words; ++i) mine[i] = 0;
  ARMCI_Access_end(mine);
  ARMCI_Barrier();

  mutual_exclusion(memory);
  fetch_and_add(memory);

  ARMCI_Barrier();
  ARMCI_Free(mine);
  free(memory);
  ARMCI_Finalize();
  if (rank == 0) puts("all holds");
  MPI_Finalize();
  return 0;
}
