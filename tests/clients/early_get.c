/* Reads the data of an MPI_Rget with a derived datatype right after MPI_Wait, on two ranks, and
 * prints how often it was not there yet. docs/mpi-details.md says what the MPIs answer. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { side = 256, columns = side / 2, gets = 100 };

/* The left half of the columns of a matrix whose rows have `length` elements. */
static MPI_Datatype left_half(int length) {
  MPI_Datatype half;
  MPI_Type_vector(side, columns, length, MPI_DOUBLE, &half);
  MPI_Type_commit(&half);
  return half;
}

static int missing(const double* got) {
  int count = 0;
  for (int row = 0; row < side; ++row)
    for (int column = 0; column < columns; ++column)
      count += got[row * columns + column] != row * side + column + 1;
  return count;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  double* memory;
  MPI_Win win;
  MPI_Win_allocate(side * side * (MPI_Aint)sizeof(double), sizeof(double), MPI_INFO_NULL,
                   MPI_COMM_WORLD, &memory, &win);
  for (int i = 0; i < side * side; ++i) memory[i] = i + 1;
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock_all(0, win);
  if (rank == 0) {
    MPI_Datatype from = left_half(side), into = left_half(columns);
    int early = 0, wrong = 0;
    for (int i = 0; i < gets; ++i) {
      double* got = calloc(side * columns, sizeof(double));
      MPI_Request request;
      MPI_Rget(got, 1, into, 1, 0, 1, from, win, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      early += missing(got) != 0;
      MPI_Win_flush(1, win);
      wrong += missing(got) != 0;
      free(got);
    }
    printf("of %d gets %d were not complete after MPI_Wait, and %d after MPI_Win_flush\n", gets,
           early, wrong);
    MPI_Type_free(&from);
    MPI_Type_free(&into);
  }
  MPI_Win_unlock_all(win);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_free(&win);
  MPI_Finalize();
}
