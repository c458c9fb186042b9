// The ranks of a launch come together at a port of rank 0.
#pragma once

#include <memory>

#include "wireup/group.hpp"
#include "wireup/socket.hpp"
#include "wireup/variables.hpp"

namespace lockflight::wireup {

/// Rank 0 listens there; the others connect. Throws launch_failed.
[[nodiscard]] std::unique_ptr<group> meet(const rendezvous& at);

/// The same; rank 0 listens already.
[[nodiscard]] std::unique_ptr<group> meet(const rendezvous& at, socket listener);

}  // namespace lockflight::wireup
