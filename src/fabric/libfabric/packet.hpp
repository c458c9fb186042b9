// The packets that ranks send each other: a message of the contract, or an operation and its
// answer.
#pragma once

#include <cstdint>

#include "fabric/wired/transport.hpp"
#include "lockflight/fabric/networked.hpp"

namespace lockflight::libfabric::detail {

enum class packet_kind : std::uint32_t { message, operation, answer };

/// An operation on a cell.
struct request {
  fabric::remote_kind kind = fabric::remote_kind::get;
  bool compares = false;    ///< a swap, if the cell has the value `expected`
  std::uint32_t index = 0;  ///< of the cell
  rma::word value = 0;      ///< the value to put, add or swap in
  rma::word expected = 0;
};

/// Short enough for providers to take it at once, without a completion (fi_inject).
struct packet {
  packet_kind kind = packet_kind::message;
  std::int32_t from = 0;     ///< the sender's rank
  std::uint64_t waiter = 0;  ///< operation and answer: the sender's, for the one to find it
  union {
    wired::detail::envelope content;  ///< of a message
    request asks;                     ///< of an operation
    rma::word result;                 ///< of an answer
  };

  packet() : content{} {}
};
static_assert(sizeof(packet) == 56);

}  // namespace lockflight::libfabric::detail
