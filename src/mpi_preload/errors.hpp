// Errors of the MPI's calls: what a call has really returned, and the program's error handlers.
//
// After MPICH 4.3 and 5 have called a handler of the program's own, the call returns MPI_SUCCESS:
// a window that could not be made, or a lock that was refused, would seem to be there. So every
// call of the MPI's on whose success the drop-in relies is made through result_of(), and every
// error is passed to the program's handler through raise().
#pragma once

#include <mpi.h>

#include <cstdint>

namespace lockflight::mpi_preload {

/// The result of a call: an error class or code of MPI's, and whether MPI has called the program's
/// error handler already, because its own call failed.
struct answer {
  int code = MPI_SUCCESS;
  bool told = false;

  [[nodiscard]] static answer of_mpi(int code) {
    return {.code = code, .told = code != MPI_SUCCESS};
  }
};

/// An object of the program that has an error handler. With MPICH communicators and windows are
/// numbers of one type, so the functions say which of the two it is.
class with_handler {
 public:
  [[nodiscard]] static with_handler communicator(MPI_Comm is) {
    return {kind::communicator, is, MPI_WIN_NULL};
  }
  [[nodiscard]] static with_handler window(MPI_Win is) { return {kind::window, MPI_COMM_NULL, is}; }

  [[nodiscard]] bool is_null() const {
    return kind_ == kind::window ? window_ == MPI_WIN_NULL : communicator_ == MPI_COMM_NULL;
  }
  /// The caller frees the handler.
  [[nodiscard]] MPI_Errhandler handler() const;
  void set(MPI_Errhandler handler) const;
  void call(int code) const;

 private:
  enum class kind : std::uint8_t { communicator, window };
  with_handler(kind is, MPI_Comm communicator, MPI_Win window)
      : kind_(is), communicator_(communicator), window_(window) {}

  kind kind_;
  MPI_Comm communicator_;
  MPI_Win window_;
};

/// While this exists, errors of calls on an object are returned and no handler of the program's own
/// is called. Then the program's handler is back. Errors that end the program still do so, unless
/// `also_fatal`.
class [[nodiscard]] returned_errors {
 public:
  explicit returned_errors(const with_handler& of, bool also_fatal = false);
  ~returned_errors();
  returned_errors(const returned_errors&) = delete;
  returned_errors& operator=(const returned_errors&) = delete;

  /// True if the program has a handler of its own that was not called.
  [[nodiscard]] bool has_replaced() const { return before_ != MPI_ERRHANDLER_NULL; }
  /// The object is no more, and so a handler of its own cannot be put back.
  void is_freed();

 private:
  with_handler on_;  // the object whose handler was replaced
  MPI_Errhandler before_ = MPI_ERRHANDLER_NULL;
  bool is_own_ = true;  // that object is the one whose calls are made
  bool puts_back_ = true;
};

/// Makes a call of the MPI's and returns its true result. `frees`: the call frees the object if it
/// succeeds.
///
/// Errors of another thread's calls on the object are returned meanwhile, too. So this is not for
/// calls that wait for long while other threads call the MPI.
template <class Call>
[[nodiscard]] answer result_of(const with_handler& on, Call call, bool frees = false) {
#if defined(OPEN_MPI)
  static_cast<void>(on);
  static_cast<void>(frees);
  return answer::of_mpi(call());
#else
  returned_errors meanwhile(on);
  const int code = call();
  if (frees && code == MPI_SUCCESS) meanwhile.is_freed();
  return {.code = code, .told = code != MPI_SUCCESS && !meanwhile.has_replaced()};
#endif
}

/// Passes an error to the program's handler for this object, as the MPI would and once, and returns
/// its code.
int raise(const with_handler& on, const answer& found);

}  // namespace lockflight::mpi_preload
