#include "fabric/oshmem/segment.hpp"

#include <algorithm>

#include "base/round_up.hpp"

namespace lockflight::oshmem::detail {
namespace {

constexpr std::size_t line = 64;

}  // namespace

static_assert(sizeof(long) == sizeof(rma::word), "a cell is a long to SHMEM");

// Each rank may have sent two messages that are not answered (C28); the rest saves senders from
// asking how many have been taken.
segment::segment(world& in, const std::vector<int>& node_of, bool together, std::uint32_t words)
    : slots_each_(std::max<std::size_t>(64, 4 * node_of.size())),
      mailbox_at_(
          round_up(sizeof(shm::detail::bells) + std::size_t{words} * sizeof(rma::word), line)),
      memory_(mailbox_at_ + sizeof(mailbox_ends) + slots_each_ * sizeof(message_slot)),
      mailbox_(reinterpret_cast<mailbox_ends*>(memory_.data() + mailbox_at_)),
      slots_(reinterpret_cast<message_slot*>(mailbox_ + 1)) {
  base_.assign(node_of.size(), nullptr);
  const auto me = static_cast<std::size_t>(in.rank);
  for (std::size_t r = 0; me < node_of.size() && r < node_of.size(); ++r)
    if (together || node_of[r] == node_of[me])
      base_[r] = in.reach(memory_.data(), static_cast<int>(r)) + sizeof(shm::detail::bells);
}

}  // namespace lockflight::oshmem::detail
