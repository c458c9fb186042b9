// What ranks send each other: a message of the contract, or an operation and its answer.
#pragma once

#include <cstdint>

#include "fabric/wired/transport.hpp"
#include "lockflight/fabric/networked.hpp"

namespace lockflight::libfabric::detail {

enum class packet_kind : std::uint32_t { message, operation, answer };

/// An operation on a cell of the receiver.
struct request {
  enum class what : std::uint32_t { put, get, add, swap, compare_swap };

  what is = what::get;
  std::uint32_t index = 0;  ///< of the cell
  rma::word value = 0;      ///< what it puts, adds or swaps in
  rma::word expected = 0;   ///< by compare_swap
};

/// 48 bytes: every provider takes as many at once.
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
static_assert(sizeof(packet) <= 64);

}  // namespace lockflight::libfabric::detail
