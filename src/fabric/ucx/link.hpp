// The UCX side of a port.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "fabric/network/operations.hpp"
#include "fabric/ucx/worker.hpp"
#include "fabric/wired/link.hpp"
#include "fabric/wired/segment.hpp"

namespace lockflight::ucx::detail {

using fabric::remote_kind;

/// Posted operations, messages and progress of one rank in one run.
///
/// Each operation has a request of its own, which completes when the target has answered, so a
/// flush waits for those requests alone. If the CPU does the atomics, a put is a swap whose result
/// is not read: the software at the target would copy the bytes of a ucp_put with memcpy, which may
/// store a word twice, and the second store could undo another rank's change of the first. A card
/// writes a word at once: there a put is ucp_put, and needs a flush of its endpoint.
class link final : public wired::detail::link {
 public:
  link(worker& net, wired::detail::world& in, const wired::detail::segment& cells, bool patient);
  ~link() override;
  link(const link&) = delete;
  link& operator=(const link&) = delete;

  void post(remote_kind kind, rma::rank_t home, std::uint32_t index, rma::word value,
            rma::word* result) override;
  void post_compare_swap(rma::rank_t home, std::uint32_t index, rma::word expected,
                         rma::word desired, rma::word* result) override;
  void complete(rma::rank_t home) override;
  void complete_all() override;
  [[nodiscard]] bool pending() const override { return !under_way_.empty(); }

  void send(rma::rank_t to, const rma::message& m) override;

 private:
  struct operation {
    rma::word value = 0;
    rma::word ignored = 0;  ///< the result of an operation that has none
    rma::rank_t home = -1;
    bool flushes = false;  ///< the request says nothing of the target
    void* request = nullptr;
  };
  struct outgoing {
    wired::detail::envelope content;
    void* request = nullptr;
  };
  /// A rank's cells, as this one reaches them.
  struct target {
    ucp_ep_h endpoint = nullptr;
    ucp_rkey_h key = nullptr;
    std::uint64_t address = 0;
  };

  operation& begin(rma::rank_t home);
  [[nodiscard]] target& reach(rma::rank_t home);
  void post_atomic(ucp_atomic_op_t op, operation& s, std::uint32_t index, rma::word* result);
  /// Takes over the request that a call of UCX has returned.
  void started(operation& s, void* request);
  [[nodiscard]] bool is_under_way(void* request);
  void wait_for(void* request, rma::rank_t home);
  void flush_endpoint(rma::rank_t home);

  worker& net_;
  const wired::detail::segment& cells_;
  fabric::detail::operations<operation> under_way_;
  std::vector<target> targets_;  // [rank]
  std::deque<outgoing> sent_;
};

}  // namespace lockflight::ucx::detail
