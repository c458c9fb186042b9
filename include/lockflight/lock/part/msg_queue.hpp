// The server of msg and msg-deferred: it knows the holders of the lock and the queue of the
// waiters.
//
// Source: "MPI passive target synchronization on a non-cache-coherent many-core" (SCC paper),
// section 4.4. MPICH's CH3 lets readers join readers although a writer waits, so that writers may
// starve; this server does not.
//
// Invariant: no request is granted while an older one waits.
//
// Order: first come, first served; readers that are neighbours in the queue hold the lock together.
//
// Cost in messages: part/client_server.hpp. Network operations: none.
#pragma once

#include <cstdint>

#include "lockflight/lock/part/client_server.hpp"
#include "lockflight/rma/assert.hpp"

namespace lockflight::lock {

enum class msg_request : rma::word {
  lock,
  lock_shared,
  put,  ///< a whole epoch: an exclusive lock, a put, the release
  get,  ///< a whole epoch: a shared lock, a get, the release
  attempt,
  attempt_shared,
  unlock,
  unlock_shared,
};

template <rma::messaging_port Port>
class msg_queue final : public server<Port> {
 public:
  msg_queue(rma::participant<Port>& me, const served_cells& where)
      : server<Port>(me, where), waiting_(me.machine().ranks(), me.memory()) {
    this->open();
  }

  void serve(const rma::message& m) override {
    const waiter w{m.from, this->index_of(m), this->template request_of<msg_request>(m), m.body[2]};
    switch (w.what) {
      case msg_request::attempt:
      case msg_request::attempt_shared:
        attempt(w);
        break;
      case msg_request::unlock:
        rma::ensure(written_, "a writer that releases holds");
        written_ = false;
        serve_the_queue();
        this->answer(w.client, reply::released);
        break;
      case msg_request::unlock_shared:
        rma::ensure(readers_ > 0, "a reader that releases holds");
        --readers_;
        serve_the_queue();
        this->answer(w.client, reply::released);
        break;
      default:
        waiting_.push(w);
        serve_the_queue();
    }
  }

 private:
  struct waiter {
    rma::rank_t client;
    std::uint32_t index;  // of the cell
    msg_request what;
    rma::word value;

    [[nodiscard]] bool shares() const {
      return what == msg_request::lock_shared || what == msg_request::attempt_shared ||
             what == msg_request::get;
    }
  };

  [[nodiscard]] bool may_have(const waiter& w) const {
    return !written_ && (w.shares() || readers_ == 0);
  }

  void serve_the_queue() {
    while (!waiting_.empty() && may_have(waiting_.front())) grant(waiting_.pop());
  }

  // An attempt does not overtake waiters.
  void attempt(const waiter& w) {
    if (waiting_.empty() && may_have(w))
      grant(w);
    else
      this->answer(w.client, reply::refused);
  }

  void grant(const waiter& w) {
    const rma::plain_cell cell{this->port().rank(), w.index};
    switch (w.what) {
      case msg_request::put:
        // The store is visible to every participant before the reply arrives (C12).
        this->port().store(cell, w.value);
        return this->answer(w.client, reply::done);
      case msg_request::get:
        return this->answer(w.client, reply::done, this->port().load(cell));
      default:
        if (w.shares())
          ++readers_;
        else
          written_ = true;
        this->answer(w.client, reply::granted);
    }
  }

  bool written_ = false;  // a writer holds the lock
  int readers_ = 0;       // readers that hold the lock
  waiting_queue<waiter> waiting_;
};

}  // namespace lockflight::lock
