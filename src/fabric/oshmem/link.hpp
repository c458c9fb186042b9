// The SHMEM side of a port.
#pragma once

#include <vector>

#include "fabric/oshmem/segment.hpp"
#include "fabric/oshmem/world.hpp"

namespace lockflight::oshmem::detail {

using fabric::remote_kind;

/// Posted operations, messages and progress of one rank in one run.
///
/// A call of SHMEM that returns a value has taken effect when it returns; the others, and gets,
/// complete in shmem_quiet, which waits for those to all ranks. A message is put into a slot of its
/// receiver's mailbox, whose number the sender has fetched; the number goes last.
class link final : public fabric::network {
 public:
  link(world& in, const segment& cells);

  void post(remote_kind kind, rma::rank_t home, std::uint32_t index, rma::word value,
            rma::word* result) override;
  void post_compare_swap(rma::rank_t home, std::uint32_t index, rma::word expected,
                         rma::word desired, rma::word* result) override;
  void complete(rma::rank_t) override { complete_all(); }
  void complete_all() override;
  [[nodiscard]] bool pending() const override { return loose_; }

  void send(rma::rank_t to, const rma::message& m) override;
  [[nodiscard]] bool try_receive(rma::message& got) override;

  void progress() override { in_.progress(); }

 private:
  void wait_for_room(rma::rank_t to, long number);
  [[nodiscard]] bool take(rma::message& got);

  world& in_;
  const segment& cells_;
  bool loose_ = false;        // a call that shmem_quiet completes
  long taken_ = 0;            // messages received
  std::vector<long> others_;  // [rank]: messages that it has received, as far as this rank knows
};

}  // namespace lockflight::oshmem::detail
