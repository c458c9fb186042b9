// The locks of a window by the name of the lock that serves on its targets.
#pragma once

#include <memory>
#include <string>

#include "lockflight/fabric/mpi.hpp"

namespace lockflight::mpi_preload {

/// What serves where nobody says otherwise: the quickest that shares.
constexpr const char* default_scheme = "fompi-rw-backoff";

/// This process's locks on one window. Not thread-safe.
class scheme {
 public:
  virtual ~scheme() = default;

  virtual void lock(int target) = 0;
  virtual void unlock(int target) = 0;
  virtual void lock_shared(int target) = 0;
  virtual void unlock_shared(int target) = 0;
  virtual void lock_all() = 0;
  virtual void unlock_all() = 0;
};

[[nodiscard]] bool is_scheme(const std::string& name);
/// "spin, spin-backoff, …", for messages.
[[nodiscard]] std::string all_schemes();

/// How many words each rank's segment needs for a window on this machine.
[[nodiscard]] std::uint32_t words_of(const std::string& name, const rma::topology& machine);

/// Collective in the sense of the contract (C20): every rank makes the same.
[[nodiscard]] std::unique_ptr<scheme> make_scheme(const std::string& name,
                                                  rma::participant<mpi::port>& me);

}  // namespace lockflight::mpi_preload
