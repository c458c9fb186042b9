// The libfabric side of a process: an endpoint, on which packets arrive and operations complete.
#pragma once

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include <atomic>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fabric/libfabric/calls.hpp"
#include "fabric/libfabric/packet.hpp"
#include "fabric/wired/transport.hpp"

namespace lockflight::libfabric::detail {

/// The context of an operation that completes later: libfabric gets it with the operation and
/// returns it with the completion. Meanwhile its first bytes belong to the provider.
struct completion {
  fi_context2 of_provider{};
  bool is_receive = false;
  int error = 0;  ///< of libfabric
  bool done = false;
};

/// Takes the answers to a link's operations.
class answer_taker {
 public:
  virtual void take_answer(std::uint64_t waiter, rma::word result) = 0;

 protected:
  ~answer_taker() = default;
};

/// The way in which a link's operations are done; `automatic`: the one that suits the provider.
enum class operations_by : std::uint8_t { provider, messages, automatic };

/// As LOCKFLIGHT_LIBFABRIC_OPERATIONS says. Throws std::invalid_argument.
[[nodiscard]] operations_by wanted_operations();

class endpoint final : public wired::detail::transport {
 public:
  /// `wakes`: there will be a progress thread. Throws `unavailable`.
  endpoint(operations_by wanted, bool wakes);
  ~endpoint() override;

  [[nodiscard]] wired::detail::description describe() const override;
  [[nodiscard]] std::string protocol() const override;
  [[nodiscard]] bool atomics_by_cpu() const override { return by_messages_; }
  [[nodiscard]] bool target_takes_part() const override;
  [[nodiscard]] std::string address() const override;
  void set_addresses(std::vector<std::string> addresses, int rank, bool one_host) override;
  [[nodiscard]] std::unique_ptr<wired::detail::exposure> expose(std::byte* cells,
                                                                std::size_t bytes) override;
  [[nodiscard]] std::unique_ptr<fabric::network> connect(wired::detail::world& in,
                                                         const wired::detail::segment& cells,
                                                         bool patient) override;
  bool advance() override;
  [[nodiscard]] int events() override;
  [[nodiscard]] int longest_sleep_ms() override;
  [[nodiscard]] std::size_t connections() const override;

  // ---- by the holder of step() ----

  /// libfabric's name of a rank. Throws `unavailable`.
  [[nodiscard]] fi_addr_t peer(rma::rank_t of);
  /// Sends it at once, or as soon as libfabric takes it; to this rank itself, too.
  void send(rma::rank_t to, const packet& p);
  /// Answers to operations go there; null: nobody waits for any.
  void answer_to(answer_taker* taker) { taker_ = taker; }
  [[nodiscard]] fid_ep* handle() const { return endpoint_.get(); }

 private:
  /// A buffer for a packet that comes.
  struct receive_slot : completion {
    packet content;
  };
  friend class registered_cells;

  void open(const fi_info& chosen, bool wakes);
  void post_receive(receive_slot& into);
  [[nodiscard]] bool try_send(rma::rank_t to, const packet& p);
  bool send_queued();
  void handle_error();
  void arrived(const packet& p);
  [[nodiscard]] rma::word operate(const request& asks);

  struct free_info {
    void operator()(fi_info* i) const { fi_freeinfo(i); }
  };
  std::unique_ptr<fi_info, free_info> info_;
  bool by_messages_ = true;
  std::vector<std::string> addresses_;
  std::vector<fi_addr_t> peers_;  // [rank]
  int rank_ = -1;
  std::span<std::atomic<rma::word>> cells_;  // of this rank, which others operate on
  bool exposes_ = false;                     // others may operate on cells of this rank
  answer_taker* taker_ = nullptr;
  std::vector<std::deque<packet>> queued_;  // [rank]: what libfabric has not taken yet
  std::size_t queued_count_ = 0;
  std::vector<receive_slot> receives_;
  std::vector<receive_slot*> unposted_;  // receives for which libfabric had no room
  // Closed in the reverse of this order.
  owned<fid_fabric> fabric_;
  owned<fid_domain> domain_;
  owned<fid_av> addresses_known_;
  owned<fid_cq> completions_;
  owned<fid_ep> endpoint_;
};

}  // namespace lockflight::libfabric::detail
