#include "mpi_preload/errors.hpp"

#include "mpi_preload/launch.hpp"

namespace lockflight::mpi_preload {

MPI_Errhandler with_handler::handler() const {
  MPI_Errhandler found = MPI_ERRHANDLER_NULL;
  if (kind_ == kind::window)
    PMPI_Win_get_errhandler(window_, &found);
  else
    PMPI_Comm_get_errhandler(communicator_, &found);
  return found;
}

void with_handler::set(MPI_Errhandler handler) const {
  if (kind_ == kind::window)
    PMPI_Win_set_errhandler(window_, handler);
  else
    PMPI_Comm_set_errhandler(communicator_, handler);
}

void with_handler::call(int code) const {
  if (kind_ == kind::window)
    PMPI_Win_call_errhandler(window_, code);
  else
    PMPI_Comm_call_errhandler(communicator_, code);
}

namespace {

struct found_handler {
  with_handler on;
  MPI_Errhandler is;  ///< to be freed, unless it is MPI_ERRORS_ARE_FATAL
  bool is_own = true;
};

/// The handler that the MPI calls for errors on an object, and the object that has it. In MPICH an
/// object whose handler was never set has MPI_ERRORS_ARE_FATAL in name only: its errors, and those
/// of a null handle, go to the handler of MPI_COMM_WORLD. MPI_ERRORS_ARE_FATAL must therefore not
/// be set on an object that may never have had a handler.
[[nodiscard]] found_handler handler_for(const with_handler& object) {
  found_handler found{object, MPI_ERRORS_ARE_FATAL};
  if (!object.is_null()) found.is = object.handler();
#if !defined(OPEN_MPI)
  if (found.is != MPI_ERRORS_ARE_FATAL || !has_launch()) return found;
  const with_handler world = with_handler::communicator(MPI_COMM_WORLD);
  const MPI_Errhandler its = world.handler();
  if (its != MPI_ERRORS_ARE_FATAL) return {world, its, /*is_own=*/false};
#endif
  return found;
}

void drop(MPI_Errhandler& handler) {
  if (handler != MPI_ERRORS_ARE_FATAL) PMPI_Errhandler_free(&handler);
}

}  // namespace

returned_errors::returned_errors(const with_handler& of, bool also_fatal) : on_(of) {
  found_handler found = handler_for(of);
  on_ = found.on;
  is_own_ = found.is_own;
  const bool is_fatal = found.is == MPI_ERRORS_ARE_FATAL;
  if (found.is == MPI_ERRORS_RETURN || (is_fatal && !also_fatal)) {
    drop(found.is);
    return;
  }
  before_ = found.is;
  on_.set(MPI_ERRORS_RETURN);
}

returned_errors::~returned_errors() {
  if (before_ == MPI_ERRHANDLER_NULL) return;
  if (puts_back_) on_.set(before_);
  drop(before_);
}

void returned_errors::is_freed() { puts_back_ = !is_own_; }

int raise(const with_handler& on, const answer& found) {
  if (found.code == MPI_SUCCESS || found.told) return found.code;
  found_handler handler = handler_for(on);
  handler.on.call(found.code);
  drop(handler.is);
  return found.code;
}

}  // namespace lockflight::mpi_preload
