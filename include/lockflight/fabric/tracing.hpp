// A decorator that records a participant's operations and the acquires and releases of its locks,
// and a writer of such records as Chrome/Perfetto trace JSON, with a track for each rank.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <ostream>
#include <span>
#include <string_view>

#include "lockflight/fabric/decorator.hpp"

namespace lockflight::fabric {

enum class trace_kind : std::uint8_t {
  acquire,
  acquire_shared,  ///< a participant starts to acquire
  acquired,        ///< … and has the lock
  release,         ///< the participant starts to release
  released,        ///< … and has released
  put,
  get,
  add,
  fetch_add,
  swap,
  cas,
  flush,
  rmw,
  await,
  awaited,
  poll,
  polled,
  send,
};

/// An event of a participant. 24 bytes, trivially copyable: buffers lie in shared memory.
struct trace_event {
  std::uint64_t at_ns = 0;  ///< on one clock for all: CLOCK_MONOTONIC, or virtual time
  rma::word cell = 0;       ///< rma::to_word of the operation's target; 0 if none
  std::uint32_t lock = 0;   ///< the caller's number for the lock of an acquire or release
  trace_kind kind = trace_kind::flush;
};

/// A participant's events, in a buffer that the caller provides, as are the numbers of events in it
/// and of those that came when it was full, which are dropped.
class trace_buffer {
 public:
  trace_buffer(std::span<trace_event> events, std::uint64_t& used, std::uint64_t& dropped)
      : events_(events), used_(used), dropped_(dropped) {}

  void record(trace_kind kind, rma::word cell, std::uint32_t lock) {
    if (used_ >= events_.size()) {  // without a reading of the clock
      ++dropped_;
      return;
    }
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
    record_at(static_cast<std::uint64_t>(ns), kind, cell, lock);
  }

  /// Records an event with the time of another clock.
  void record_at(std::uint64_t ns, trace_kind kind, rma::word cell, std::uint32_t lock) {
    if (used_ < events_.size())
      events_[used_++] = {ns, cell, lock, kind};
    else
      ++dropped_;
  }

 private:
  std::span<trace_event> events_;
  std::uint64_t& used_;
  std::uint64_t& dropped_;
};

/// Records operations as they are issued. The user of a lock marks the lock's events.
template <rma::port Inner>
class tracing : public decorator<Inner> {
  using base = decorator<Inner>;

 public:
  tracing(Inner& inner, trace_buffer buffer) : base(inner), buffer_(buffer) {}

  /// An event of a lock: acquire …, released.
  void mark(trace_kind kind, std::uint32_t lock = 0) { buffer_.record(kind, 0, lock); }

  template <class Cell>
  void put(Cell to, rma::word value) {
    record(trace_kind::put, to);
    base::put(to, value);
  }
  template <class Cell>
  void get(Cell from, rma::word& result) {
    record(trace_kind::get, from);
    base::get(from, result);
  }
  template <class Cell>
  void get_lines(Cell first, std::span<rma::word> results) {
    record(trace_kind::get, first);
    rma::get_lines(this->inner(), first, results);
  }
  void add(rma::nic_cell to, rma::word value) {
    record(trace_kind::add, to);
    base::add(to, value);
  }
  void fetch_add(rma::nic_cell at, rma::word value, rma::word& before) {
    record(trace_kind::fetch_add, at);
    base::fetch_add(at, value, before);
  }
  void swap(rma::nic_cell at, rma::word value, rma::word& before) {
    record(trace_kind::swap, at);
    base::swap(at, value, before);
  }
  void compare_swap(rma::nic_cell at, rma::word expected, rma::word desired, rma::word& before) {
    record(trace_kind::cas, at);
    base::compare_swap(at, expected, desired, before);
  }
  [[nodiscard]] rma::word cpu_fetch_add(rma::cpu_cell at, rma::word value) {
    record(trace_kind::rmw, at);
    return base::cpu_fetch_add(at, value);
  }
  [[nodiscard]] rma::word cpu_swap(rma::cpu_cell at, rma::word value) {
    record(trace_kind::rmw, at);
    return base::cpu_swap(at, value);
  }
  [[nodiscard]] rma::word cpu_compare_swap(rma::cpu_cell at, rma::word expected,
                                           rma::word desired) {
    record(trace_kind::rmw, at);
    return base::cpu_compare_swap(at, expected, desired);
  }
  template <class Cell, class Predicate>
  rma::word await(Cell on, Predicate done) {
    record(trace_kind::await, on);
    const rma::word found = base::await(on, done);
    record(trace_kind::awaited, on);
    return found;
  }
  template <class Cell, class Predicate>
  rma::word await_until(Cell on, Predicate done, rma::deadline until) {
    record(trace_kind::await, on);
    const rma::word found = base::await_until(on, done, until);
    record(trace_kind::awaited, on);
    return found;
  }
  template <class Cell, class Predicate>
  rma::word poll(Cell from, Predicate done, rma::backoff back_off) {
    record(trace_kind::poll, from);
    const rma::word found = base::poll(from, done, back_off);
    record(trace_kind::polled, from);
    return found;
  }
  void send(rma::rank_t to, std::array<rma::word, 3> body)
    requires rma::messaging_port<Inner>
  {
    buffer_.record(trace_kind::send, rma::to_word(rma::plain_cell{to, 0}), 0);
    base::send(to, body);
  }

 private:
  template <class Cell>
  void record(trace_kind kind, Cell on) {
    buffer_.record(kind, rma::to_word(on), 0);
  }

  trace_buffer buffer_;
};

/// Writes traces of several participants as Chrome trace JSON (array of events in `traceEvents`,
/// times in microseconds), which chrome://tracing and ui.perfetto.dev open. `of_rank[r]` are rank
/// r's events in order. `lock_name` labels the spans.
inline void write_chrome_trace(std::ostream& out,
                               std::span<const std::span<const trace_event>> of_rank,
                               std::string_view lock_name) {
  constexpr std::string_view names[] = {"",    "",      "",          "",     "",    "put",
                                        "get", "add",   "fetch_add", "swap", "cas", "flush",
                                        "rmw", "await", "",          "poll", "",    "send"};
  std::uint64_t start = UINT64_MAX;
  for (const auto& events : of_rank)
    if (!events.empty()) start = std::min(start, events.front().at_ns);
  const char* separator = "\n";
  const auto event = [&](std::string_view name, char phase, std::size_t rank, std::uint64_t at_ns) {
    out << separator << R"({"name":")" << name << R"(","ph":")" << phase << R"(","pid":0,"tid":)"
        << rank << R"(,"ts":)" << (at_ns - start) / 1000 << '.'
        << static_cast<char>('0' + (at_ns - start) % 1000 / 100)
        << static_cast<char>('0' + (at_ns - start) % 100 / 10)
        << static_cast<char>('0' + (at_ns - start) % 10);
    separator = ",\n";
  };
  out << R"({"displayTimeUnit":"ns","traceEvents":[)";
  for (std::size_t rank = 0; rank < of_rank.size(); ++rank) {
    out << separator << R"({"name":"thread_name","ph":"M","pid":0,"tid":)" << rank
        << R"(,"args":{"name":"rank )" << rank << R"("}})";
    separator = ",\n";
    bool shared = false;
    int open = 0;  // spans that have begun: the buffer may have become full inside one
    std::uint64_t last = start;
    const auto begin = [&](std::string_view what, std::uint64_t at) {
      event(what, 'B', rank, at);
      out << R"(,"cat":"lock","args":{"lock":")" << lock_name << R"("}})";
      ++open;
    };
    const auto end = [&](std::uint64_t at) {
      if (open == 0) return;
      event("", 'E', rank, at);
      out << '}';
      --open;
    };
    for (const trace_event& e : of_rank[rank]) {
      last = e.at_ns;
      const auto cell = rma::from_word<rma::plain_cell>(e.cell);
      switch (e.kind) {
        case trace_kind::acquire:
        case trace_kind::acquire_shared:
          shared = e.kind == trace_kind::acquire_shared;
          begin(shared ? "wait shared" : "wait", e.at_ns);
          break;
        case trace_kind::acquired:
          end(e.at_ns);
          begin(shared ? "hold shared" : "hold", e.at_ns);
          break;
        case trace_kind::release:
          end(e.at_ns);
          begin("release", e.at_ns);
          break;
        case trace_kind::released:
        case trace_kind::awaited:
        case trace_kind::polled:
          end(e.at_ns);
          break;
        case trace_kind::await:
        case trace_kind::poll:
          begin(names[static_cast<std::size_t>(e.kind)], e.at_ns);
          break;
        default:
          event(names[static_cast<std::size_t>(e.kind)], 'i', rank, e.at_ns);
          out << R"(,"s":"t","cat":"operation","args":{"home":)" << cell.home << R"(,"index":)"
              << cell.index << "}}";
      }
    }
    while (open > 0) end(last);
  }
  out << "\n]}\n";
}

}  // namespace lockflight::fabric
