// The note of a name's work that is done (named_handle::done_until) in a cluster's domain. It has
// to survive all hosts, so the agent of this host keeps it in etcd. Each call is a question to the
// agent; it throws domain_error (system) if the agent does not answer.
#pragma once

#include <cstdint>
#include <string>

#include "domain/store/file.hpp"

namespace lockflight::detail {

[[nodiscard]] std::uint64_t done_note_of_cluster(const domain_file& file, const std::string& name);
/// Writes the note. Only the holder with that token may do so.
void note_done_in_cluster(const domain_file& file, const std::string& name, std::uint64_t seconds,
                          std::uint64_t token);

}  // namespace lockflight::detail
