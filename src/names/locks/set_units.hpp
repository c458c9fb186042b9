// The units that an operator has set for a semaphore of a cluster (domain::set_units), in the
// domain file of each host: a copy of the note in etcd, which the host's agent keeps.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "names/file/file.hpp"

namespace lockflight::detail {

/// True if the name is that of a semaphore of the file.
[[nodiscard]] bool is_semaphore_of(const domain_file& file, const std::string& name);
/// The names of all semaphores of the file.
[[nodiscard]] std::vector<std::string> semaphores_in(const domain_file& file);
/// Called by the agent, which alone forgets names: stores the units of the note, and wakes the head
/// of the queue if they are others. A note that no operator has written takes them away.
void learn_units(const domain_file& file, const std::string& name, std::uint64_t note);

}  // namespace lockflight::detail
