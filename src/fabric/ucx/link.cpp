#include "fabric/ucx/link.hpp"

#include <atomic>
#include <cstring>
#include <string>
#include <utility>

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

link::link(worker& net, wired::detail::world& in, const wired::detail::segment& cells, bool patient)
    : wired::detail::link(in, patient), net_(net), cells_(cells) {
  targets_.resize(cells.keys().size());
}

link::~link() {
  try {
    for (outgoing& o : sent_)
      if (o.request != nullptr) wait_until([&] { return !is_under_way(o.request); });
  } catch (const wired::run_failed&) {
    return;  // the messages stay where they are: see world::close_down
  }
  net_.step([&] {
    for (const outgoing& o : sent_)
      if (o.request != nullptr) ucp_request_free(o.request);
    for (target& t : targets_)
      if (t.key != nullptr) ucp_rkey_destroy(t.key);
  });
}

bool link::is_under_way(void* request) {
  return net_.step([&] { return ucp_request_check_status(request) == UCS_INPROGRESS; });
}

link::target& link::reach(rma::rank_t home) {
  target& t = targets_[static_cast<std::size_t>(home)];
  if (t.key != nullptr) [[likely]]
    return t;
  const std::string& key = cells_.keys()[static_cast<std::size_t>(home)];
  std::memcpy(&t.address, key.data(), sizeof t.address);
  net_.step([&] {
    t.endpoint = net_.endpoint(home);
    check(ucp_ep_rkey_unpack(t.endpoint, key.data() + sizeof t.address, &t.key),
          "ucp_ep_rkey_unpack");
  });
  return t;
}

link::operation& link::begin(rma::rank_t home) {
  if (under_way_.full()) complete_all();  // as early as C5 allows
  operation& o = under_way_.add(home);
  o.flushes = false;
  return o;
}

void link::started(operation& s, void* request) {
  s.request = nullptr;
  if (UCS_PTR_IS_ERR(request)) in_.lost(s.home, ucs_status_string(UCS_PTR_STATUS(request)));
  if (UCS_PTR_IS_PTR(request)) s.request = request;
}

void link::post_atomic(ucp_atomic_op_t op, operation& s, std::uint32_t index, rma::word* result) {
  const target& t = reach(s.home);
  const ucp_request_param_t param = with_result(result != nullptr ? result : &s.ignored);
  started(s, net_.step([&] {
    return ucp_atomic_op_nbx(t.endpoint, op, &s.value, 1, t.address + index * word_bytes, t.key,
                             &param);
  }));
}

void link::post(remote_kind kind, rma::rank_t home, std::uint32_t index, rma::word value,
                rma::word* result) {
  operation& s = begin(home);
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

// UCX reads the new word from the place into which it writes the old one.
void link::post_compare_swap(rma::rank_t home, std::uint32_t index, rma::word expected,
                             rma::word desired, rma::word* result) {
  operation& s = begin(home);
  s.value = expected;
  *result = desired;
  post_atomic(UCP_ATOMIC_OP_CSWAP, s, index, result);
}

void link::wait_for(void* request, rma::rank_t home) {
  ucs_status_t status = UCS_INPROGRESS;
  wait_until([&] {
    status = net_.step([&] { return ucp_request_check_status(request); });
    return status != UCS_INPROGRESS;
  });
  net_.step([&] { ucp_request_free(request); });
  if (status != UCS_OK) in_.lost(home, ucs_status_string(status));
}

void link::flush_endpoint(rma::rank_t home) {
  const ucp_request_param_t plain{};
  const target& t = reach(home);
  void* const request = net_.step([&] { return ucp_ep_flush_nbx(t.endpoint, &plain); });
  if (UCS_PTR_IS_ERR(request)) in_.lost(home, ucs_status_string(UCS_PTR_STATUS(request)));
  if (UCS_PTR_IS_PTR(request)) wait_for(request, home);
}

void link::complete(rma::rank_t home) {
  if (!under_way_.any_to(home)) return;
  bool flushes = false;
  under_way_.for_each_to(home, [&](operation& o) {
    flushes = flushes || o.flushes;
    if (void* const request = std::exchange(o.request, nullptr); request != nullptr)
      wait_for(request, home);
  });
  if (flushes) flush_endpoint(home);
  under_way_.release(home);
  // Our later loads come after the answers.
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

void link::complete_all() { fabric::detail::complete_each(under_way_, *this); }

// Three words go out at once; a message that UCX delays waits in this queue, not in the caller
// (C28).
void link::send(rma::rank_t to, const rma::message& m) {
  const wired::detail::envelope content = sealed(m);
  if (to == in_.rank()) {
    net_.step([&] { net_.inbox().push_back(content); });
    return;
  }
  while (!sent_.empty() &&
         (sent_.front().request == nullptr || !is_under_way(sent_.front().request))) {
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
  if (UCS_PTR_IS_ERR(request)) in_.lost(to, ucs_status_string(UCS_PTR_STATUS(request)));
  if (UCS_PTR_IS_PTR(request)) o.request = request;
}

std::unique_ptr<fabric::network> worker::connect(wired::detail::world& in,
                                                 const wired::detail::segment& cells,
                                                 bool patient) {
  return std::make_unique<link>(*this, in, cells, patient);
}

}  // namespace lockflight::ucx::detail
