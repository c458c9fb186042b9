// The note in etcd of a domain's time to live (TTL), which all agents of the domain have.
#pragma once

#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>

#include "names/agent/etcd/client.hpp"

namespace lockflight::cluster {

constexpr std::chrono::milliseconds least_ttl{1'000}, usual_ttl{10'000}, most_ttl{300'000};

/// The name of the note, which has the TTL in milliseconds.
constexpr const char* ttl_note = "ttl";

/// The TTL that the note says; nothing if there is no note. Throws std::runtime_error if the note
/// has no number from least_ttl to most_ttl.
[[nodiscard]] std::optional<std::chrono::milliseconds> ttl_in(const std::optional<etcd_note>& note,
                                                              const std::string& domain);

}  // namespace lockflight::cluster
