// A port without a body.
#include <optional>
#include <utility>

#include "fabric/mpi/link.hpp"
#include "fabric/mpi/venue.hpp"

namespace lockflight::mpi {

struct membership::parts {
  explicit parts(config what)
      : asked(std::move(what)),
        at(detail::communicator::duplicate(MPI_Comm_f2c(*asked.communicator)), asked) {
    if (!at.members) throw std::invalid_argument("the machine has fewer ranks than its members");
    const wait_policy policy = detail::policy_of(asked, at);
    std::string why = detail::fault_in([&] { at.cells->clear(); });
    detail::meet(at.members);
    // One that cannot go on keeps its part of the venue until all know, since all end it together.
    if (why.empty())
      why = detail::fault_in([&] {
        link.emplace(at.messages, at.cells->exposed(),
                     /*patient=*/policy.spins == 0 && detail::spins_in_flush);
        access.emplace(at.members.rank(), asked.machine, at.cells->base(),
                       fabric::cpu_use{.only = at.only_cpu}, policy, *link, asked.serves);
      });
    detail::agree(at.members, why);
  }

  config asked;
  detail::venue at;
  std::optional<detail::link> link;
  std::optional<port> access;
};

membership::membership(config what) : parts_(std::make_unique<parts>(std::move(what))) {}

// Progress goes on until all ranks have come, since they may still use our cells (C35).
membership::~membership() {
  parts_->access->flush();
  detail::meet(parts_->at.whole);
}

port& membership::access() { return *parts_->access; }
const rma::topology& membership::machine() const { return parts_->asked.machine; }

}  // namespace lockflight::mpi
