// A communicator or a window of the program that returns its errors for a while.
#pragma once

#include <mpi.h>

namespace lockflight::mpi_preload {

/// The object returns errors while this exists, and then has the program's handler again. With
/// MPICH communicators and windows are numbers of one type, so the functions say which of the two
/// it is.
template <class Handle, int (*Get)(Handle, MPI_Errhandler*), int (*Set)(Handle, MPI_Errhandler)>
class [[nodiscard]] returning_errors {
 public:
  explicit returning_errors(Handle of) : of_(of) {
    Get(of_, &before_);
    Set(of_, MPI_ERRORS_RETURN);
  }
  ~returning_errors() {
    Set(of_, before_);
    PMPI_Errhandler_free(&before_);
  }
  returning_errors(const returning_errors&) = delete;
  returning_errors& operator=(const returning_errors&) = delete;

 private:
  Handle of_;
  MPI_Errhandler before_ = MPI_ERRHANDLER_NULL;
};

using communicator_returning_errors =
    returning_errors<MPI_Comm, PMPI_Comm_get_errhandler, PMPI_Comm_set_errhandler>;
using window_returning_errors =
    returning_errors<MPI_Win, PMPI_Win_get_errhandler, PMPI_Win_set_errhandler>;

}  // namespace lockflight::mpi_preload
