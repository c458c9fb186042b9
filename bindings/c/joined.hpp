// Participants that join the ranks of a launch. The networks have one type of port, so these are
// compiled once.
#pragma once

#include <cstdint>
#include <memory>

#include "lockflight/fabric/networked.hpp"
#include "lockflight/lockflight.h"
#include "lockflight/profile.hpp"

namespace lockflight::capi {

/// A participant's part of its network: the launch, and a membership in it.
struct place {
  place() = default;
  place(const place&) = delete;
  place& operator=(const place&) = delete;
  virtual ~place() = default;
  [[nodiscard]] virtual fabric::networked_port& port() = 0;
};

/// A participant in that place, which ends after it. Collective.
[[nodiscard]] lockflight_participant* joined(std::unique_ptr<place> in,
                                             std::uint32_t words_per_rank, profile tuned);

}  // namespace lockflight::capi
