#include "fabric/oshmem/link.hpp"

#include <sched.h>
#include <shmem.h>

#include <atomic>

namespace lockflight::oshmem::detail {

link::link(world& in, const segment& cells)
    : in_(in), cells_(cells), others_(static_cast<std::size_t>(in.size)) {}

void link::post(remote_kind kind, rma::rank_t home, std::uint32_t index, rma::word value,
                rma::word* result) {
  long* const cell = cells_.cell(index);
  const auto given = static_cast<long>(value);
  switch (kind) {
    case remote_kind::put:
      shmem_long_atomic_set(cell, given, home);
      loose_ = true;
      break;
    case remote_kind::get:
      shmem_get64_nbi(result, cell, 1, home);
      loose_ = true;
      break;
    case remote_kind::add:
      shmem_long_atomic_add(cell, given, home);
      loose_ = true;
      break;
    case remote_kind::fetch_add:
      *result = static_cast<rma::word>(shmem_long_atomic_fetch_add(cell, given, home));
      break;
    case remote_kind::swap:
      *result = static_cast<rma::word>(shmem_long_atomic_swap(cell, given, home));
      break;
  }
}

void link::post_compare_swap(rma::rank_t home, std::uint32_t index, rma::word expected,
                             rma::word desired, rma::word* result) {
  *result = static_cast<rma::word>(shmem_long_atomic_compare_swap(
      cells_.cell(index), static_cast<long>(expected), static_cast<long>(desired), home));
}

void link::complete_all() {
  if (loose_) shmem_quiet();
  loose_ = false;
  // Our later loads come after the operations.
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

void link::send(rma::rank_t to, const rma::message& m) {
  const long number = shmem_long_atomic_fetch_add(&cells_.mailbox().given, 1, to);
  wait_for_room(to, number);
  message_slot& slot = cells_.slot(number);
  const message_slot content{.number = 0, .from = m.from, .body = m.body};
  shmem_putmem(&slot.from, &content.from, sizeof content.from + sizeof content.body, to);
  // The content of the message is there before its number is.
  shmem_fence();
  shmem_long_atomic_set(&slot.number, number + 1, to);
  shmem_quiet();  // so that it arrives though this rank calls SHMEM no more (C27)
  loose_ = false;
}

// A slot is used again when its last message has been taken.
void link::wait_for_room(rma::rank_t to, long number) {
  long& known = others_[static_cast<std::size_t>(to)];
  if (number - known < cells_.slots_each()) return;
  for (;;) {
    known = shmem_long_atomic_fetch(&cells_.mailbox().taken, to);
    if (number - known < cells_.slots_each()) return;
    in_.progress();
    sched_yield();
  }
}

bool link::take(rma::message& got) {
  message_slot& next = cells_.slot(taken_);
  // Acquire: the content that came before the number is visible.
  if (std::atomic_ref(next.number).load(std::memory_order_acquire) != taken_ + 1) return false;
  got = {static_cast<rma::rank_t>(next.from), next.body};
  // Release: a sender that sees the number may write over the content, which has been read.
  std::atomic_ref(cells_.mailbox().taken).store(++taken_, std::memory_order_release);
  return true;
}

bool link::try_receive(rma::message& got) {
  if (take(got)) return true;
  progress();
  return take(got);
}

}  // namespace lockflight::oshmem::detail
