// A participant's mailroom: it sorts the messages that the participant receives. A request goes to
// the handler that serves its subject here, a reply to the call that waits for it.
//
// The first word of a request names its subject, that of a reply is 0. A participant waits for one
// reply at a time, so replies need no name. A participant that waits, for a reply or for anything
// else, serves requests meanwhile (C37).
//
// Cost: no operation beyond the messages.
#pragma once

#include <memory_resource>
#include <optional>
#include <utility>
#include <vector>

#include "lockflight/rma/assert.hpp"
#include "lockflight/rma/port.hpp"

namespace lockflight::rma {

/// Serves the requests about one subject, for as long as it is in the mailroom.
class request_handler {
 public:
  request_handler() = default;
  request_handler(const request_handler&) = delete;
  request_handler& operator=(const request_handler&) = delete;
  virtual ~request_handler() = default;

  virtual void serve(const message& request) = 0;
  /// A rank is lost; all its requests have been served (C39).
  virtual void lost(rank_t) {}

 private:
  template <messaging_port Port>
  friend class mailroom;
  word name_ = null_ref;
  request_handler* next_ = nullptr;
};

/// Sorts a participant's messages.
template <messaging_port Port>
class mailroom final : private message_handler {
 public:
  mailroom(Port& p, std::pmr::memory_resource* memory) : port_(p), early_(memory) {}
  mailroom(const mailroom&) = delete;
  mailroom& operator=(const mailroom&) = delete;
  ~mailroom() {
    if (first_ != nullptr) port_.serve_with(nullptr);
  }

  /// From here on `handler` serves the requests about `name`, those that have come early included,
  /// which it serves before this returns: a constructor calls this last. Of several handlers of one
  /// name the first serves. A handler is open once.
  void open(request_handler& handler, word name) {
    ensure(name != null_ref, "a request has a name, or it would be a reply");
    request_handler** const last = end_or(handler);
    ensure(*last == nullptr, "a request handler is open once");
    *last = &handler;
    handler.name_ = name;
    handler.next_ = nullptr;
    port_.serve_with(this);
    std::pmr::vector<message> waiting(early_.get_allocator());
    waiting.swap(early_);
    for (const message& m : waiting) serve(m);
  }

  /// From here on `handler` serves nothing; requests about its name wait for the next one. Does
  /// nothing if it is not open, so that a destructor need not know whether it was opened.
  void close(request_handler& handler) {
    request_handler** const at = end_or(handler);
    if (*at == nullptr) return;
    *at = handler.next_;
    if (first_ == nullptr) port_.serve_with(nullptr);
  }

  /// Waits for the next reply.
  [[nodiscard]] message await_reply() {
    while (!reply_) handle(port_.receive());
    return *std::exchange(reply_, std::nullopt);
  }

  /// True if the next reply is there, so that await_reply does not wait. Serves the requests that
  /// are there.
  [[nodiscard]] bool has_reply() {
    for (message m; !reply_ && port_.try_receive(m);) handle(m);
    return reply_.has_value();
  }

 private:
  void handle(const message& m) override {
    if (m.body[0] == null_ref)
      reply_ = m;
    else
      serve(m);
  }
  void lost(rank_t rank) override {
    for (request_handler* h = first_; h != nullptr; h = h->next_) h->lost(rank);
  }
  void serve(const message& request) {
    for (request_handler* h = first_; h != nullptr; h = h->next_)
      if (h->name_ == request.body[0]) return h->serve(request);
    early_.push_back(request);
  }

  /// The place of this handler in the list, or the list's end.
  [[nodiscard]] request_handler** end_or(const request_handler& handler) {
    request_handler** at = &first_;
    while (*at != nullptr && *at != &handler) at = &(*at)->next_;
    return at;
  }

  Port& port_;
  request_handler* first_ = nullptr;
  std::optional<message> reply_;     // received, and not yet returned by await_reply
  std::pmr::vector<message> early_;  // requests whose handler is not here yet
};

}  // namespace lockflight::rma
