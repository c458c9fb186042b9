#include "mpi_preload/errors.hpp"

#include <array>
#include <cstdio>
#include <utility>

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

#if !defined(OPEN_MPI)
/// True if errors of an object without a handler go to the handler of MPI_COMM_SELF first, as
/// MPI-4.0 has it (section 9.3). MPICH does so since 4.2 (its pull request 6452). In earlier
/// versions of MPICH, and in Intel MPI, such errors go to the handler of MPI_COMM_WORLD.
[[nodiscard]] bool turns_to_self() {
  static const bool does = [] {
    std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
    int length = 0;
    PMPI_Get_library_version(text.data(), &length);
    int major = 0;
    int minor = 0;
    return std::sscanf(text.data(), "MPICH Version: %d.%d", &major, &minor) == 2 &&
           std::pair(major, minor) >= std::pair(4, 2);
  }();
  return does;
}
#endif

/// The handler that the MPI calls for errors on an object, and the object that has it. In MPICH an
/// object whose handler was never set has MPI_ERRORS_ARE_FATAL in name only: its errors, and those
/// of a null handle, go to the handler of another object (turns_to_self). MPI_ERRORS_ARE_FATAL must
/// therefore not be set on an object that may never have had a handler.
[[nodiscard]] found_handler handler_for(const with_handler& object) {
  found_handler found{object, MPI_ERRORS_ARE_FATAL};
  if (!object.is_null()) found.is = object.handler();
#if !defined(OPEN_MPI)
  if (found.is != MPI_ERRORS_ARE_FATAL || !has_launch()) return found;
  for (const MPI_Comm other : {MPI_COMM_SELF, MPI_COMM_WORLD}) {
    if (other == MPI_COMM_SELF && !turns_to_self()) continue;
    const with_handler fallback = with_handler::communicator(other);
    const MPI_Errhandler its = fallback.handler();
    if (its != MPI_ERRORS_ARE_FATAL) return {fallback, its, /*is_own=*/false};
  }
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
