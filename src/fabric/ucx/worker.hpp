// The UCX side of a process: a worker, and an endpoint for each rank that it has talked to.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fabric/ucx/calls.hpp"
#include "fabric/wired/transport.hpp"

namespace lockflight::ucx::detail {

class worker final : public wired::detail::transport {
 public:
  /// `wakes`: there will be a progress thread.
  explicit worker(bool wakes);
  ~worker() override;

  [[nodiscard]] wired::detail::description describe() const override;
  [[nodiscard]] std::string protocol() const override;
  [[nodiscard]] bool atomics_by_cpu() const override { return by_cpu_; }
  [[nodiscard]] bool target_takes_part() const override { return by_cpu_ || !has_card_; }
  [[nodiscard]] std::string address() const override;
  void set_addresses(std::vector<std::string> addresses, int rank, bool one_host) override;
  [[nodiscard]] std::unique_ptr<wired::detail::exposure> expose(std::byte* cells,
                                                                std::size_t bytes) override;
  [[nodiscard]] std::unique_ptr<fabric::network> connect(wired::detail::world& in,
                                                         const wired::detail::segment& cells,
                                                         bool patient) override;
  bool advance() override { return ucp_worker_progress(worker_) != 0; }
  [[nodiscard]] int events() override;
  [[nodiscard]] int longest_sleep_ms() override;
  [[nodiscard]] std::size_t connections() const override;
  void close_connections() override;

  /// The endpoint for a rank, made at the first call. It stays until close_connections().
  [[nodiscard]] ucp_ep_h endpoint(rma::rank_t to);

  [[nodiscard]] ucp_context_h context() const { return context_; }

 private:
  static ucs_status_t on_message(void* its, const void* header, std::size_t length, void*,
                                 std::size_t, const ucp_am_recv_param_t*);

  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  bool has_card_;
  bool by_cpu_;
  std::vector<std::string> addresses_;
  std::vector<ucp_ep_h> endpoints_;  // [rank]
};

/// The number of UCX's active message that carries an envelope.
constexpr unsigned message_id = 1;

}  // namespace lockflight::ucx::detail
