// dlm-server: the lock's home serves its requests, first come, first served.
//
// Source: "Distributed Queue-based Locking using Advanced Network Features" (DLM paper),
// section 2.3 and Figure 1, called Basecase there.
//
// The server is the home rank, which may be a client as well: "each node plays the role of server
// and client" (section 5.5). It serves whenever it waits, in this lock or in anything else (C37),
// and not while it computes; nor when it has left. So the home stays, in a barrier for instance,
// until everybody else is done with the lock; a home that does nothing else is a dedicated server.
// The home's first handle is the server and is the last to go.
//
// Order: first come, first served, by the order in which requests reach the server.
// Network operations: none. Messages: acquire 2, the request and the grant; release 2, the
// release and its acknowledgement (Table 3); an attempt 2; handoff 2, the release and the grant.
// The home sends itself the same.
#pragma once

#include <array>
#include <cstdint>
#include <memory_resource>
#include <optional>
#include <vector>

#include "lockflight/lock/about.hpp"
#include "lockflight/rma/participant.hpp"

namespace lockflight::lock {

struct dlm_server_parameters {
  [[nodiscard]] static constexpr std::array<parameter<dlm_server_parameters>, 0> all() {
    return {};
  }
};

template <rma::messaging_port Port>
class dlm_server {
  enum class request : rma::word { lock, attempt, unlock };
  enum class reply : rma::word { granted, refused, unlocked };

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

  /// A cell that nobody touches: where it is, is what the lock is called.
  struct cells {
    rma::plain_cell name;

    static cells place(rma::layout& in, const rma::topology&, const parameters&, rma::rank_t home) {
      return {in.take<rma::plain_cell>(1).at(home)};
    }
  };

  dlm_server(rma::participant<Port>& me, const cells& where, const parameters& = {})
      : port_(me.port()), mail_(me.mail()), home_(where.name.home), name_(to_word(where.name)) {
    if (me.rank() == home_) server_.emplace(me, name_);
  }

  void lock() { static_cast<void>(ask(request::lock)); }

  /// Takes the lock if nobody has it.
  [[nodiscard]] bool try_lock() { return ask(request::attempt) == reply::granted; }

  void unlock() { static_cast<void>(ask(request::unlock)); }

 private:
  /// What the home has besides: the queue.
  class server final : public rma::request_handler {
   public:
    server(rma::participant<Port>& me, rma::word name)
        : port_(me.port()),
          mail_(me.mail()),
          waiting_(static_cast<std::size_t>(me.machine().ranks()), me.memory()) {
      mail_.open(*this, name);
    }
    ~server() override { mail_.close(*this); }

    void serve(const rma::message& m) override {
      switch (static_cast<request>(m.body[1])) {
        case request::lock:
          held_ ? enqueue(m.from) : grant(m.from);
          break;
        case request::attempt:
          held_ ? answer(m.from, reply::refused) : grant(m.from);
          break;
        case request::unlock:
          release(m.from);
          break;
      }
    }

   private:
    void release(rma::rank_t client) {
      held_ = false;
      if (count_ > 0) grant(dequeue());
      answer(client, reply::unlocked);
    }
    void grant(rma::rank_t client) {
      held_ = true;
      answer(client, reply::granted);
    }
    void answer(rma::rank_t client, reply what) {
      port_.send(client, {rma::null_ref, static_cast<rma::word>(what), 0});
    }

    // A ring: a client waits at most once.
    void enqueue(rma::rank_t client) { waiting_[(first_ + count_++) % waiting_.size()] = client; }
    [[nodiscard]] rma::rank_t dequeue() {
      const rma::rank_t client = waiting_[first_];
      first_ = (first_ + 1) % waiting_.size();
      --count_;
      return client;
    }

    Port& port_;
    rma::mailroom<Port>& mail_;
    bool held_ = false;
    std::pmr::vector<rma::rank_t> waiting_;
    std::size_t first_ = 0;
    std::size_t count_ = 0;
  };

  // What the holder has posted is complete at its targets before the release is sent; a client is
  // told of no more than it asked, so the next reply is the answer.
  [[nodiscard]] reply ask(request what) {
    port_.send(home_, {name_, static_cast<rma::word>(what), 0});
    return static_cast<reply>(mail_.await_reply().body[1]);
  }

  Port& port_;
  rma::mailroom<Port>& mail_;
  rma::rank_t home_;
  rma::word name_;
  std::optional<server> server_;
};

}  // namespace lockflight::lock
