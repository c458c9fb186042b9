// What locks have in common whose home serves them: clients send requests and wait for replies, and
// the home, which may be a client as well, serves whenever it waits, in a lock or in anything else
// (C37). It does not while it computes, nor when it has left. So the home stays, in a barrier for
// instance, until everybody else is done with the lock; a home that does nothing else is a
// dedicated server. The home's first handle of a lock is its server and is the last to go.
#pragma once

#include <array>
#include <cstdint>
#include <memory_resource>
#include <utility>
#include <vector>

#include "lockflight/rma/assert.hpp"
#include "lockflight/rma/participant.hpp"

namespace lockflight::lock {

/// A cell that nobody touches: where it is, is what the lock is called.
struct served_cells {
  rma::plain_cell name;

  template <class Parameters>
  [[nodiscard]] static served_cells place(rma::layout& in, const rma::topology&, const Parameters&,
                                          rma::rank_t home) {
    return {in.take<rma::plain_cell>(1).at(home)};
  }
};

/// What a server says. `done`: the request was all that there was to do.
enum class reply : rma::word { granted, refused, released, done };

/// A participant's side: asks the server one thing at a time.
template <rma::messaging_port Port>
class client {
 public:
  client(rma::participant<Port>& me, const served_cells& where)
      : port_(me.port()),
        mail_(me.mail()),
        home_(where.name.home),
        name_(rma::to_word(where.name)) {}

  /// Two messages. A client is told of no more than it asked, so the next reply is the answer.
  template <class Request>
  [[nodiscard]] reply ask(Request what) {
    tell(what);
    return answer();
  }

  /// Whether the answer to what was told is there; else a request may be told to take it back.
  [[nodiscard]] bool is_answered() { return mail_.has_reply(); }
  [[nodiscard]] reply answer() { return static_cast<reply>(mail_.await_reply().body[1]); }

  /// The same for a request about the home's cell at `index`: what the server says to it.
  template <class Request>
  [[nodiscard]] rma::word ask_about(std::uint32_t index, Request what, rma::word value) {
    tell(what, index, value);
    return mail_.await_reply().body[2];
  }

  /// One message. What this participant has posted and flushed is complete at its targets before
  /// the request is served (C29).
  template <class Request>
  void tell(Request what, std::uint32_t index = 0, rma::word value = 0) {
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

  /// One message.
  void answer(rma::rank_t client, reply what, rma::word value = 0) {
    port_.send(client, body_of(what, value));
  }
  /// Of a client that is lost: whether it has not received this answer (C39).
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

/// Who waits, in the order of arrival. There is room for each client once: it waits for one lock at
/// a time. The memory is the server's own.
template <class Waiter>
class waiting_line {
 public:
  waiting_line(int clients, std::pmr::memory_resource* memory)
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
    // Empty lines are all alike, so that a search knows them again.
    if (--count_ == 0) first_ = 0;
    return w;
  }
  /// Takes out the first `w`; false if there is none.
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
