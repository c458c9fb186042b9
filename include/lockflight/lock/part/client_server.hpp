// The common part of the locks that are served by their home: clients send requests to the home and
// wait for replies. The home may be a client as well; it serves whenever it waits, in a lock or in
// anything else (C37).
//
// The home does not serve while it computes, nor after it has left. So the home stays, in a barrier
// for instance, until every participant is done with the lock. A home that does nothing else is a
// dedicated server. The home's first handle of a lock is its server and must be destroyed last.
//
// Invariants: a client waits for one reply at a time, so the next reply answers its last request. A
// handler's name is the cell that the lock placed, which no participant reads or writes.
//
// Cost in messages: a request 1, its reply 1. Network operations: none.
#pragma once

#include <array>
#include <cstdint>
#include <memory_resource>
#include <utility>
#include <vector>

#include "lockflight/rma/assert.hpp"
#include "lockflight/rma/participant.hpp"

namespace lockflight::lock {

/// A cell that is never read or written: its address is the name of the lock.
struct served_cells {
  rma::plain_cell name;

  template <class Parameters>
  [[nodiscard]] static served_cells place(rma::layout& in, const rma::topology&, const Parameters&,
                                          rma::rank_t home) {
    return {in.take<rma::plain_cell>(1).at(home)};
  }
};

/// A server's replies. `done`: the request was carried out, nothing is held.
enum class reply : rma::word { granted, refused, released, done };

/// A participant's side: it has at most one request under way.
template <rma::messaging_port Port>
class client {
 public:
  client(rma::participant<Port>& me, const served_cells& where)
      : port_(me.port()),
        mail_(me.mail()),
        home_(where.name.home),
        name_(rma::to_word(where.name)) {}

  /// Sends a request and waits for its reply. 2 messages.
  template <class Request>
  [[nodiscard]] reply ask(Request what) {
    send(what);
    return answer();
  }

  /// True if the reply to the request is there. If not, another request may be sent to withdraw
  /// the first.
  [[nodiscard]] bool is_answered() { return mail_.has_reply(); }
  [[nodiscard]] reply answer() { return static_cast<reply>(mail_.await_reply().body[1]); }

  /// The same for a request about the home's cell at `index`. Returns the value in the reply.
  template <class Request>
  [[nodiscard]] rma::word ask_about(std::uint32_t index, Request what, rma::word value) {
    send(what, index, value);
    return mail_.await_reply().body[2];
  }

  /// Sends a request. 1 message. What this participant has posted and flushed is complete at its
  /// targets before the request is served (C29).
  template <class Request>
  void send(Request what, std::uint32_t index = 0, rma::word value = 0) {
    port_.send(home_,
               {name_, static_cast<rma::word>(index) << 32 | static_cast<rma::word>(what), value});
  }

 private:
  Port& port_;
  rma::mailroom<Port>& mail_;
  rma::rank_t home_;
  rma::word name_;
};

/// The home's side. A lock derives from it, opens it when it can serve, at the end of its own
/// constructor, and serves.
template <rma::messaging_port Port>
class server : public rma::request_handler {
 public:
  server(rma::participant<Port>& me, const served_cells& where)
      : port_(me.port()), mail_(me.mail()), name_(rma::to_word(where.name)) {}
  ~server() override { mail_.close(*this); }

 protected:
  /// Requests that have come early are served here.
  void open() { mail_.open(*this, name_); }

  template <class Request>
  [[nodiscard]] static Request request_of(const rma::message& m) {
    return static_cast<Request>(m.body[1] & 0xffff'ffff);
  }
  [[nodiscard]] static std::uint32_t index_of(const rma::message& m) {
    return static_cast<std::uint32_t>(m.body[1] >> 32);
  }

  /// Sends a reply. 1 message.
  void answer(rma::rank_t client, reply what, rma::word value = 0) {
    port_.send(client, body_of(what, value));
  }
  /// Of a lost client: whether it has not received this reply (C39).
  [[nodiscard]] bool never_received(rma::rank_t client, reply what, rma::word value) const {
    if constexpr (rma::losing_port<Port>)
      return port_.never_received(client, body_of(what, value));
    else
      return false;
  }

  [[nodiscard]] Port& port() { return port_; }

 private:
  [[nodiscard]] static std::array<rma::word, 3> body_of(reply what, rma::word value) {
    return {rma::null_ref, static_cast<rma::word>(what), value};
  }

  Port& port_;
  rma::mailroom<Port>& mail_;
  rma::word name_;
};

/// The waiting clients in the order of arrival. It has room for each client once, since a client
/// waits for one lock at a time. The memory is the server's own.
template <class Waiter>
class waiting_queue {
 public:
  waiting_queue(int clients, std::pmr::memory_resource* memory)
      : ring_(static_cast<std::size_t>(clients), memory) {}

  [[nodiscard]] bool empty() const { return count_ == 0; }
  [[nodiscard]] const Waiter& front() const { return ring_[first_]; }
  void push(const Waiter& w) {
    rma::ensure(count_ < ring_.size(), "a client waits once");
    ring_[(first_ + count_++) % ring_.size()] = w;
  }
  Waiter pop() {
    rma::ensure(count_ > 0, "somebody waits");
    const Waiter w = std::exchange(ring_[first_], Waiter{});
    first_ = (first_ + 1) % ring_.size();
    // All empty queues are equal, so that the checker's search recognises the state.
    if (--count_ == 0) first_ = 0;
    return w;
  }
  /// Takes the first `w` out of the queue; false if there is none.
  bool remove(const Waiter& w) {
    bool found = false;
    for (std::size_t left = count_; left > 0; --left) {
      const Waiter next = pop();
      if (!found && next == w)
        found = true;
      else
        push(next);
    }
    return found;
  }

 private:
  std::pmr::vector<Waiter> ring_;
  std::size_t first_ = 0;
  std::size_t count_ = 0;
};

}  // namespace lockflight::lock
