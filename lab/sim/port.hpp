// The simulator's port. It counts operations, and traces them on request, so that no decorator has
// to be compiled.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "lab/sim/engine.hpp"
#include "lockflight/fabric/counting.hpp"
#include "lockflight/fabric/tracing.hpp"
#include "lockflight/rma/port.hpp"

namespace lockflight::sim {

class port {
 public:
  static constexpr rma::capability_set capabilities{.messages = true, .fabric = "sim"};

  port(engine& e, rank_t rank) : engine_(e), rank_(rank) {}
  port(const port&) = delete;
  port& operator=(const port&) = delete;

  [[nodiscard]] rank_t rank() const { return rank_; }
  [[nodiscard]] const rma::topology& machine() const { return engine_.machine(); }
  [[nodiscard]] bool orders_posts() const { return engine_.orders_posts(); }

  /// The operations since construction or the last reset.
  [[nodiscard]] const fabric::operation_counts& counts() const { return counts_; }
  void reset_counts() { counts_ = {}; }
  /// Since the construction.
  [[nodiscard]] const compare_swaps& swaps() const { return engine_.swaps_of(rank_); }
  /// The part of the time until now in which this rank's processor was busy with messages, and in
  /// which the atomic units of its card were busy.
  [[nodiscard]] double part_on_messages() const { return part(engine_.time_on_messages(rank_)); }
  [[nodiscard]] double part_on_atomics() const { return part(engine_.time_on_atomics(rank_)); }

  /// From now on operations are recorded as they are issued, in virtual time; null ends it.
  void trace_into(fabric::trace_buffer* events) { trace_ = events; }
  /// An event of a lock, for the trace if there is one.
  void mark(fabric::trace_kind kind, std::uint32_t lock = 0) { record(kind, 0, lock); }

  /// The library's own share of a call.
  void call(library_call what) { engine_.call(rank_, what); }

  /// Virtual time of this rank.
  [[nodiscard]] time_ps now() const { return engine_.now(rank_); }
  /// The rank's processor computes until then.
  void compute_until(time_ps then) { engine_.compute_until(rank_, then); }
  /// From now on `others` other processes of its node run all the time.
  void share_core(std::uint32_t others) { engine_.share_core(rank_, others); }

  // ---- posted ----

  template <class Cell>
  void put(Cell to, word value) {
    record(fabric::trace_kind::put, to);
    post(counts_.put, posted_kind::put, to, value, 0, nullptr);
  }
  template <class Cell>
  void get(Cell from, word& result) {
    record(fabric::trace_kind::get, from);
    post(counts_.get, posted_kind::get, from, 0, 0, &result);
  }
  template <class Cell>
  void get_lines(Cell first, std::span<word> results) {
    record(fabric::trace_kind::get, first);
    post(counts_.get, posted_kind::get, first, 0, 0, results.data(),
         static_cast<std::uint16_t>(results.size()));
  }
  void add(rma::nic_cell to, word value) {
    record(fabric::trace_kind::add, to);
    post(counts_.add, posted_kind::add, to, value, 0, nullptr);
  }
  void fetch_add(rma::nic_cell at, word value, word& before) {
    record(fabric::trace_kind::fetch_add, at);
    post(counts_.fetch_add, posted_kind::fetch_add, at, value, 0, &before);
  }
  void swap(rma::nic_cell at, word value, word& before) {
    record(fabric::trace_kind::swap, at);
    post(counts_.swap, posted_kind::swap, at, value, 0, &before);
  }
  void compare_swap(rma::nic_cell at, word expected, word desired, word& before) {
    record(fabric::trace_kind::cas, at);
    post(counts_.cas, posted_kind::compare_swap, at, expected, desired, &before);
  }
  void flush(rank_t target) {
    ++counts_.flush;
    engine_.flush(rank_, target);
  }
  void flush() {
    ++counts_.flush;
    engine_.flush(rank_, -1);
  }

  // ---- immediate ----

  template <class Cell>
  [[nodiscard]] word load(Cell from) {
    ++counts_.load;
    return engine_.load(rank_, from.home, from.index);
  }
  void load_each(std::span<const rma::cpu_cell> from, std::span<word> results) {
    counts_.load += from.size();
    engine_.load_each(rank_, from, results);
  }
  template <class Cell>
  void store(Cell to, word value) {
    static_assert(Cell::class_of != rma::cell_class::nic, "no store on a nic cell");
    ++counts_.store;
    engine_.store(rank_, to.home, to.index, value);
  }
  [[nodiscard]] word cpu_fetch_add(rma::cpu_cell at, word value) {
    return rmw(posted_kind::fetch_add, at, value, 0);
  }
  [[nodiscard]] word cpu_swap(rma::cpu_cell at, word value) {
    return rmw(posted_kind::swap, at, value, 0);
  }
  [[nodiscard]] word cpu_compare_swap(rma::cpu_cell at, word expected, word desired) {
    return rmw(posted_kind::compare_swap, at, expected, desired);
  }
  void fence() { engine_.fence(rank_); }

  // ---- waiting ----

  template <class Cell, class Predicate>
  word await(Cell on, Predicate done) {
    ++counts_.load;
    record(fabric::trace_kind::await, on);
    const predicate test{
        [](const void* what, word now) { return (*static_cast<const Predicate*>(what))(now); },
        &done};
    word value = 0;
    while (!engine_.await(rank_, on.home, on.index, test, value)) serve_mail();
    record(fabric::trace_kind::awaited, on);
    return value;
  }
  template <class Cell, class Predicate>
  word poll(Cell from, Predicate done, rma::backoff back_off) {
    // The gets of the poll are operations like others, and recorded too.
    record(fabric::trace_kind::poll, from);
    const word found = rma::poll_by_get(*this, from, done, back_off);
    record(fabric::trace_kind::polled, from);
    return found;
  }
  void pause(std::uint64_t ns) {
    engine_.pause(rank_, ns);
    if (handler_ != nullptr) serve_mail();
  }

  [[nodiscard]] rma::deadline deadline_in(std::uint64_t ns) {
    const std::uint64_t at = now_ns();
    return {at + std::min(ns, UINT64_MAX - at)};
  }
  [[nodiscard]] bool is_over(rma::deadline until) const { return now_ns() >= until.at; }
  // A waiter with a deadline polls now and then, since the queue of events has no deadlines.
  template <class Cell, class Predicate>
  word await_until(Cell on, Predicate done, rma::deadline until) {
    record(fabric::trace_kind::await, on);
    const word found = rma::await_by_polling(*this, on, done, until);
    record(fabric::trace_kind::awaited, on);
    return found;
  }

  // ---- messages ----

  void send(rank_t to, std::array<word, 3> body) {
    ++counts_.messages;
    record(fabric::trace_kind::send, rma::plain_cell{to, 0});
    engine_.send(rank_, to, body);
  }
  [[nodiscard]] rma::message receive() {
    rma::message got;
    engine_.receive(rank_, got);
    return got;
  }
  [[nodiscard]] bool try_receive(rma::message& got) { return engine_.try_receive(rank_, got); }
  void serve_with(rma::message_handler* handler) {
    handler_ = handler;
    engine_.serve(rank_, handler != nullptr);
  }

 private:
  [[nodiscard]] double part(time_ps of) const {
    return now() == 0 ? 0 : static_cast<double>(of) / static_cast<double>(now());
  }
  [[nodiscard]] std::uint64_t now_ns() const {
    constexpr time_ps ps_a_ns = 1000;
    return static_cast<std::uint64_t>(now() / ps_a_ns);
  }
  void record(fabric::trace_kind kind, word cell, std::uint32_t lock) {
    if (trace_ != nullptr) trace_->record_at(now_ns(), kind, cell, lock);
  }
  template <class Cell>
  void record(fabric::trace_kind kind, Cell on) {
    if (trace_ != nullptr) record(kind, rma::to_word(on), 0);
  }
  template <class Cell>
  void post(std::uint64_t& kind, posted_kind what, Cell cell, word value, word desired,
            word* result, std::uint16_t lines = 1) {
    ++kind;
    engine_.check_cell(cell.home, cell.index);  // a rank that is not there has no node
    const bool own = machine().same_node(rank_, cell.home);
    counts_.loopback += own ? 1 : 0;
    if (own && engine_.is_the_processors(Cell::class_of))
      return engine_.post_by_cpu(rank_, what, cell.home, cell.index, value, desired, result, lines);
    engine_.post(rank_, what, cell.home, cell.index, value, desired, result, lines);
  }
  [[nodiscard]] word rmw(posted_kind what, rma::cpu_cell at, word value, word desired) {
    ++counts_.rmw;
    record(fabric::trace_kind::rmw, at);
    return engine_.rmw(rank_, what, at.home, at.index, value, desired);
  }
  void serve_mail() {
    for (rma::message got; try_receive(got);) handler_->handle(got);
  }

  engine& engine_;
  rank_t rank_;
  rma::message_handler* handler_ = nullptr;
  fabric::trace_buffer* trace_ = nullptr;
  fabric::operation_counts counts_;
};

static_assert(rma::messaging_port<port>);

}  // namespace lockflight::sim
