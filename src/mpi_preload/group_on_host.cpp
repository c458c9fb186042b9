#include "mpi_preload/group_on_host.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <functional>
#include <string>
#include <system_error>

#include "base/boot_id.hpp"
#include "base/round_up.hpp"
#include "fabric/mpi/calls.hpp"
#include "mpi_preload/window_grant.hpp"

namespace lockflight::mpi_preload {
namespace {

using mpi::detail::agree;
using mpi::detail::communicator;

/// The network of ranks of one host, through which no operation goes. It only makes progress for
/// the program's own calls of MPI.
class progress_alone final : public fabric::network {
 public:
  void post(fabric::remote_kind, rma::rank_t, std::uint32_t, rma::word, rma::word*) override {
    not_here();
  }
  void post_compare_swap(rma::rank_t, std::uint32_t, rma::word, rma::word, rma::word*) override {
    not_here();
  }
  void complete(rma::rank_t) override { not_here(); }
  void complete_all() override { not_here(); }
  [[nodiscard]] bool pending() const override { return false; }
  void send(rma::rank_t, const rma::message&) override { not_here(); }
  [[nodiscard]] bool try_receive(rma::message&) override { return false; }

  // A probe makes progress unless it finds a message: both libraries then return at once. So this
  // probe asks for a tag that programs are unlikely to use, in a communicator of all processes: in
  // a communicator of one process MPICH makes no progress with the network.
  void progress() override {
    int there = 0;
    PMPI_Iprobe(MPI_ANY_SOURCE, tag_of_nothing(), MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
  }

 private:
  [[nodiscard]] static int tag_of_nothing() {
    static const int tag = [] {
      constexpr int below_the_last = 11;
      int* last = nullptr;
      int found = 0;
      PMPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, static_cast<void*>(&last), &found);
      return found != 0 ? *last - below_the_last : 0;
    }();
    return tag;
  }
  [[noreturn]] static void not_here() {
    throw std::logic_error("an operation between hosts in a group on one host");
  }
};

[[nodiscard]] int rank_in(MPI_Comm whole) {
  int rank = 0;
  PMPI_Comm_rank(whole, &rank);
  return rank;
}
[[nodiscard]] int ranks_of(MPI_Comm whole) {
  int ranks = 0;
  PMPI_Comm_size(whole, &ranks);
  return ranks;
}

// With a core for each rank a waiting rank uses its core, as everywhere in MPI; and one that waits
// makes progress, so it does not sleep.
[[nodiscard]] mpi::wait_policy policy_for(int ranks, int cores) {
  mpi::wait_policy policy = mpi::wait_policy::parse("auto", ranks, cores);
  policy.park = policy.spins == 0 && shm::detail::yields_reach_no_rank();
  return policy;
}

// The first words of a segment, which no window gets. In the first segment one of them says whether
// the first rank has dropped the group, and the others are for the ranks to meet.
constexpr std::uint32_t word_of_end = 0;
constexpr std::uint32_t word_of_meeting = rma::line_words;
constexpr std::uint32_t word_of_broadcast = word_of_meeting + words_of_meeting;
constexpr auto own_words = static_cast<std::uint32_t>(round_up(
    word_of_broadcast + host_segment::words_of_broadcast(sizeof(window_offer)), rma::line_words));

// Relaxed: the first rank only says that it will not come to this group again.
[[nodiscard]] bool says_it_ends(const host_segment& first) {
  return first.word(0, word_of_end).load(std::memory_order_relaxed) != 0;
}

[[nodiscard]] std::uint64_t find_number_of_this_host() {
  utsname names{};
  uname(&names);
  // Two machines may have one name, and two containers of a machine cannot open each other's files.
  std::string text = names.nodename + boot_id();
  struct stat processes {};
  if (stat("/proc/self/ns/pid", &processes) == 0) text += std::to_string(processes.st_ino);
  return std::hash<std::string>{}(text);
}

}  // namespace

std::uint64_t number_of_this_host() {
  static const std::uint64_t number = find_number_of_this_host();
  return number;
}

group_on_host::group_on_host(const name& called, MPI_Comm whole, int cores,
                             const common_settings& common)
    : window_group(called, whole, /*several_hosts=*/false,
                   /*first_words=*/0, own_words),
      machine_(rma::topology::flat(ranks_of(whole))),
      rank_(rank_in(whole)),
      common_(common),
      waiting_(policy_for(machine_.ranks(), cores)),
      link_(std::make_unique<progress_alone>()) {}

group_on_host::~group_on_host() = default;

host_segment* group_on_host::find(std::int32_t number) const {
  const std::lock_guard alone(guard_);
  return segments_[static_cast<std::size_t>(number)].is.get();
}

mpi::port& group_on_host::port_of(const window_place& at) { return find(at.segment)->port(); }

segment_source group_on_host::offer(const window_place& at) {
  descriptor made(memfd_create("lockflight", MFD_CLOEXEC));
  const std::size_t bytes =
      host_segment::bytes_of_piece(at.segment_words) * static_cast<std::size_t>(machine_.ranks());
  if (!made || ftruncate(made.get(), static_cast<off_t>(bytes)) != 0)
    throw std::system_error(errno, std::generic_category(), "memfd_create, ftruncate");
  const segment_source from{.process = getpid(), .descriptor = made.get()};
  segments_[static_cast<std::size_t>(at.segment)].offered = std::move(made);
  return from;
}

std::unique_ptr<host_segment> group_on_host::attached(const window_place& at,
                                                      const segment_source& from) {
  const std::string path =
      "/proc/" + std::to_string(from.process) + "/fd/" + std::to_string(from.descriptor);
  const descriptor opened(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!opened) throw cannot_share();
  const std::size_t bytes =
      host_segment::bytes_of_piece(at.segment_words) * static_cast<std::size_t>(machine_.ranks());
  void* const mapped =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, opened.get(), 0);
  if (mapped == MAP_FAILED) throw cannot_share();
  try {
    return std::make_unique<host_segment>(mapped, bytes, rank_, machine_, waiting_, *link_);
  } catch (...) {
    munmap(mapped, bytes);
    throw;
  }
}

void group_on_host::add_segment(const window_place& at, const segment_source& from,
                                MPI_Comm whole) {
  const auto number = static_cast<std::size_t>(at.segment);
  const communicator all = communicator::borrowed(whole);
  std::unique_ptr<host_segment> made;
  bool can_share = true;
  const std::string why = fault_in([&] {
    try {
      made = attached(at, from);
    } catch (const cannot_share&) {
      can_share = false;
    }
  });
  const auto settle = [&](std::unique_ptr<host_segment> is) {
    const std::lock_guard alone(guard_);
    segments_[number].failed = is == nullptr;
    segments_[number].is = std::move(is);
    segments_[number].offered = descriptor();  // all have opened it, or nobody will
  };
  try {
    // An exception that takes no memory: with another one in its place this rank would go on in
    // another way than the others.
    if (!mpi::detail::holds_on_all(all, can_share)) throw cannot_share();
    agree(all, why);
  } catch (...) {
    forget_segment(number);
    settle(nullptr);
    throw;
  }
  settle(std::move(made));
}

void group_on_host::prepare(const window_place& at, const segment_source& from, MPI_Comm whole) {
  if (at.segment_words != 0) add_segment(at, from, whole);
  // Another thread may be about to make it, for another window.
  host_segment* in = find(at.segment);
  for (; in == nullptr; in = find(at.segment)) {
    if (has_failed(at.segment)) throw limit_reached("the memory for its locks could not be made");
    sched_yield();
  }
  in->clear(at.first, at.words);
}

bool group_on_host::has_failed(std::int32_t number) const {
  const std::lock_guard alone(guard_);
  return segments_[static_cast<std::size_t>(number)].failed;
}

bool group_on_host::meets_in_memory() const {
  return common_.one_thread && find(0) != nullptr && !is_at_its_end();
}

// The bits that the number has on all ranks, and those that it lacks on all, are all bits if it is
// the same everywhere.
bool group_on_host::all_have(std::uint64_t number) {
  std::array<std::uint64_t, 2> bits{number, ~number};
  return find(0)->combine(word_of_meeting, bits.data(), 2, MPI_UINT64_T, MPI_BAND, says_it_ends) &&
         bits[0] != 0 && (bits[0] | bits[1]) == ~std::uint64_t{0};
}

bool group_on_host::broadcast(window_offer& offer) {
  return find(0)->broadcast(word_of_broadcast, &offer, sizeof offer, says_it_ends);
}

bool group_on_host::holds_on_all(bool holds) {
  std::uint64_t all_hold = holds ? 1 : 0;
  find(0)->combine(word_of_meeting, &all_hold, 1, MPI_UINT64_T, MPI_MIN);
  return all_hold != 0;
}

void group_on_host::combine(const window_place& at, void* values, int count, MPI_Datatype type,
                            MPI_Op op) {
  find(at.segment)->combine(at.first + at.words - words_of_meeting, values, count, type, op);
}

void group_on_host::report_to_first(const window_place& at) {
  find(at.segment)->report_to_first(at.first + at.words - words_of_meeting);
}

bool group_on_host::has_segment(const window_place& at) { return find(at.segment) != nullptr; }

void group_on_host::announce_end() {
  if (host_segment* const in = find(0))
    in->word(0, word_of_end).store(1, std::memory_order_relaxed);
}

bool group_on_host::is_at_its_end() const {
  const host_segment* const in = find(0);
  return in != nullptr && says_it_ends(*in);
}

}  // namespace lockflight::mpi_preload
