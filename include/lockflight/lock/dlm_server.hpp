// dlm-server: the lock's home serves its requests, first come, first served.
//
// Source: "Distributed Queue-based Locking using Advanced Network Features" (DLM paper),
// section 2.3 and Figure 1, called Basecase there. The server is the home rank: "each node plays
// the role of server and client" (section 5.5); client_server.hpp says when it serves.
//
// Order: first come, first served, by the order in which requests reach the server.
// Network operations: none. Messages: acquire 2, the request and the grant; release 2, the
// release and its acknowledgement (Table 3); an attempt 2; handoff 2, the release and the grant.
// The home sends itself the same.
#pragma once

#include <array>
#include <optional>

#include "lockflight/lock/about.hpp"
#include "lockflight/lock/client_server.hpp"

namespace lockflight::lock {

struct dlm_server_parameters {
  [[nodiscard]] static constexpr std::array<parameter<dlm_server_parameters>, 0> all() {
    return {};
  }
};

template <rma::messaging_port Port>
class dlm_server {
  enum class request : rma::word { lock, attempt, unlock };

 public:
  static constexpr facts about{
      .name = "dlm-server",
      .what = kind::mutex,
      .source = "Basecase: Distributed Queue-based Locking, section 2.3",
      .bytes_home = 0,  // its queue is the server's own memory: 4 bytes for each rank
      .bytes_per_node = 0,
      .bytes_per_participant = 0,
      .needs_messages = true,
  };
  using parameters = dlm_server_parameters;
  using cells = served_cells;

  dlm_server(rma::participant<Port>& me, const cells& where, const parameters& = {})
      : server_(me, where) {
    if (me.rank() == where.name.home) queue_.emplace(me, where);
  }

  void lock() { static_cast<void>(server_.ask(request::lock)); }

  /// Takes the lock if nobody has it.
  [[nodiscard]] bool try_lock() { return server_.ask(request::attempt) == reply::granted; }

  void unlock() { static_cast<void>(server_.ask(request::unlock)); }

 private:
  /// What the home has besides: the queue.
  class queue final : public server<Port> {
   public:
    queue(rma::participant<Port>& me, const cells& where)
        : server<Port>(me, where), waiting_(me.machine().ranks(), me.memory()) {}

    void serve(const rma::message& m) override {
      switch (this->template request_of<request>(m)) {
        case request::lock:
          held_ ? waiting_.push(m.from) : grant(m.from);
          break;
        case request::attempt:
          held_ ? this->answer(m.from, reply::refused) : grant(m.from);
          break;
        case request::unlock:
          held_ = false;
          if (!waiting_.empty()) grant(waiting_.pop());
          this->answer(m.from, reply::released);
          break;
      }
    }

   private:
    void grant(rma::rank_t client) {
      held_ = true;
      this->answer(client, reply::granted);
    }

    bool held_ = false;
    waiting_line<rma::rank_t> waiting_;
  };

  client<Port> server_;
  std::optional<queue> queue_;
};

}  // namespace lockflight::lock
