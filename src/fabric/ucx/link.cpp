#include "fabric/ucx/link.hpp"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <string>

#include "fabric/shm/pause.hpp"
#include "lockflight/rma/assert.hpp"

namespace lockflight::ucx::detail {
namespace {

constexpr std::size_t word_bytes = sizeof(rma::word);

ucp_request_param_t with_result(rma::word* result) {
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_REPLY_BUFFER;
  param.datatype = ucp_dt_make_contig(word_bytes);
  param.reply_buffer = result;
  return param;
}

}  // namespace

link::link(world& in, const segment& cells, bool patient)
    : in_(in), net_(*in.net), cells_(cells), patient_(patient), run_(in.runs) {
  targets_.resize(cells.exposed().size());
}

link::~link() {
  if (in_.over) return;
  for (outgoing& o : sent_) {
    if (o.request == nullptr) continue;
    while (ucp_request_check_status(o.request) == UCS_INPROGRESS) net_.progress();
    net_.step([&] { ucp_request_free(o.request); });
  }
  for (target& t : targets_)
    if (t.key != nullptr) net_.step([&] { ucp_rkey_destroy(t.key); });
}

link::target& link::reach(rma::rank_t home) {
  target& t = targets_[static_cast<std::size_t>(home)];
  if (t.key != nullptr) [[likely]]
    return t;
  const exposed_cells& its = cells_.exposed()[static_cast<std::size_t>(home)];
  t.address = its.address;
  net_.step([&] {
    t.endpoint = net_.endpoint(home);
    check(ucp_ep_rkey_unpack(t.endpoint, its.key.data(), &t.key), "ucp_ep_rkey_unpack");
  });
  return t;
}

link::slot& link::take(rma::rank_t home) {
  if (used_ == slots) complete_all();  // as early as C5 allows
  rma::ensure(used_ < slots, "what is complete leaves its slot");
  slot& s = slots_[used_++];
  s.home = home;
  s.flushes = false;
  return s;
}

void link::started(slot& s, void* request) {
  s.request = nullptr;
  if (UCS_PTR_IS_ERR(request)) in_.lost(s.home, UCS_PTR_STATUS(request));
  if (UCS_PTR_IS_PTR(request)) s.request = request;
}

void link::post_atomic(ucp_atomic_op_t op, slot& s, std::uint32_t index, rma::word* result) {
  const target& t = reach(s.home);
  const ucp_request_param_t param = with_result(result != nullptr ? result : &s.ignored);
  started(s, net_.step([&] {
    return ucp_atomic_op_nbx(t.endpoint, op, &s.value, 1, t.address + index * word_bytes, t.key,
                             &param);
  }));
}

void link::post(remote_kind kind, rma::rank_t home, std::uint32_t index, rma::word value,
                rma::word* result) {
  slot& s = take(home);
  s.value = value;
  const ucp_request_param_t plain{};
  const target& t = reach(home);
  const std::uint64_t there = t.address + index * word_bytes;
  switch (kind) {
    case remote_kind::get:
      return started(s, net_.step([&] {
        return ucp_get_nbx(t.endpoint, result, word_bytes, there, t.key, &plain);
      }));
    case remote_kind::put:
      if (net_.atomics_by_cpu()) return post_atomic(UCP_ATOMIC_OP_SWAP, s, index, nullptr);
      s.flushes = true;
      return started(s, net_.step([&] {
        return ucp_put_nbx(t.endpoint, &s.value, word_bytes, there, t.key, &plain);
      }));
    case remote_kind::swap:
      return post_atomic(UCP_ATOMIC_OP_SWAP, s, index, result);
    default:
      return post_atomic(UCP_ATOMIC_OP_ADD, s, index, result);
  }
}

// UCX has no operation for a column of words: one for each, all under way together.
void link::post_lines(rma::rank_t home, std::uint32_t index, std::span<rma::word> results) {
  for (rma::word& result : results) {
    post(remote_kind::get, home, index, 0, &result);
    index += static_cast<std::uint32_t>(rma::line_words);
  }
}

// UCX finds the new word where it puts the old one.
void link::post_compare_swap(rma::rank_t home, std::uint32_t index, rma::word expected,
                             rma::word desired, rma::word* result) {
  slot& s = take(home);
  s.value = expected;
  *result = desired;
  post_atomic(UCP_ATOMIC_OP_CSWAP, s, index, result);
}

void link::wait_for(void* request, rma::rank_t home) {
  ucs_status_t status = UCS_INPROGRESS;
  for (unsigned steps = 0; (status = ucp_request_check_status(request)) == UCS_INPROGRESS; ++steps)
    step_while_waiting(steps);
  net_.step([&] { ucp_request_free(request); });
  if (status != UCS_OK) in_.lost(home, status);
}

// A rank that waits for an answer serves others, so two ranks that wait for each other both
// proceed.
void link::step_while_waiting(unsigned steps) {
  constexpr unsigned steps_before_yield = 2;
  constexpr unsigned steps_between_yields = 1'024;
  progress();
  if (patient_ ? steps >= steps_before_yield : steps % steps_between_yields == 1'023) sched_yield();
}

void link::flush_endpoint(rma::rank_t home) {
  const ucp_request_param_t plain{};
  const target& t = reach(home);
  void* const request = net_.step([&] { return ucp_ep_flush_nbx(t.endpoint, &plain); });
  if (UCS_PTR_IS_ERR(request)) in_.lost(home, UCS_PTR_STATUS(request));
  if (UCS_PTR_IS_PTR(request)) wait_for(request, home);
}

void link::complete(rma::rank_t home) {
  bool any = false;
  bool flushes = false;
  for (std::size_t i = 0; i < used_; ++i) {
    slot& s = slots_[i];
    if (s.home != home) continue;
    any = true;
    flushes = flushes || s.flushes;
    if (void* const request = std::exchange(s.request, nullptr); request != nullptr)
      wait_for(request, home);
  }
  if (!any) return;
  if (flushes) flush_endpoint(home);
  release(home);
  // Our later loads come after the answers.
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

void link::complete_all() {
  while (used_ > 0) {
    const rma::rank_t home = slots_[used_ - 1].home;
    if (home < 0)
      --used_;
    else
      complete(home);
  }
}

void link::release(rma::rank_t home) {
  for (std::size_t i = 0; i < used_; ++i)
    if (slots_[i].home == home) slots_[i].home = -1;
  while (used_ > 0 && slots_[used_ - 1].home < 0) --used_;
}

// Three words go out at once; what UCX delays waits in this queue, not in the caller (C28).
void link::send(rma::rank_t to, const rma::message& m) {
  const envelope content{run_, m.from, m.body};
  if (to == in_.rank()) {
    net_.step([&] { net_.inbox().push_back(content); });
    return;
  }
  while (!sent_.empty() && (sent_.front().request == nullptr ||
                            ucp_request_check_status(sent_.front().request) != UCS_INPROGRESS)) {
    if (void* const request = sent_.front().request; request != nullptr)
      net_.step([&] { ucp_request_free(request); });
    sent_.pop_front();
  }
  outgoing& o = sent_.emplace_back();
  o.content = content;
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  param.flags = UCP_AM_SEND_FLAG_EAGER;
  void* const request = net_.step([&] {
    return ucp_am_send_nbx(net_.endpoint(to), message_id, &o.content, sizeof o.content, nullptr, 0,
                           &param);
  });
  if (UCS_PTR_IS_ERR(request)) in_.lost(to, UCS_PTR_STATUS(request));
  if (UCS_PTR_IS_PTR(request)) o.request = request;
}

bool link::try_receive(rma::message& got) {
  progress();
  return net_.step([&] {
    std::deque<envelope>& inbox = net_.inbox();
    while (!inbox.empty()) {
      const envelope first = inbox.front();
      inbox.pop_front();
      if (first.run != run_) continue;  // left over from an earlier run
      got = {static_cast<rma::rank_t>(first.from), first.body};
      return true;
    }
    return false;
  });
}

// Between two looks at the clock there are so many steps that these cost little, and few enough
// that a rank that is gone is noticed soon.
void link::progress() {
  constexpr std::uint32_t steps_between_looks = 64;
  constexpr std::uint64_t between_checks_ns = 100'000'000;
  net_.progress();
  if (--steps_until_check_ != 0) return;
  steps_until_check_ = steps_between_looks;
  const std::uint64_t now = shm::detail::now_ns();
  if (now - checked_at_ < between_checks_ns) return;
  checked_at_ = now;
  in_.check();
}

}  // namespace lockflight::ucx::detail
