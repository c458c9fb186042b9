// The notes of a name in a cluster's domain, which have to survive all hosts, so that the agent of
// this host keeps them in etcd: until when the work of the name is done (named_handle::done_until),
// or how many units a semaphore has; and the value that a holder has published.
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
#include "names/file/stored_value.hpp"
#include "names/life/time_limit.hpp"

namespace lockflight::detail {

class name_notes {
 public:
  name_notes(const domain_file& file, const std::string& name) : file_(file), name_(name) {}

  /// Reads until when the work is done. Nothing if there was no answer in time.
  [[nodiscard]] std::optional<std::uint64_t> done_until(const time_limit& until);
  /// Writes that for the holder with that token: a holder that was lost cannot write over the note
  /// of a later one. False if there was no answer in time: the note may be written all the same.
  [[nodiscard]] bool set_done_until(std::uint64_t number, std::uint64_t token,
                                    const time_limit& until);
  /// Writes the units of a semaphore, with or without a hold of it, for the agents of all hosts
  /// (domain::set_units). False if there was no answer in time: they may be written all the same.
  [[nodiscard]] bool set_units(std::uint64_t bits, const time_limit& until);
  /// The value. Nothing if there was no answer in time.
  [[nodiscard]] std::optional<stored_value> value(const time_limit& until);
  /// Publishes the value for the holder with its token, or withdraws the one that is there. As
  /// set_done_until().
  [[nodiscard]] bool publish(const stored_value& what, bool is_withdrawn, const time_limit& until);
  /// From now on the agent keeps the value in this host's domain file as well. False if there was
  /// no answer in time.
  [[nodiscard]] bool observe(const time_limit& until);

  /// The reason why the last call waits, or gave up: "etcd has not answered yet". Empty if that
  /// call has got its answer.
  [[nodiscard]] const std::string& obstacle() const { return obstacle_; }

 private:
  using fields = std::vector<std::string>;

  /// The last line of the answer, which has at least so many fields. Nothing if there was none in
  /// time.
  [[nodiscard]] std::optional<fields> ask(const fields& question, const char* action,
                                          std::size_t least_fields, const time_limit& until);
  [[nodiscard]] std::optional<std::uint64_t> ask_done(const fields& question, const char* action,
                                                      const time_limit& until);

  const domain_file& file_;
  const std::string& name_;
  std::string obstacle_;
};

}  // namespace lockflight::detail
