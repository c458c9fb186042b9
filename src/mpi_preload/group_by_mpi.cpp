#include "mpi_preload/group_by_mpi.hpp"

#include <sched.h>

#include <array>
#include <utility>

#include "mpi_preload/by_messages.hpp"
#include "mpi_preload/errors.hpp"

namespace lockflight::mpi_preload {
namespace {

using mpi::detail::agree;
using mpi::detail::communicator;

// Over several hosts a waiting rank yields its core at once, also where it has one for itself: what
// it waits for takes a round trip of the network, and others may be what makes the holder wait.
[[nodiscard]] mpi::config config_for(MPI_Comm whole, rma::topology machine, std::uint32_t words,
                                     bool several_hosts) {
  return {.machine = std::move(machine),
          .waiting = several_hosts ? "yield" : "auto",
          .words_per_rank = words,
          .communicator = mpi::detail::number_of(whole),
          .serves = true,
          .patient = several_hosts,
          .in_parts = true};
}

constexpr std::size_t many_communicators = 64;

/// True if so many communicators of these ranks can be made, at most many_communicators. Takes no
/// memory of ours, which may be lacking on one rank alone. Collective, if the ranks are several.
[[nodiscard]] bool can_make_communicators(MPI_Comm of, std::size_t wanted) {
  std::array<MPI_Comm, many_communicators> made;
  std::size_t count = 0;
  MPI_Group ranks = MPI_GROUP_NULL;
  PMPI_Comm_group(of, &ranks);
  int code = MPI_SUCCESS;
  while (code == MPI_SUCCESS && count < wanted) {
    code = PMPI_Comm_create(of, ranks, &made[count]);
    if (code == MPI_SUCCESS) ++count;
  }
  while (count > 0) PMPI_Comm_free(&made[--count]);
  PMPI_Group_free(&ranks);
  return code == MPI_SUCCESS;
}

/// The same of many, of this process alone. Errors of `whole` are returned.
///
/// Not on MPI_COMM_SELF, whose handler would have to be replaced: in MPICH errors of other objects
/// go to the handler of MPI_COMM_SELF once it has been set.
[[nodiscard]] bool has_many_numbers_for_communicators(MPI_Comm whole) {
  const int rank = communicator::borrowed(whole).rank();
  MPI_Group ranks = MPI_GROUP_NULL;
  MPI_Group this_one = MPI_GROUP_NULL;
  PMPI_Comm_group(whole, &ranks);
  PMPI_Group_incl(ranks, 1, &rank, &this_one);
  MPI_Comm alone = MPI_COMM_NULL;
  const int code = PMPI_Comm_create_group(whole, this_one, /*tag=*/0, &alone);
  PMPI_Group_free(&this_one);
  PMPI_Group_free(&ranks);
  if (code != MPI_SUCCESS) return false;
  const communicator is(alone);
  return can_make_communicators(is.get(), many_communicators);
}

/// Errors about the MPI's own limits are for the drop-in to handle.
class [[nodiscard]] limits_are_returned : public returned_errors {
 public:
  explicit limits_are_returned(MPI_Comm whole)
      : returned_errors(with_handler::communicator(whole), /*also_fatal=*/true) {}
};

/// Finds out first whether there are so many communicators left, by calls that fail on all ranks
/// alike: MPICH ends the process when it has none for a window. A communicator takes a number that
/// is free on all its ranks, and the lowest ones are taken first. So where each rank has many free
/// ones, which a rank finds out alone, all have some in common; else they try.
void require_communicators(MPI_Comm whole, std::size_t wanted, bool have_many_on_all) {
  if (have_many_on_all) return;
  const communicator all = communicator::borrowed(whole);
  const bool can = can_make_communicators(whole, wanted);
  agree<limit_reached>(all, can ? "" : "MPI has no communicators left for others");
}

/// The communicators that a group takes, and that a segment takes.
constexpr std::size_t for_a_group = 12;
constexpr std::size_t for_a_segment = 4;

}  // namespace

group_by_mpi::group_by_mpi(const name& called, MPI_Comm whole, hosts_of_ranks hosts)
    : window_group(called, whole, hosts.several_hosts, usual_words), segments_(1) {
  segments_[0] = std::make_unique<mpi::membership>(
      config_for(whole, std::move(hosts.machine), usual_words, several_hosts()));
}

std::shared_ptr<group_by_mpi> group_by_mpi::made(const name& called, MPI_Comm whole,
                                                 std::string why_not) {
  const limits_are_returned meanwhile(whole);
  found_hosts found = find_hosts(whole, {.why_not = std::move(why_not),
                                         .has_numbers = has_many_numbers_for_communicators(whole)});
  require_communicators(whole, for_a_group, found.have_numbers);
  return std::make_shared<group_by_mpi>(called, whole, std::move(found.hosts));
}

std::size_t group_by_mpi::segments() const {
  const std::lock_guard alone(guard_);
  return segments_.size();
}

mpi::membership& group_by_mpi::segment(std::int32_t number) const {
  const std::lock_guard alone(guard_);
  const auto& found = segments_[static_cast<std::size_t>(number)];
  if (found == nullptr) throw limit_reached("the memory for its locks could not be made");
  return *found;
}

// Segments are made in the order of their numbers on all ranks, since that is collective over the
// group's own communicators.
void group_by_mpi::add_segment(const window_place& at, std::string why_not) {
  const auto number = static_cast<std::size_t>(at.segment);
  while (segments() != number) sched_yield();
  const std::string no_room = fault_in([&] {
    const std::lock_guard alone(guard_);
    segments_.reserve(number + 1);
  });
  std::unique_ptr<mpi::membership> made;
  if (why_not.empty())
    why_not = fault_in([&] {
      mpi::agree(no_room, segment(0).communicator());
      made = std::make_unique<mpi::membership>(segment(0), at.segment_words);
    });
  // The first rank gives no more of a segment that is not there.
  if (made == nullptr) forget_segment(number);
  const std::lock_guard alone(guard_);
  segments_.push_back(std::move(made));
  if (!why_not.empty()) throw limit_reached(why_not);
}

void group_by_mpi::prepare(const window_place& at, const segment_source& /*from*/, MPI_Comm whole) {
  if (at.segment_words != 0) {
    const limits_are_returned meanwhile(whole);
    add_segment(at, fault_in([&] {
                  require_communicators(
                      whole, for_a_segment,
                      mpi::detail::holds_on_all(communicator::borrowed(whole),
                                                has_many_numbers_for_communicators(whole)));
                }));
  }
  // Another thread may be about to make it, for another window.
  while (segments() <= static_cast<std::size_t>(at.segment)) sched_yield();
  segment(at.segment).clear(at.first, at.words);
}

void group_by_mpi::combine(const window_place& at, void* values, int count, MPI_Datatype type,
                           MPI_Op op) {
  combine_by_messages(communicator(), at.tag, values, count, type, op);
}

}  // namespace lockflight::mpi_preload
