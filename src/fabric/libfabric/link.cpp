#include "fabric/libfabric/link.hpp"

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#include <atomic>
#include <cstring>

namespace lockflight::libfabric::detail {
link::link(endpoint& net, wired::detail::world& in, const wired::detail::segment& cells,
           bool patient)
    : wired::detail::link(in, patient), net_(net), cells_(cells) {
  net_.step([&] { net_.answer_to(this); });
}

link::~link() {
  net_.step([&] { net_.answer_to(nullptr); });
}

void link::post(remote_kind kind, rma::rank_t home, std::uint32_t index, rma::word value,
                rma::word* result) {
  begin(home, {.kind = kind, .index = index, .value = value}, result);
}

void link::post_compare_swap(rma::rank_t home, std::uint32_t index, rma::word expected,
                             rma::word desired, rma::word* result) {
  begin(home,
        {.kind = remote_kind::swap,
         .compares = true,
         .index = index,
         .value = desired,
         .expected = expected},
        result);
}

// In a step: the thread that makes progress looks for operations whose answers have come.
void link::begin(rma::rank_t home, const request& asks, rma::word* result) {
  if (under_way_.full()) complete_all();  // as early as C5 allows
  operation& o = net_.step([&]() -> operation& {
    operation& added = under_way_.add(home);
    added.done = false;
    added.error = 0;
    added.result = result;
    if (net_.atomics_by_cpu()) post_message(added, asks);
    return added;
  });
  if (!net_.atomics_by_cpu())
    wait_until([&] { return net_.step([&] { return post_to_provider(o, asks); }); });
}

void link::post_message(const operation& o, const request& asks) {
  packet p;
  p.kind = packet_kind::operation;
  p.from = in_.rank();
  p.waiter = under_way_.number_of(o);
  p.asks = asks;
  net_.send(o.home, p);
}

void link::take_answer(std::uint64_t waiter, rma::word result) {
  operation* const o = under_way_.with_number(waiter);
  if (o == nullptr) return;  // no rank of this launch answers so
  o->before = result;
  o->done = true;
}

bool link::post_to_provider(operation& o, const request& asks) {
  registered_place its;
  std::memcpy(&its, cells_.keys()[static_cast<std::size_t>(o.home)].data(), sizeof its);
  const std::uint64_t at = its.address + std::uint64_t{asks.index} * sizeof(rma::word);
  const fi_addr_t peer = net_.peer(o.home);
  fid_ep* const by = net_.handle();
  auto* const context = static_cast<completion*>(&o);
  const bool adds = asks.kind == remote_kind::add || asks.kind == remote_kind::fetch_add;
  o.value = asks.value;
  o.compare = asks.expected;
  ssize_t code = 0;
  if (asks.compares)
    code = fi_compare_atomic(by, &o.value, 1, nullptr, &o.compare, nullptr, &o.before, nullptr,
                             peer, at, its.key, FI_UINT64, FI_CSWAP, context);
  else if (asks.kind == remote_kind::get)
    code = fi_read(by, &o.before, sizeof o.before, nullptr, peer, at, its.key, context);
  else
    code = fi_fetch_atomic(by, &o.value, 1, nullptr, &o.before, nullptr, peer, at, its.key,
                           FI_UINT64, adds ? FI_SUM : FI_ATOMIC_WRITE, context);
  if (code == -FI_EAGAIN) return false;
  if (code != 0) {
    o.error = static_cast<int>(-code);
    o.done = true;
  }
  return true;
}

void link::complete(rma::rank_t home) {
  if (!under_way_.any_to(home)) return;
  under_way_.for_each_to(home, [&](operation& o) {
    wait_until([&] { return net_.step([&] { return o.done; }); });
    if (o.error != 0) in_.lost(home, fi_strerror(o.error));
    if (o.result != nullptr) *o.result = o.before;
  });
  net_.step([&] { under_way_.release(home); });
  // Our later loads come after the answers.
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

void link::complete_all() { fabric::detail::complete_each(under_way_, *this); }

// Three words go out at once; what libfabric delays waits in the endpoint's queue (C28).
void link::send(rma::rank_t to, const rma::message& m) {
  packet p;
  p.from = in_.rank();
  p.content = sealed(m);
  net_.step([&] { net_.send(to, p); });
}

}  // namespace lockflight::libfabric::detail
