// The libfabric side of a port.
#pragma once

#include <cstdint>

#include "fabric/libfabric/endpoint.hpp"
#include "fabric/network/operations.hpp"
#include "fabric/wired/link.hpp"
#include "fabric/wired/segment.hpp"

namespace lockflight::libfabric::detail {

using fabric::remote_kind;

/// The place at which a provider finds a rank's cells: the text of exposure::key().
struct registered_place {
  std::uint64_t address = 0;
  std::uint64_t key = 0;
};

/// Posted operations, messages and progress of one rank in one run.
///
/// Every operation brings something back, an old value or an answer, so it is complete at its
/// target when that has come, and a flush waits for it alone (C7). By the provider a put is a swap
/// and an add a fetch-add whose results nobody reads: an operation that brings nothing back may be
/// complete before it has taken effect, and FI_WRITE might store a word twice. A get may be
/// FI_READ beside them: an aligned word of eight bytes is read with one load.
class link final : public wired::detail::link, public answer_taker {
 public:
  link(endpoint& net, wired::detail::world& in, const wired::detail::segment& cells, bool patient);
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

  void take_answer(std::uint64_t waiter, rma::word result) override;

 private:
  struct operation : completion {
    rma::word value = 0;
    rma::word compare = 0;
    rma::word before = 0;  ///< the value that came back
    rma::word* result = nullptr;
    rma::rank_t home = -1;
  };

  void begin(rma::rank_t home, const request& asks, rma::word* result);
  // In a step.
  void post_message(const operation& o, const request& asks);
  /// False if the provider has no room now.
  [[nodiscard]] bool post_to_provider(operation& o, const request& asks);

  endpoint& net_;
  const wired::detail::segment& cells_;
  fabric::detail::operations<operation> under_way_;
};

}  // namespace lockflight::libfabric::detail
