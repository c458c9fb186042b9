// msg-deferred: passive target by messages, where all operations of an epoch are done at its end.
// The lock guards only the operations that go through it.
//
// Source: "MPI passive target synchronization on a non-cache-coherent many-core" (SCC paper),
// section 4.4: the default of RCKMPI, and of the CH3 device of MPICH that it comes from.
//
// lock() and lock_shared() begin an epoch, put() and get() record its operations, and unlock() or
// unlock_shared() carries them out. The value that get() reads is there after the end of the epoch.
// So this is no Lockable of std: between lock() and unlock() other participants may be there too.
// `defers` says so to programs that treat locks alike.
//
// Order: as msg, by the order in which the ends of epochs reach the server.
//
// Cost of an epoch, by the operations that it recorded:
// | none                       | nothing is sent (*)                                      |
// | one, on a cell of the home | 2 messages, the request and the reply                    |
// | others                     | 4 messages, and 1 network operation for each put and get |
// (*) This is the paper's microbenchmark.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <optional>
#include <stdexcept>
#include <vector>

#include "lockflight/lock/about.hpp"
#include "lockflight/lock/part/msg_queue.hpp"

namespace lockflight::lock {

struct msg_deferred_parameters {
  [[nodiscard]] static constexpr std::array<parameter<msg_deferred_parameters>, 0> all() {
    return {};
  }
};

template <rma::messaging_port Port>
class msg_deferred {
 public:
  static constexpr facts about{
      .name = "msg-deferred",
      .what = kind::rw,
      .source = "CH3's default: Passive Target Synchronization on the SCC, section 4.4",
      .bytes_home = 0,  // its queue is the server's own memory: 24 bytes for each rank
      .bytes_per_node = 0,
      .bytes_per_participant = 0,
      .needs_messages = true,
      .defers = true,
  };
  using parameters = msg_deferred_parameters;
  using cells = served_cells;

  /// The most operations that an epoch can have.
  static constexpr std::size_t most_operations = 16;

  msg_deferred(rma::participant<Port>& me, const cells& where, const parameters& = {})
      : port_(me.port()), home_(where.name.home), server_(me, where), recorded_(me.memory()) {
    recorded_.reserve(most_operations);
    if (me.rank() == home_) queue_.emplace(me, where);
  }

  void lock() {}
  void lock_shared() {}

  /// Puts `value` at the end of the epoch, an exclusive one. Throws std::length_error when the
  /// epoch has most_operations already.
  void put(rma::plain_cell to, rma::word value) { record({to, value, nullptr}); }

  /// Gets into `value` at the end of the epoch; `value` must live until then. Throws as put does.
  void get(rma::plain_cell from, rma::word& value) { record({from, 0, &value}); }

  void unlock() { end(msg_request::lock, msg_request::unlock); }
  void unlock_shared() { end(msg_request::lock_shared, msg_request::unlock_shared); }

 private:
  struct operation {
    rma::plain_cell cell;
    rma::word value;
    rma::word* into;  // a get's
  };

  void record(const operation& op) {
    if (recorded_.size() == most_operations)
      throw std::length_error("an epoch of msg-deferred has at most 16 operations");
    recorded_.push_back(op);
  }

  void end(msg_request acquire, msg_request release) {
    if (recorded_.size() == 1 && recorded_.front().cell.home == home_) {
      delegate(recorded_.front());
    } else if (!recorded_.empty()) {
      static_cast<void>(server_.ask(acquire));
      for (const operation& op : recorded_) post(op);
      port_.flush();  // before the release: the next holder sees it all (C33)
      static_cast<void>(server_.ask(release));
    }
    recorded_.clear();
  }

  // The server carries out the operation. Reading one word is the same under a shared and an
  // exclusive lock.
  void delegate(const operation& op) {
    if (op.into != nullptr)
      *op.into = server_.ask_about(op.cell.index, msg_request::get, 0);
    else
      static_cast<void>(server_.ask_about(op.cell.index, msg_request::put, op.value));
  }

  void post(const operation& op) {
    if (op.into != nullptr)
      port_.get(op.cell, *op.into);
    else
      port_.put(op.cell, op.value);
  }

  Port& port_;
  rma::rank_t home_;
  client<Port> server_;
  std::pmr::vector<operation> recorded_;  // in the order of the calls
  std::optional<msg_queue<Port>> queue_;  // the home's
};

}  // namespace lockflight::lock
