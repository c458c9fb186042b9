#include "fabric/libfabric/link.hpp"

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#include <atomic>
#include <cstring>

namespace lockflight::libfabric::detail {
namespace {

request::what as_request(remote_kind kind) {
  switch (kind) {
    case remote_kind::put:
      return request::what::put;
    case remote_kind::get:
      return request::what::get;
    case remote_kind::swap:
      return request::what::swap;
    default:
      return request::what::add;
  }
}

}  // namespace

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
  begin(home, {.is = as_request(kind), .index = index, .value = value}, result);
}

// One operation for each word, all under way together.
void link::post_lines(rma::rank_t home, std::uint32_t index, std::span<rma::word> results) {
  for (rma::word& result : results) {
    post(remote_kind::get, home, index, 0, &result);
    index += static_cast<std::uint32_t>(rma::line_words);
  }
}

void link::post_compare_swap(rma::rank_t home, std::uint32_t index, rma::word expected,
                             rma::word desired, rma::word* result) {
  begin(home,
        {.is = request::what::compare_swap, .index = index, .value = desired, .expected = expected},
        result);
}

void link::begin(rma::rank_t home, const request& asks, rma::word* result) {
  if (under_way_.full()) complete_all();  // as early as C5 allows
  operation& o = under_way_.add(home);
  o.done = false;
  o.error = 0;
  o.result = result;
  if (net_.atomics_by_cpu())
    ask(o, asks);
  else
    wait_until([&] { return net_.step([&] { return give_to_provider(o, asks); }); });
}

void link::ask(operation& o, const request& asks) {
  packet p;
  p.kind = packet_kind::operation;
  p.from = in_.rank();
  p.waiter = under_way_.number_of(o);
  p.asks = asks;
  net_.step([&] { net_.send(o.home, p); });
}

void link::take_answer(std::uint64_t waiter, rma::word result) {
  operation* const o = under_way_.with_number(waiter);
  if (o == nullptr) return;  // no rank of this launch answers so
  o->before = result;
  o->done = true;
}

bool link::give_to_provider(operation& o, const request& asks) {
  registered_place its;
  std::memcpy(&its, cells_.keys()[static_cast<std::size_t>(o.home)].data(), sizeof its);
  const std::uint64_t at = its.address + std::uint64_t{asks.index} * sizeof(rma::word);
  const fi_addr_t peer = net_.peer(o.home);
  fid_ep* const by = net_.handle();
  o.value = asks.value;
  o.compare = asks.expected;
  ssize_t code = 0;
  switch (asks.is) {
    case request::what::get:
      code = fi_read(by, &o.before, sizeof o.before, nullptr, peer, at, its.key, &o);
      break;
    case request::what::add:
      code = fi_fetch_atomic(by, &o.value, 1, nullptr, &o.before, nullptr, peer, at, its.key,
                             FI_UINT64, FI_SUM, &o);
      break;
    case request::what::put:
    case request::what::swap:
      code = fi_fetch_atomic(by, &o.value, 1, nullptr, &o.before, nullptr, peer, at, its.key,
                             FI_UINT64, FI_ATOMIC_WRITE, &o);
      break;
    case request::what::compare_swap:
      code = fi_compare_atomic(by, &o.value, 1, nullptr, &o.compare, nullptr, &o.before, nullptr,
                               peer, at, its.key, FI_UINT64, FI_CSWAP, &o);
      break;
  }
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
  under_way_.release(home);
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
