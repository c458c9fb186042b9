// The note of a name in a cluster's domain: until when its work is done (named_handle::done_until),
// or how many units a semaphore has. It has to survive all hosts, so the agent of this host keeps
// it in etcd.
//
// Each call asks the agent again until etcd has answered, or the time is over. It throws
// domain_error (system) if etcd refuses or a later holder has written the note, and (interrupted).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "domain/membership/time_limit.hpp"
#include "domain/store/file.hpp"

namespace lockflight::detail {

class done_note {
 public:
  done_note(const domain_file& file, const std::string& name) : file_(file), name_(name) {}

  /// Nothing if there was no answer in time.
  [[nodiscard]] std::optional<std::uint64_t> read(const time_limit& until);
  /// For the holder with that token, so that a holder that was lost does not write over what a
  /// later one has. False if there was no answer in time: the note may be written all the same.
  [[nodiscard]] bool write(std::uint64_t number, std::uint64_t token, const time_limit& until);

  /// The reason for which the last call has waited, or waits: "etcd has not answered yet". Empty if
  /// it has its answer.
  [[nodiscard]] const std::string& obstacle() const { return obstacle_; }

 private:
  [[nodiscard]] std::optional<std::uint64_t> ask(const std::vector<std::string>& question,
                                                 const char* action, const time_limit& until);

  const domain_file& file_;
  const std::string& name_;
  std::string obstacle_;
};

}  // namespace lockflight::detail
