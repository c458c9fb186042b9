// MPI's handles as owners, its error codes as exceptions.
//
// The fabric makes its calls by the names of MPI's profiling interface (MPI-3.1, section 14.2), but
// for those that begin and end MPI: a tool counts the program's calls and not the locks', and where
// a library gives the program another communicator in place of MPI_COMM_WORLD, as Casper does, the
// drop-in's calls do not pass through that library.
#pragma once

#include <mpi.h>

#include <array>
#include <exception>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "base/fault_in.hpp"
#include "lockflight/fabric/mpi.hpp"
#include "lockflight/fabric/parking.hpp"

namespace lockflight::mpi::detail {

/// OMPI_MCA_osc for Open MPI 4.1 where its own choice fails (environment.cpp).
inline constexpr const char* osc_that_works = "sm,pt2pt";

/// True if the MPI is Open MPI 4, some of whose faults the fabric avoids. The library decides, not
/// mpi.h: a program that was compiled for Open MPI 4 runs on Open MPI 5 as well.
[[nodiscard]] inline bool is_open_mpi_4() {
#if defined(OPEN_MPI)
  static const bool is = [] {
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
    int length = 0;
    PMPI_Get_library_version(text, &length);
    return std::string(text).starts_with("Open MPI v4.");
  }();
  return is;
#else
  return false;
#endif
}

/// A communicator as a number that headers without mpi.h can use: Fortran's number, or the number
/// for C in the standard's binary interface, which has no Fortran.
[[nodiscard]] inline int number_of(MPI_Comm communicator) {
#if defined(MPI_ABI)
  return PMPI_Comm_toint(communicator);
#else
  return PMPI_Comm_c2f(communicator);
#endif
}
[[nodiscard]] inline MPI_Comm communicator_of(int number) {
#if defined(MPI_ABI)
  return PMPI_Comm_fromint(number);
#else
  return PMPI_Comm_f2c(number);
#endif
}

/// MPI's text for a call that failed; empty for a call that did not.
[[nodiscard]] inline std::string fault_of(int code, const char* call) {
  if (code == MPI_SUCCESS) return "";
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  PMPI_Error_string(code, text, &length);
  return std::string(call) + " failed: " + std::string(text, static_cast<std::size_t>(length));
}

/// Throws `unavailable` with MPI's own words unless the call succeeded. Communicators and windows
/// of this fabric return their errors.
inline void check(int code, const char* call) {
  if (code != MPI_SUCCESS) throw unavailable(fault_of(code, call));
}

/// Throws unless MPI can be called.
inline void require_mpi() {
  int is = 0;
  PMPI_Initialized(&is);
  if (is == 0) throw unavailable("MPI is not initialised (an mpi::environment initialises it)");
  PMPI_Finalized(&is);
  if (is != 0) throw unavailable("MPI has been finalised in this process");
}

/// Waits for a request and gives way between tests. MPICH spins in its blocking collective calls
/// and never yields: with more ranks than cores each of their rounds takes time slices of the
/// kernel.
inline void finish(MPI_Request request, const char* call) {
  for (shm::detail::steps_of_wait wait;; wait.next()) {
    int done = 0;
    check(PMPI_Test(&request, &done, MPI_STATUS_IGNORE), call);
    if (done != 0) return;
  }
}

/// Owns a communicator of its own, unless it is borrowed; MPI_COMM_NULL on ranks that are in none.
class communicator {
 public:
  communicator() = default;
  /// A communicator of the program, for collective calls at a point where the program makes one on
  /// it too.
  [[nodiscard]] static communicator borrowed(MPI_Comm of) {
    communicator made;
    made.handle_ = of;
    made.is_borrowed_ = true;
    return made;
  }
  explicit communicator(MPI_Comm handle) : handle_(handle) {
    if (handle_ != MPI_COMM_NULL) PMPI_Comm_set_errhandler(handle_, MPI_ERRORS_RETURN);
  }
  communicator(communicator&& o) noexcept
      : handle_(std::exchange(o.handle_, MPI_COMM_NULL)), is_borrowed_(o.is_borrowed_) {}
  communicator& operator=(communicator&& o) noexcept {
    std::swap(handle_, o.handle_);
    std::swap(is_borrowed_, o.is_borrowed_);
    return *this;
  }
  ~communicator() {
    if (handle_ != MPI_COMM_NULL && !is_borrowed_) PMPI_Comm_free(&handle_);
  }

  [[nodiscard]] static communicator duplicate(MPI_Comm of) {
    MPI_Comm made = MPI_COMM_NULL;
    MPI_Request request = MPI_REQUEST_NULL;
    check(PMPI_Comm_idup(of, &made, &request), "MPI_Comm_idup");
    finish(request, "MPI_Comm_idup");
    return communicator(made);
  }
  /// The ranks of `of` with the same colour, in its order. A negative colour: in no communicator.
  [[nodiscard]] static communicator split(MPI_Comm of, int colour) {
    MPI_Comm made = MPI_COMM_NULL;
    check(PMPI_Comm_split(of, colour < 0 ? MPI_UNDEFINED : colour, 0, &made), "MPI_Comm_split");
    return communicator(made);
  }
  /// The ranks of `of` that can share memory with the caller.
  [[nodiscard]] static communicator of_machine(MPI_Comm of) {
    MPI_Comm made = MPI_COMM_NULL;
    check(PMPI_Comm_split_type(of, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &made),
          "MPI_Comm_split_type");
    return communicator(made);
  }

  [[nodiscard]] MPI_Comm get() const { return handle_; }
  [[nodiscard]] explicit operator bool() const { return handle_ != MPI_COMM_NULL; }
  [[nodiscard]] int rank() const {
    int r = 0;
    PMPI_Comm_rank(handle_, &r);
    return r;
  }
  [[nodiscard]] int size() const {
    int n = 0;
    PMPI_Comm_size(handle_, &n);
    return n;
  }

 private:
  MPI_Comm handle_ = MPI_COMM_NULL;
  bool is_borrowed_ = false;
};

// Collectives that yield.

/// Serves other ranks until all have come.
inline void meet(const communicator& all) {
  MPI_Request request = MPI_REQUEST_NULL;
  check(PMPI_Ibarrier(all.get(), &request), "MPI_Ibarrier");
  finish(request, "MPI_Ibarrier");
}

/// Combines `count` values of every rank in place.
inline void combine(const communicator& all, void* values, int count, MPI_Datatype type,
                    MPI_Op op) {
  MPI_Request request = MPI_REQUEST_NULL;
  check(PMPI_Iallreduce(MPI_IN_PLACE, values, count, type, op, all.get(), &request),
        "MPI_Iallreduce");
  finish(request, "MPI_Iallreduce");
}

/// Broadcasts the values of rank 0, or of `from`.
inline void broadcast(const communicator& all, void* values, int count, MPI_Datatype type,
                      int from = 0) {
  MPI_Request request = MPI_REQUEST_NULL;
  check(PMPI_Ibcast(values, count, type, from, all.get(), &request), "MPI_Ibcast");
  finish(request, "MPI_Ibcast");
}

/// Gathers a value of every rank, by rank.
inline void gather(const communicator& all, const void* mine, void* values, MPI_Datatype type) {
  MPI_Request request = MPI_REQUEST_NULL;
  check(PMPI_Iallgather(mine, 1, type, values, 1, type, all.get(), &request), "MPI_Iallgather");
  finish(request, "MPI_Iallgather");
}

/// A text of every rank, by rank.
[[nodiscard]] inline std::vector<std::string> gather(const communicator& all,
                                                     const std::string& mine) {
  const auto length = static_cast<int>(mine.size());
  std::vector<int> lengths(static_cast<std::size_t>(all.size()));
  gather(all, &length, lengths.data(), MPI_INT);
  std::vector<int> begins(lengths.size());
  std::exclusive_scan(lengths.begin(), lengths.end(), begins.begin(), 0);
  std::string texts(static_cast<std::size_t>(begins.back() + lengths.back()), '\0');
  MPI_Request request = MPI_REQUEST_NULL;
  check(PMPI_Iallgatherv(mine.data(), length, MPI_CHAR, texts.data(), lengths.data(), begins.data(),
                         MPI_CHAR, all.get(), &request),
        "MPI_Iallgatherv");
  finish(request, "MPI_Iallgatherv");
  std::vector<std::string> of_rank;
  for (std::size_t r = 0; r < lengths.size(); ++r)
    of_rank.push_back(
        texts.substr(static_cast<std::size_t>(begins[r]), static_cast<std::size_t>(lengths[r])));
  return of_rank;
}

/// For each rank of `all` the lowest one with which it can share memory.
[[nodiscard]] inline std::vector<int> first_of_machine(const communicator& all) {
  int first = all.rank();
  broadcast(communicator::of_machine(all.get()), &first, 1, MPI_INT);
  std::vector<int> firsts(static_cast<std::size_t>(all.size()));
  gather(all, &first, firsts.data(), MPI_INT);
  return firsts;
}

[[nodiscard]] inline bool holds_on_all(const communicator& all, bool holds) {
  int together = holds ? 1 : 0;
  combine(all, &together, 1, MPI_INT, MPI_MIN);
  return together != 0;
}

/// Agrees about a step that may fail on one rank alone while the others would wait in the next
/// collective call. Each rank passes why it failed, or nothing if all is well. If a rank has
/// failed, all throw an Error with the words of the lowest such rank.
template <class Error = unavailable>
void agree(const communicator& all, const std::string& why) {
  int first = why.empty() ? all.size() : all.rank();
  combine(all, &first, 1, MPI_INT, MPI_MIN);
  if (first == all.size()) return;
  std::array<char, 512> text{};
  why.copy(text.data(), text.size() - 1);
  broadcast(all, text.data(), static_cast<int>(text.size()), MPI_CHAR, first);
  // Rank 0 is not named: it is the lowest rank also when all have failed.
  throw Error(text.data() + (first > 0 ? " (on rank " + std::to_string(first) + ")" : ""));
}

/// Owns a window.
class window {
 public:
  window() = default;
  explicit window(MPI_Win handle) : handle_(handle) {
    PMPI_Win_set_errhandler(handle_, MPI_ERRORS_RETURN);
  }
  window(window&& o) noexcept : handle_(std::exchange(o.handle_, MPI_WIN_NULL)) {}
  window& operator=(window&& o) noexcept {
    std::swap(handle_, o.handle_);
    return *this;
  }
  /// Collective.
  ~window() {
    if (handle_ != MPI_WIN_NULL) PMPI_Win_free(&handle_);
  }
  /// Drops the window without freeing it: if not all of its ranks have it, freeing would wait for
  /// ever.
  void leave() { handle_ = MPI_WIN_NULL; }

  [[nodiscard]] MPI_Win get() const { return handle_; }
  [[nodiscard]] explicit operator bool() const { return handle_ != MPI_WIN_NULL; }

 private:
  MPI_Win handle_ = MPI_WIN_NULL;
};

/// Owns an info object.
class info {
 public:
  info() { check(PMPI_Info_create(&handle_), "MPI_Info_create"); }
  info(const info&) = delete;
  info& operator=(const info&) = delete;
  ~info() { PMPI_Info_free(&handle_); }

  info& set(const char* key, const char* value) {
    check(PMPI_Info_set(handle_, key, value), "MPI_Info_set");
    return *this;
  }
  [[nodiscard]] MPI_Info get() const { return handle_; }

 private:
  MPI_Info handle_ = MPI_INFO_NULL;
};

}  // namespace lockflight::mpi::detail
