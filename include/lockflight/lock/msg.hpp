// msg: a reader-writer lock by messages, as MPIs without remote atomics make MPI_Win_lock. The home
// serves requests; part/client_server.hpp says when.
//
// Source: "MPI passive target synchronization on a non-cache-coherent many-core" (SCC paper),
// section 4.4: RCKMPI, and the CH3 device of MPICH that it comes from, configured to send a control
// message for each lock at once.
//
// Difference from the text: the paper's immediate variant deadlocked when shared and exclusive
// locks were mixed (section 6.3.2). Its authors suspected that responses were not sent in time
// because no process was processing messages. Here every waiter, for a lock or for anything else,
// serves requests (C37), and the checker finds no deadlock in any mix.
//
// Order: first come, first served, by the order in which requests reach the server; readers that
// are neighbours in it hold the lock together.
// Fairness: a waiter is not overtaken.
//
// Cost in messages; network operations: none. The home sends itself the same messages:
// | acquire     | 2, the request and the grant           |
// | release (*) | 2, the release and its acknowledgement |
// | handoff     | 2, the release and the grant           |
// | attempt     | 2                                      |
// (*) Without the acknowledgement a client could have more than two messages on the way (C28).
#pragma once

#include <array>
#include <optional>

#include "lockflight/lock/about.hpp"
#include "lockflight/lock/part/msg_queue.hpp"

namespace lockflight::lock {

struct msg_parameters {
  [[nodiscard]] static constexpr std::array<parameter<msg_parameters>, 0> all() { return {}; }
};

template <rma::messaging_port Port>
class msg {
 public:
  static constexpr facts about{
      .name = "msg",
      .what = kind::rw,
      .source = "CH3's passive target: Passive Target Synchronization on the SCC, section 4.4",
      .bytes_home = 0,  // its queue is the server's own memory: 24 bytes for each rank
      .bytes_per_node = 0,
      .bytes_per_participant = 0,
      .needs_messages = true,
  };
  using parameters = msg_parameters;
  using cells = served_cells;

  msg(rma::participant<Port>& me, const cells& where, const parameters& = {}) : server_(me, where) {
    if (me.rank() == where.name.home) queue_.emplace(me, where);
  }

  void lock() { static_cast<void>(server_.ask(msg_request::lock)); }
  void unlock() { static_cast<void>(server_.ask(msg_request::unlock)); }
  void lock_shared() { static_cast<void>(server_.ask(msg_request::lock_shared)); }
  void unlock_shared() { static_cast<void>(server_.ask(msg_request::unlock_shared)); }

  /// Takes the lock if it is free and no request waits.
  [[nodiscard]] bool try_lock() { return server_.ask(msg_request::attempt) == reply::granted; }
  [[nodiscard]] bool try_lock_shared() {
    return server_.ask(msg_request::attempt_shared) == reply::granted;
  }

 private:
  client<Port> server_;
  std::optional<msg_queue<Port>> queue_;  // the home's
};

}  // namespace lockflight::lock
