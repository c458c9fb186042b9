// A port whose fabric is known at run time only. The benchmark's loops are compiled once for all
// fabrics whose operations take far longer than a virtual call, and once more for shared memory,
// without virtual calls. A tracer reads the clock at each operation: it too is behind one.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <span>
#include <type_traits>

#include "lab/sim/library_call.hpp"
#include "lockflight/fabric/counting.hpp"
#include "lockflight/fabric/tracing.hpp"
#include "lockflight/rma/port.hpp"

namespace lockflight::bench {

/// A reference to a predicate, with its type erased.
class word_test {
 public:
  template <std::predicate<rma::word> Predicate>
  word_test(const Predicate& on)  // NOLINT: an implicit reference
      : holds_([](const void* what, rma::word now) {
          return static_cast<bool>((*static_cast<const Predicate*>(what))(now));
        }),
        on_(&on) {}

  [[nodiscard]] bool operator()(rma::word now) const { return holds_(on_, now); }

 private:
  bool (*holds_)(const void* on, rma::word now);
  const void* on_;
};

/// The contract's port as an interface, with the additional calls of the benchmark.
class any_port {
 public:
  static constexpr rma::capability_set capabilities{.messages = true, .fabric = "any"};

  any_port(const any_port&) = delete;
  any_port& operator=(const any_port&) = delete;

  [[nodiscard]] rma::rank_t rank() const { return rank_; }
  [[nodiscard]] const rma::topology& machine() const { return machine_; }
  [[nodiscard]] bool orders_posts() const { return orders_posts_; }
  [[nodiscard]] bool shares_cores() const { return shares_cores_; }

  virtual void put(rma::cpu_cell to, rma::word value) = 0;
  virtual void put(rma::nic_cell to, rma::word value) = 0;
  virtual void put(rma::plain_cell to, rma::word value) = 0;
  virtual void get(rma::cpu_cell from, rma::word& result) = 0;
  virtual void get(rma::nic_cell from, rma::word& result) = 0;
  virtual void get(rma::plain_cell from, rma::word& result) = 0;
  virtual void get_lines(rma::cpu_cell first, std::span<rma::word> results) = 0;
  virtual void add(rma::nic_cell to, rma::word value) = 0;
  virtual void fetch_add(rma::nic_cell at, rma::word value, rma::word& before) = 0;
  virtual void swap(rma::nic_cell at, rma::word value, rma::word& before) = 0;
  virtual void compare_swap(rma::nic_cell at, rma::word expected, rma::word desired,
                            rma::word& before) = 0;
  virtual void flush(rma::rank_t rank) = 0;
  virtual void flush() = 0;

  [[nodiscard]] virtual rma::word load(rma::cpu_cell from) = 0;
  [[nodiscard]] virtual rma::word load(rma::nic_cell from) = 0;
  [[nodiscard]] virtual rma::word load(rma::plain_cell from) = 0;
  virtual void load_each(std::span<const rma::cpu_cell> from, std::span<rma::word> results) = 0;
  virtual void store(rma::cpu_cell to, rma::word value) = 0;
  virtual void store(rma::plain_cell to, rma::word value) = 0;
  [[nodiscard]] virtual rma::word cpu_fetch_add(rma::cpu_cell at, rma::word value) = 0;
  [[nodiscard]] virtual rma::word cpu_swap(rma::cpu_cell at, rma::word value) = 0;
  [[nodiscard]] virtual rma::word cpu_compare_swap(rma::cpu_cell at, rma::word expected,
                                                   rma::word desired) = 0;
  virtual void fence() = 0;

  virtual rma::word await(rma::cpu_cell on, word_test done) = 0;
  virtual rma::word await(rma::nic_cell on, word_test done) = 0;
  virtual rma::word await(rma::plain_cell on, word_test done) = 0;
  virtual rma::word poll(rma::nic_cell from, word_test done, rma::backoff back_off) = 0;
  virtual rma::word poll(rma::plain_cell from, word_test done, rma::backoff back_off) = 0;
  virtual void pause(std::uint64_t nanoseconds) = 0;

  [[nodiscard]] virtual rma::deadline deadline_in(std::uint64_t nanoseconds) = 0;
  [[nodiscard]] virtual bool is_over(rma::deadline until) = 0;
  virtual rma::word await_until(rma::cpu_cell on, word_test done, rma::deadline until) = 0;
  virtual rma::word await_until(rma::nic_cell on, word_test done, rma::deadline until) = 0;
  virtual rma::word await_until(rma::plain_cell on, word_test done, rma::deadline until) = 0;

  virtual void send(rma::rank_t to, std::array<rma::word, 3> body) = 0;
  [[nodiscard]] virtual rma::message receive() = 0;
  [[nodiscard]] virtual bool try_receive(rma::message& got) = 0;
  virtual void serve_with(rma::message_handler* handler) = 0;

  [[nodiscard]] virtual fabric::operation_counts counts() = 0;
  virtual void reset_counts() = 0;

  /// A lock's own event, if the run is traced.
  void mark(fabric::trace_kind kind) {
    if (is_traced_) record(kind);
  }
  /// Charges the time that a library takes for a call, if the time is virtual.
  void call(sim::library_call what) {
    if (charges_calls_) charge(what);
  }

 protected:
  template <class Port>
  any_port(const Port& of, bool is_traced, bool charges_calls)
      : machine_(of.machine()),
        rank_(of.rank()),
        orders_posts_(rma::orders_posts(of)),
        shares_cores_(rma::shares_cores(of)),
        is_traced_(is_traced),
        charges_calls_(charges_calls) {}
  ~any_port() = default;

  /// The address of a cell; null if cells are not memory of this process.
  [[nodiscard]] virtual void* address_of(rma::plain_cell c) = 0;

 private:
  virtual void record(fabric::trace_kind kind) = 0;
  virtual void charge(sim::library_call what) = 0;

  const rma::topology& machine_;
  rma::rank_t rank_;
  bool orders_posts_;
  bool shares_cores_;
  bool is_traced_;
  bool charges_calls_;
};

/// An any_port whose cells are ordinary memory of this process, for the baselines.
class any_native_port : public any_port {
 public:
  static constexpr rma::capability_set capabilities{
      .messages = true, .native_memory = true, .fabric = "any"};

  [[nodiscard]] void* native_address(rma::plain_cell c) { return address_of(c); }

 protected:
  using any_port::any_port;
  ~any_native_port() = default;
};

static_assert(rma::messaging_port<any_port>);
static_assert(rma::native_port<any_native_port>);

/// True if a port records operations.
template <class Port>
constexpr bool is_traced = requires(Port& p) { p.mark(fabric::trace_kind::acquire); };

/// True if calls of the library cost something on a port beside their operations.
template <class Port>
constexpr bool charges_calls = requires(Port& p) { p.call(sim::library_call::acquire); };

/// The counting decorator of the port, at any depth.
template <class Port>
[[nodiscard]] auto& counter_of(Port& p) {
  if constexpr (requires { p.reset_counts(); })
    return p;
  else
    return counter_of(p.inner());
}

/// The interface on a port that counts.
template <rma::messaging_port Port>
class any_port_on final
    : public std::conditional_t<rma::native_port<Port>, any_native_port, any_port> {
  using base = std::conditional_t<rma::native_port<Port>, any_native_port, any_port>;
  using word = rma::word;

 public:
  explicit any_port_on(Port& port)
      : base(port, is_traced<Port>, charges_calls<Port>), port_(port) {}

  void put(rma::cpu_cell to, word value) override { port_.put(to, value); }
  void put(rma::nic_cell to, word value) override { port_.put(to, value); }
  void put(rma::plain_cell to, word value) override { port_.put(to, value); }
  void get(rma::cpu_cell from, word& result) override { port_.get(from, result); }
  void get(rma::nic_cell from, word& result) override { port_.get(from, result); }
  void get(rma::plain_cell from, word& result) override { port_.get(from, result); }
  void get_lines(rma::cpu_cell first, std::span<word> results) override {
    rma::get_lines(port_, first, results);
  }
  void add(rma::nic_cell to, word value) override { port_.add(to, value); }
  void fetch_add(rma::nic_cell at, word value, word& before) override {
    port_.fetch_add(at, value, before);
  }
  void swap(rma::nic_cell at, word value, word& before) override { port_.swap(at, value, before); }
  void compare_swap(rma::nic_cell at, word expected, word desired, word& before) override {
    port_.compare_swap(at, expected, desired, before);
  }
  void flush(rma::rank_t rank) override { port_.flush(rank); }
  void flush() override { port_.flush(); }

  [[nodiscard]] word load(rma::cpu_cell from) override { return port_.load(from); }
  [[nodiscard]] word load(rma::nic_cell from) override { return port_.load(from); }
  [[nodiscard]] word load(rma::plain_cell from) override { return port_.load(from); }
  void load_each(std::span<const rma::cpu_cell> from, std::span<word> results) override {
    rma::load_each(port_, from, results);
  }
  void store(rma::cpu_cell to, word value) override { port_.store(to, value); }
  void store(rma::plain_cell to, word value) override { port_.store(to, value); }
  [[nodiscard]] word cpu_fetch_add(rma::cpu_cell at, word value) override {
    return port_.cpu_fetch_add(at, value);
  }
  [[nodiscard]] word cpu_swap(rma::cpu_cell at, word value) override {
    return port_.cpu_swap(at, value);
  }
  [[nodiscard]] word cpu_compare_swap(rma::cpu_cell at, word expected, word desired) override {
    return port_.cpu_compare_swap(at, expected, desired);
  }
  void fence() override { port_.fence(); }

  word await(rma::cpu_cell on, word_test done) override { return port_.await(on, done); }
  word await(rma::nic_cell on, word_test done) override { return port_.await(on, done); }
  word await(rma::plain_cell on, word_test done) override { return port_.await(on, done); }
  word poll(rma::nic_cell from, word_test done, rma::backoff back_off) override {
    return port_.poll(from, done, back_off);
  }
  word poll(rma::plain_cell from, word_test done, rma::backoff back_off) override {
    return port_.poll(from, done, back_off);
  }
  void pause(std::uint64_t nanoseconds) override { port_.pause(nanoseconds); }

  [[nodiscard]] rma::deadline deadline_in(std::uint64_t nanoseconds) override {
    return port_.deadline_in(nanoseconds);
  }
  [[nodiscard]] bool is_over(rma::deadline until) override { return port_.is_over(until); }
  word await_until(rma::cpu_cell on, word_test done, rma::deadline until) override {
    return port_.await_until(on, done, until);
  }
  word await_until(rma::nic_cell on, word_test done, rma::deadline until) override {
    return port_.await_until(on, done, until);
  }
  word await_until(rma::plain_cell on, word_test done, rma::deadline until) override {
    return port_.await_until(on, done, until);
  }

  void send(rma::rank_t to, std::array<word, 3> body) override { port_.send(to, body); }
  [[nodiscard]] rma::message receive() override { return port_.receive(); }
  [[nodiscard]] bool try_receive(rma::message& got) override { return port_.try_receive(got); }
  void serve_with(rma::message_handler* handler) override { port_.serve_with(handler); }

  [[nodiscard]] fabric::operation_counts counts() override { return counter_of(port_).counts(); }
  void reset_counts() override { counter_of(port_).reset_counts(); }

 private:
  void record(fabric::trace_kind kind) override {
    if constexpr (is_traced<Port>) port_.mark(kind);
  }
  void charge(sim::library_call what) override {
    if constexpr (charges_calls<Port>) port_.call(what);
  }
  [[nodiscard]] void* address_of(rma::plain_cell c) override {
    if constexpr (rma::native_port<Port>)
      return port_.native_address(c);
    else
      return nullptr;
  }

  Port& port_;
};

}  // namespace lockflight::bench
