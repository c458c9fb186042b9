// The request by which a client asks the agent of its host for a name: a datagram with the name, to
// a socket beside the domain file. So the agent waits for its clients and for its network in one
// place, and a client needs no library.
#pragma once

#include <string>
#include <string_view>

#include "base/descriptor.hpp"
#include "names/file/file.hpp"

namespace lockflight::detail {

/// The path of the socket of a domain's agent.
[[nodiscard]] std::string bell_path_of(const domain_file& file);

/// Rings for that name. An agent that does not run reads all names when it starts. If the agent
/// does not read its socket, a mark tells it to read all names when it does.
void ring_agent(const domain_file& file, std::string_view name);

/// The agent's end: bound to the path, with the mode and the group of the domain. It does not
/// block. Throws domain_error (invalid) if the path is too long, (system).
[[nodiscard]] descriptor make_bell(const domain_file& file);

}  // namespace lockflight::detail
