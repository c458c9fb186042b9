// dlm-server's clients that come and go, as one lock: a handle for each round, which is dropped
// while it holds. A client that only tries waits in the queue for a poll or two and leaves it.
#pragma once

#include <optional>

#include "lockflight/lock/about.hpp"
#include "lockflight/lock/dlm_server.hpp"

namespace lockflight::lock {

template <rma::messaging_port Port>
class server_guest {
 public:
  static constexpr facts about{.name = "guest",
                               .what = kind::mutex,
                               .source = "tests/lab/check/server_guest.hpp",
                               .bytes_home = 0,
                               .bytes_per_node = 0,
                               .bytes_per_participant = 0,
                               .needs_messages = true};
  using parameters = dlm_server_parameters;
  using cells = served_cells;

  server_guest(rma::participant<Port>& me, const cells& where, const parameters& = {})
      : me_(me), where_(where), server_(me, where) {}

  void lock() { guest_.emplace(me_, where_).lock(); }
  void unlock() { guest_.reset(); }
  [[nodiscard]] bool try_lock() {
    if (guest_.emplace(me_, where_).try_lock_within(1)) return true;
    guest_.reset();
    return false;
  }

 private:
  rma::participant<Port>& me_;
  cells where_;
  dlm_server<Port> server_;  // the home's stays
  std::optional<dlm_server<Port>> guest_;
};

/// One handle; a client that only tries leaves the queue.
template <rma::messaging_port Port>
class impatient : public dlm_server<Port> {
 public:
  using dlm_server<Port>::dlm_server;
  [[nodiscard]] bool try_lock() { return this->try_lock_within(1); }
};

}  // namespace lockflight::lock
