// dlm-server: the lock's home serves requests for it, first come, first served.
//
// Source: "Distributed Queue-based Locking using Advanced Network Features" (DLM paper), section
// 2.3 and Figure 1, called Basecase there. The server is the home rank: "each node plays the role
// of server and client" (section 5.5). part/client_server.hpp says when it serves.
//
// A client joins by making a handle and leaves by dropping it. If it drops the handle while it
// holds the lock, the lock is released. A waiter whose time is over leaves the queue
// (try_lock_within).
//
// Lost ranks (C39): a client that is lost while it waits is skipped when it is the next. So is a
// client that was granted the lock and has not received the grant. A client that is lost while it
// holds the lock ends the run, since the state of the guarded data is unknown then.
//
// Invariant: at most one client has been granted the lock and has not released it.
//
// Order: first come, first served, by the order in which requests reach the server.
//
// Cost in messages (Table 3); network operations: none. The home sends itself the same messages:
// | acquire                  | 2, the request and the grant                                |
// | release                  | 2, the release and its acknowledgement                      |
// | handoff                  | 2, the release and the grant                                |
// | attempt                  | 2                                                           |
// | try_lock_within, in vain | 2 more than an attempt and a request, for leaving the queue |
#pragma once

#include <array>
#include <optional>

#include "lockflight/lock/about.hpp"
#include "lockflight/lock/part/client_server.hpp"
#include "lockflight/rma/assert.hpp"

namespace lockflight::lock {

struct dlm_server_parameters {
  [[nodiscard]] static constexpr std::array<parameter<dlm_server_parameters>, 0> all() {
    return {};
  }
};

template <rma::messaging_port Port>
class dlm_server {
  enum class request : rma::word {
    lock,
    attempt,
    withdraw,  ///< from the queue; a client that is not in it has been granted the lock
    unlock,
    leave,  ///< as unlock, but without a reply
  };

 public:
  static constexpr facts about{
      .name = "dlm-server",
      .what = kind::mutex,
      .source = "Basecase: Distributed Queue-based Locking, section 2.3",
      .bytes_home = 0,  // its queue is the server's own memory: 4 bytes for each rank
      .bytes_per_node = 0,
      .bytes_per_participant = 0,
      .needs_messages = true,
      .bears_lost_waiters = true,
  };
  using parameters = dlm_server_parameters;
  using cells = served_cells;

  dlm_server(rma::participant<Port>& me, const cells& where, const parameters& = {})
      : port_(me.port()), server_(me, where) {
    if (me.rank() == where.name.home) queue_.emplace(me, where);
  }

  dlm_server(const dlm_server&) = delete;
  dlm_server& operator=(const dlm_server&) = delete;
  /// Waits for no reply, so that a handle can be dropped while an exception propagates. This
  /// participant's next request is served after it (C29).
  ~dlm_server() {
    if (held_) server_.send(request::leave);
  }

  void lock() {
    static_cast<void>(server_.ask(request::lock));
    held_ = true;
  }

  /// Takes the lock if it is free.
  [[nodiscard]] bool try_lock() {
    const bool got = server_.ask(request::attempt) == reply::granted;
    held_ = held_ || got;  // the holder's own attempt fails and takes nothing away
    return got;
  }

  /// Takes the lock, unless that takes longer than the given time; leaves the queue then.
  [[nodiscard]] bool try_lock_within(std::uint64_t nanoseconds) {
    // After the attempt's reply no message of ours is under way: there is room for the request and
    // for its withdrawal (C28).
    if (try_lock()) return true;
    if (nanoseconds == 0) return false;
    const rma::deadline until = port_.deadline_in(nanoseconds);
    server_.send(request::lock);
    for (rma::backoff b(200, 20'000); !server_.is_answered() && !port_.is_over(until);)
      port_.pause(b.next());
    const bool in_time = server_.is_answered();
    if (!in_time) server_.send(request::withdraw);
    const bool got = server_.answer() == reply::granted;
    held_ = held_ || got;
    // The grant was on its way: the reply to the withdrawal comes after it.
    if (got && !in_time) static_cast<void>(server_.answer());
    return got;
  }

  void unlock() {
    rma::ensure(held_, "only the holder releases");
    held_ = false;
    static_cast<void>(server_.ask(request::unlock));
  }

 private:
  /// The home's side: the queue.
  class queue final : public server<Port> {
   public:
    queue(rma::participant<Port>& me, const cells& where)
        : server<Port>(me, where),
          name_(rma::to_word(where.name)),
          waiting_(me.machine().ranks(), me.memory()) {
      this->open();
    }

    void serve(const rma::message& m) override {
      switch (this->template request_of<request>(m)) {
        case request::lock:
          is_held() ? waiting_.push(m.from) : grant(m.from);
          break;
        case request::attempt:
          is_held() ? this->answer(m.from, reply::refused) : grant(m.from);
          break;
        case request::withdraw:
          this->answer(m.from, waiting_.remove(m.from) ? reply::refused : reply::done);
          break;
        case request::unlock:
          release();
          this->answer(m.from, reply::released);
          break;
        case request::leave:
          release();
          break;
      }
    }

    void lost(rma::rank_t client) override {
      if (client != holder_) return;
      if (!this->never_received(client, reply::granted, name_))
        throw rma::rank_needed(client, "was lost while it held the lock dlm-server");
      release();
    }

   private:
    [[nodiscard]] bool is_held() const { return holder_ != nobody; }

    // The grant names the lock: a client's last grant may be that of another lock.
    void grant(rma::rank_t client) {
      if (rma::is_lost(this->port(), client)) return;
      holder_ = client;
      this->answer(client, reply::granted, name_);
    }

    void release() {
      rma::ensure(is_held(), "what is released is held");
      holder_ = nobody;
      while (!is_held() && !waiting_.empty()) grant(waiting_.pop());
    }

    static constexpr rma::rank_t nobody = -1;
    rma::word name_;
    rma::rank_t holder_ = nobody;
    waiting_queue<rma::rank_t> waiting_;
  };

  Port& port_;
  client<Port> server_;
  bool held_ = false;           // by this handle
  std::optional<queue> queue_;  // the home's
};

}  // namespace lockflight::lock
