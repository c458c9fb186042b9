// The operations of a port whose cells are all memory of its process: posted and immediate, each
// made of CPU instructions that take effect at the call. The ports of shm and of domains are
// made of this; each says where a cell lies, and which bell wakes the ranks that sleep on it.
//
// Cost: a posted operation takes effect at its call; a flush is at most a fence.
#pragma once

#include <atomic>

#include "lockflight/fabric/parking.hpp"
#include "lockflight/rma/cell.hpp"
#include "lockflight/rma/port.hpp"

namespace lockflight::shm::detail {

/// A cell, and its address in this process.
template <rma::cell_class Class>
struct resolved_cell : rma::cell<Class> {
  std::atomic<rma::word>* address = nullptr;
  detail::bell* bell = nullptr;
};

/// The immediate operations on cells that the CPU reaches, for any port. `Port` derives from it and
/// has `std::atomic<rma::word>& address(cell) const`, `write(cell, value)` and `after_rmw(cell)`.
template <class Port>
class immediate_operations {
 public:
  // Immediate operations are always inlined: an uncontended lock is little more than one or two of
  // them, and compilers stop inlining where a lock is large.

  template <class Cell>
  [[nodiscard, gnu::always_inline]] rma::word load(Cell from) {
    return port().address(from).load(std::memory_order_acquire);
  }
  template <class Cell>
  [[gnu::always_inline]] void store(Cell to, rma::word value) {
    static_assert(Cell::class_of != rma::cell_class::nic,
                  "no store on a nic cell: a NIC's read-modify-write could swallow it; use put");
    port().write(to, value);
  }
  template <rma::of_class<rma::cell_class::cpu> Cell>
  [[nodiscard, gnu::always_inline]] rma::word cpu_fetch_add(Cell to, rma::word value) {
    const rma::word before = port().address(to).fetch_add(value, std::memory_order_seq_cst);
    port().after_rmw(to);
    return before;
  }
  template <rma::of_class<rma::cell_class::cpu> Cell>
  [[nodiscard, gnu::always_inline]] rma::word cpu_swap(Cell at_cell, rma::word value) {
    const rma::word before = port().address(at_cell).exchange(value, std::memory_order_seq_cst);
    port().after_rmw(at_cell);
    return before;
  }
  template <rma::of_class<rma::cell_class::cpu> Cell>
  [[nodiscard, gnu::always_inline]] rma::word cpu_compare_swap(Cell at_cell, rma::word expected,
                                                               rma::word desired) {
    port().address(at_cell).compare_exchange_strong(expected, desired, std::memory_order_seq_cst);
    port().after_rmw(at_cell);
    return expected;
  }
  void fence() {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    unordered_writes_ = false;
  }

 protected:
  immediate_operations() = default;
  immediate_operations(const immediate_operations&) = delete;
  immediate_operations& operator=(const immediate_operations&) = delete;
  ~immediate_operations() = default;

  // Orders our later reads after our earlier writes.
  [[gnu::always_inline]] void order_after_writes() {
    if (!unordered_writes_) return;
    std::atomic_thread_fence(std::memory_order_seq_cst);
    unordered_writes_ = false;
  }

  // Orders our later reads after a read-modify-write of ours.
  [[gnu::always_inline]] void order_after_rmw() {
    if constexpr (rmw_is_fence)
      unordered_writes_ = false;
    else
      fence();
  }

  bool unordered_writes_ = false;  // our later reads may come before them

 private:
  [[nodiscard, gnu::always_inline]] Port& port() { return static_cast<Port&>(*this); }
};

/// `Port` derives from it and has, for each class of cell, `std::atomic<rma::word>& at(cell) const`
/// and `bell& bell_of(cell) const`. Its `fenced_stores()` says whether each store has a fence, also
/// if the cell's bell does not ask for it.
template <class Port>
class cpu_operations : public immediate_operations<Port> {
  friend class immediate_operations<Port>;
  using base = immediate_operations<Port>;
  using base::order_after_rmw, base::order_after_writes, base::unordered_writes_;

 public:
  /// As rma::resolve has it.
  template <rma::cell_class Class>
  [[nodiscard]] resolved_cell<Class> resolve(rma::cell<Class> c) const {
    return {c, &address(c), &bell_at(c)};
  }

  // ---- posted ----

  // Release: what the participant wrote before the put is visible to a participant that reads the
  // put's value.
  template <class Cell>
  void put(Cell to, rma::word value) {
    write(to, value);
  }

  // A posted operation must not overtake an earlier store of ours (C12); a plain load would.
  template <class Cell>
  void get(Cell from, rma::word& result) {
    order_after_writes();
    result = address(from).load(std::memory_order_acquire);
  }

  void add(rma::nic_cell to, rma::word value) {
    address(to).fetch_add(value, std::memory_order_seq_cst);
    after_rmw(to);
  }
  void fetch_add(rma::nic_cell to, rma::word value, rma::word& before) {
    before = address(to).fetch_add(value, std::memory_order_seq_cst);
    after_rmw(to);
  }
  void swap(rma::nic_cell at_cell, rma::word value, rma::word& before) {
    before = address(at_cell).exchange(value, std::memory_order_seq_cst);
    after_rmw(at_cell);
  }
  void compare_swap(rma::nic_cell at_cell, rma::word expected, rma::word desired,
                    rma::word& before) {
    before = expected;
    address(at_cell).compare_exchange_strong(before, desired, std::memory_order_seq_cst);
    after_rmw(at_cell);
  }

  // All operations have taken effect already. The flush orders our later reads after them (C7).
  void flush(rma::rank_t) { order_after_writes(); }
  void flush() { order_after_writes(); }

 protected:
  cpu_operations() = default;
  cpu_operations(const cpu_operations&) = delete;
  cpu_operations& operator=(const cpu_operations&) = delete;
  ~cpu_operations() = default;

  template <rma::cell_class Class>
  [[nodiscard, gnu::always_inline]] std::atomic<rma::word>& address(rma::cell<Class> c) const {
    return static_cast<const Port&>(*this).at(c);
  }
  template <rma::cell_class Class>
  [[nodiscard, gnu::always_inline]] std::atomic<rma::word>& address(
      const resolved_cell<Class>& c) const {
    return *c.address;
  }
  template <rma::cell_class Class>
  [[nodiscard, gnu::always_inline]] bell& bell_at(rma::cell<Class> c) const {
    return static_cast<const Port&>(*this).bell_of(c);
  }
  template <rma::cell_class Class>
  [[nodiscard, gnu::always_inline]] bell& bell_at(const resolved_cell<Class>& c) const {
    return *c.bell;
  }

 private:
  // Wakes ranks that sleep on a cell with this bell. The read of `parked` must come after the
  // write. After an RMW it does. After a store it does if there is a fence; else the sleeper
  // orders the two after arming.
  [[gnu::always_inline]] void ring_after_rmw(bell& of_cell) {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    of_cell.ring();
  }
  [[gnu::always_inline]] void ring_after_store(bell& of_cell) {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (!of_cell.is_quiet()) [[unlikely]]
      fence_and_ring(of_cell);
  }
  [[gnu::noinline]] void fence_and_ring(bell& of_cell) {
    base::fence();
    of_cell.ring();
  }

  template <class Cell>
  [[gnu::always_inline]] void write(Cell to, rma::word value) {
    address(to).store(value, std::memory_order_release);
    if (static_cast<const Port&>(*this).fenced_stores())
      base::fence();
    else
      unordered_writes_ = true;
    ring_after_store(bell_at(to));
  }

  template <class Cell>
  [[gnu::always_inline]] void after_rmw(const Cell& on) {
    order_after_rmw();
    ring_after_rmw(bell_at(on));
  }
};

}  // namespace lockflight::shm::detail
