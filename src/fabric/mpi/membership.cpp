// A port without a body.
#include <optional>
#include <utility>

#include "fabric/mpi/link.hpp"
#include "fabric/mpi/venue.hpp"

namespace lockflight::mpi {

struct membership::parts {
  explicit parts(config what)
      : asked(std::make_shared<const config>(std::move(what))),
        at(std::make_shared<detail::venue>(
            detail::communicator::duplicate(detail::communicator_of(*asked->communicator)),
            *asked)) {
    if (!at->members) throw std::invalid_argument("the machine has fewer ranks than its members");
    make_port();
  }
  parts(const parts& beside, std::uint32_t words)
      : asked(beside.asked),
        at(beside.at),
        more(std::in_place, at->members, at->node, words, at->only_cpu, asked->in_parts) {
    make_port();
  }

  [[nodiscard]] detail::segment& cells() { return more ? *more : *at->cells; }

  void make_port() {
    const wait_policy policy = detail::policy_of(*asked, *at);
    std::string why;
    if (!asked->in_parts) why = fault_in([&] { cells().clear(); });
    // A rank that cannot go on keeps its part of the venue until all know, since all end the venue
    // together.
    if (why.empty())
      why = fault_in([&] {
        link.emplace(at->messages, cells().exposed(),
                     /*patient=*/policy.spins == 0 && (detail::spins_in_flush || asked->patient));
        access.emplace(at->members.rank(), asked->machine, cells().base(),
                       fabric::cpu_use{.only = at->only_cpu}, policy, *link, asked->serves);
      });
    // From here on all cells are zero.
    detail::agree(at->members, why);
  }

  std::shared_ptr<const config> asked;
  std::shared_ptr<detail::venue> at;
  std::optional<detail::segment> more;  // in place of the venue's own
  std::optional<detail::link> link;
  std::optional<port> access;
};

membership::membership(config what) : parts_(std::make_unique<parts>(std::move(what))) {}
membership::membership(const membership& beside, std::uint32_t words_per_rank)
    : parts_(std::make_unique<parts>(*beside.parts_, words_per_rank)) {}

// Progress goes on until all ranks have come, since they may still use our cells (C35).
membership::~membership() {
  parts_->access->flush();
  detail::meet(parts_->at->whole);
}

port& membership::access() { return *parts_->access; }
const rma::topology& membership::machine() const { return parts_->asked->machine; }
int membership::communicator() const { return detail::number_of(parts_->at->members.get()); }
void membership::clear(std::uint32_t first, std::uint32_t count) {
  parts_->cells().clear(first, count);
}

}  // namespace lockflight::mpi
