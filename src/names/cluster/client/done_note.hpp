// The note of a name in a cluster's domain: until when its work is done (named_handle::done_until),
// or how many units a semaphore has. It has to survive all hosts, so the agent of this host keeps
// it in etcd.
//
// Each call asks the agent again until etcd has answered, or the time is over. A call throws
// domain_error (system) if etcd refuses, or if a later holder has written the note, and
// (interrupted) if the caller interrupts the wait.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "names/file/file.hpp"
#include "names/life/time_limit.hpp"

namespace lockflight::detail {

class done_note {
 public:
  done_note(const domain_file& file, const std::string& name) : file_(file), name_(name) {}

  /// Reads the note. Nothing if there was no answer in time.
  [[nodiscard]] std::optional<std::uint64_t> read(const time_limit& until);
  /// Writes the note for the holder with that token: a holder that was lost cannot write over the
  /// note of a later one. False if there was no answer in time: the note may be written all the
  /// same.
  [[nodiscard]] bool write(std::uint64_t number, std::uint64_t token, const time_limit& until);

  /// Writes the units of a semaphore, whoever holds it, and tells the agents of all hosts
  /// (domain::set_units). False if there was no answer in time: they may be written all the same.
  [[nodiscard]] bool set_units(std::uint64_t bits, const time_limit& until);

  /// The reason why the last call waits, or gave up: "etcd has not answered yet". Empty if that
  /// call has got its answer.
  [[nodiscard]] const std::string& obstacle() const { return obstacle_; }

 private:
  [[nodiscard]] std::optional<std::uint64_t> ask(const std::vector<std::string>& question,
                                                 const char* action, const time_limit& until);

  const domain_file& file_;
  const std::string& name_;
  std::string obstacle_;
};

}  // namespace lockflight::detail
