// A TCP socket and the frames that the ranks of a rendezvous send each other.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "base/descriptor.hpp"

namespace lockflight::wireup {

/// Owns a socket that `socket` or `accept4` has returned.
using socket = descriptor;

/// A host that has not answered the kernel's questions for so long is gone.
constexpr int silence_s = 7;
/// The kernel asks an idle connection's other side whether it is there; what is sent goes out at
/// once.
void watch(const socket& of);
/// A receive that takes longer fails; 0: it never does.
void limit_receive(const socket& of, std::chrono::milliseconds most);

enum class frame_kind : std::uint32_t {
  hello,    ///< a rank's first words
  refusal,  ///< why the launch does not begin
  welcome,  ///< all have come
  part,     ///< a rank's part of an exchange
  whole,    ///< all parts of an exchange
  fault,    ///< why the launch cannot go on
  leave,    ///< the end of this rank is no loss
};

struct frame {
  frame_kind kind = frame_kind::hello;
  std::string content;
};

/// False if the other side is gone; errno is then 0 when it has closed the connection.
[[nodiscard]] bool send_frame(const socket& to, frame_kind kind, const std::string& content);
/// False also if what comes is no frame: errno is EPROTO then. `most` is how long it may be.
[[nodiscard]] bool receive_frame(const socket& from, frame& got, std::uint64_t most = UINT64_MAX);

/// The error of the connection that the kernel reports, an errno, or 0. The kernel reports each
/// error only once.
[[nodiscard]] int error_of(const socket& of);

/// True if the next frame is there and is a fault. False, too, if the connection has ended.
[[nodiscard]] bool has_fault(const socket& from);

}  // namespace lockflight::wireup
