// A message as bytes, and back.
//
// The bytes are one flat CBOR array: the kind, from, to, epoch, name, then the fields of the body.
// The bytes come from another agent, so the reader takes nothing on trust: bytes that are not
// exactly what encode() makes give no message.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "names/cluster/core/message.hpp"

namespace lockflight::cluster {

/// Appends the message's bytes.
void encode(const message& what, std::string& to);
[[nodiscard]] std::optional<message> decode(std::span<const std::uint8_t> bytes);

}  // namespace lockflight::cluster
