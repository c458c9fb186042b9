#include "mpi_preload/group_on_host.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <system_error>

#include "base/round_up.hpp"
#include "fabric/mpi/calls.hpp"
#include "lockflight/rma/assert.hpp"

namespace lockflight::mpi_preload {
namespace {

using bells = shm::detail::bells;
using mpi::detail::agree;
using mpi::detail::communicator;

constexpr std::size_t page = 4096;

[[nodiscard]] std::string refused(const char* call) {
  return std::string(call) + ": " + std::strerror(errno);
}

/// Between ranks of one host nothing goes through a network. What is left is progress for the
/// program's own calls of MPI.
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
  // one asks for a tag that hardly a program uses, in a communicator of all processes: of a process
  // alone MPICH makes no progress with the network.
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

// In the first words of the first segment, which no window gets: whether the first rank has dropped
// the group.
constexpr std::uint32_t word_of_end = 0;

}  // namespace

namespace {

[[nodiscard]] std::uint64_t find_number_of_this_host() {
  utsname names{};
  uname(&names);
  std::string text = names.nodename;
  // Two machines may have one name, and two containers of a machine cannot open each other's files.
  std::ifstream boot("/proc/sys/kernel/random/boot_id");
  text.append(std::istreambuf_iterator<char>(boot), {});
  struct stat processes {};
  if (stat("/proc/self/ns/pid", &processes) == 0) text += std::to_string(processes.st_ino);
  return std::hash<std::string>{}(text);
}

}  // namespace

std::uint64_t number_of_this_host() {
  static const std::uint64_t number = find_number_of_this_host();
  return number;
}

/// Each rank's cells, with its bells in front of them, and this rank's port on them.
class group_on_host::segment {
 public:
  segment(void* at, std::size_t bytes, const group_on_host& of)
      : at_(static_cast<std::byte*>(at)), bytes_(bytes) {
    const auto ranks = static_cast<std::size_t>(of.machine_.ranks());
    for (std::size_t r = 0; r < ranks; ++r)
      base_.push_back(at_ + r * (bytes / ranks) + sizeof(bells));
    mine_ = base_[static_cast<std::size_t>(of.rank_)];
    port_ = std::make_unique<mpi::port>(of.rank_, of.machine_, base_,
                                        fabric::cpu_use{.only = true, .nic_cells = true},
                                        of.waiting_, *of.link_, /*serves=*/true);
  }
  ~segment() { munmap(at_, bytes_); }
  segment(const segment&) = delete;
  segment& operator=(const segment&) = delete;

  [[nodiscard]] mpi::port& port() { return *port_; }
  [[nodiscard]] std::atomic_ref<rma::word> word(rma::rank_t of, std::uint32_t index) const {
    return std::atomic_ref(
        *(reinterpret_cast<rma::word*>(base_[static_cast<std::size_t>(of)]) + index));
  }

  /// Zeroes words of this rank's cells. Those beyond all that were ever used are zero.
  void clear(std::uint32_t first, std::uint32_t count) {
    const std::uint32_t end = first + count;
    std::uint32_t from = zero_from_.load(std::memory_order_relaxed);
    const std::uint32_t used = std::clamp(from, first, end);
    std::memset(mine_ + std::size_t{first} * sizeof(rma::word), 0,
                std::size_t{used - first} * sizeof(rma::word));
    // Other threads of this process clear other words meanwhile.
    while (from < end && !zero_from_.compare_exchange_weak(from, end, std::memory_order_relaxed)) {
    }
    // A rank that learns from us that the zeroes are there finds them.
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }

  [[nodiscard]] static std::size_t bytes_of_piece(std::uint32_t words) {
    return round_up(sizeof(bells) + std::size_t{words} * sizeof(rma::word), page);
  }

 private:
  std::byte* at_;
  std::size_t bytes_;
  std::vector<std::byte*> base_;
  std::byte* mine_ = nullptr;
  std::atomic<std::uint32_t> zero_from_{0};
  std::unique_ptr<mpi::port> port_;
};

group_on_host::group_on_host(const name& called, MPI_Comm whole, int cores)
    : window_group(called, whole, ranks_of(whole) > cores, /*several_hosts=*/false,
                   /*first_words=*/0),
      machine_(rma::topology::flat(ranks_of(whole))),
      rank_(rank_in(whole)),
      waiting_(policy_for(machine_.ranks(), cores)),
      link_(std::make_unique<progress_alone>()) {}

group_on_host::~group_on_host() = default;

group_on_host::segment* group_on_host::find(std::int32_t number) const {
  const std::lock_guard alone(guard_);
  return segments_[static_cast<std::size_t>(number)].is.get();
}

mpi::port& group_on_host::port_of(const window_place& at) { return find(at.segment)->port(); }

segment_source group_on_host::offer(const window_place& at) {
  descriptor made(memfd_create("lockflight", MFD_CLOEXEC));
  const std::size_t bytes =
      segment::bytes_of_piece(at.segment_words) * static_cast<std::size_t>(machine_.ranks());
  if (!made || ftruncate(made.get(), static_cast<off_t>(bytes)) != 0)
    throw std::system_error(errno, std::generic_category(), "memfd_create, ftruncate");
  const segment_source from{.process = getpid(), .descriptor = made.get()};
  segments_[static_cast<std::size_t>(at.segment)].offered = std::move(made);
  return from;
}

std::unique_ptr<group_on_host::segment> group_on_host::attached(const window_place& at,
                                                                const segment_source& from) {
  const std::string path =
      "/proc/" + std::to_string(from.process) + "/fd/" + std::to_string(from.descriptor);
  const descriptor opened(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!opened) throw cannot_share(refused("open of the first rank's memory"));
  const std::size_t bytes =
      segment::bytes_of_piece(at.segment_words) * static_cast<std::size_t>(machine_.ranks());
  void* const mapped =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, opened.get(), 0);
  if (mapped == MAP_FAILED) throw cannot_share(refused("mmap of the first rank's memory"));
  try {
    return std::make_unique<segment>(mapped, bytes, *this);
  } catch (...) {
    munmap(mapped, bytes);
    throw;
  }
}

void group_on_host::add_segment(const window_place& at, const segment_source& from,
                                MPI_Comm whole) {
  const auto number = static_cast<std::size_t>(at.segment);
  const communicator all = communicator::borrowed(whole);
  std::unique_ptr<segment> made;
  std::string cannot;  // share memory
  std::string why;     // something else
  try {
    made = attached(at, from);
  } catch (const cannot_share& e) {
    cannot = e.what();
  } catch (const std::exception& e) {
    why = e.what();
  }
  const auto settle = [&](std::unique_ptr<segment> is) {
    const std::lock_guard alone(guard_);
    segments_[number].failed = is == nullptr;
    segments_[number].is = std::move(is);
    segments_[number].offered = descriptor();  // all have opened it, or nobody will
  };
  try {
    agree<cannot_share>(all, cannot);
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
  segment* in = find(at.segment);
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

// Each rank writes its values beside its own cells, says so, and reads those of all others when
// they are there. Two places take turns: a rank that has read all may write its next values while
// others still read these, and its next ones after that only once all have read these.
void group_on_host::combine(const window_place& at, void* values, int count, MPI_Datatype type,
                            MPI_Op op) {
  int size = 0;
  PMPI_Type_size(type, &size);
  const std::size_t bytes = static_cast<std::size_t>(count) * static_cast<std::size_t>(size);
  using line = std::array<rma::word, rma::line_words>;
  rma::ensure(bytes <= sizeof(line), "values that are combined are few");
  segment& in = *find(at.segment);
  const std::uint32_t turn_at = at.first + at.words - words_of_meeting;
  const rma::word turn = in.word(rank_, turn_at).load(std::memory_order_relaxed) + 1;
  const std::uint32_t place =
      turn_at + rma::line_words * (1 + static_cast<std::uint32_t>(turn % 2));
  line mine{};
  std::memcpy(mine.data(), values, bytes);
  for (std::uint32_t i = 0; i < mine.size(); ++i)
    in.word(rank_, place + i).store(mine[i], std::memory_order_relaxed);
  // Release, with the acquire of those that await it: they read these values.
  in.word(rank_, turn_at).store(turn, std::memory_order_release);

  line sum{};
  for (rma::rank_t r = 0; r < machine_.ranks(); ++r) {
    for (shm::detail::steps_of_wait wait;
         in.word(r, turn_at).load(std::memory_order_acquire) < turn; wait.next())
      link_->progress();  // it may need us for a call of MPI before this one
    line theirs{};
    for (std::uint32_t i = 0; i < theirs.size(); ++i)
      theirs[i] = in.word(r, place + i).load(std::memory_order_relaxed);
    if (r == 0)
      sum = theirs;
    else
      PMPI_Reduce_local(theirs.data(), sum.data(), count, type, op);
  }
  std::memcpy(values, sum.data(), bytes);
}

bool group_on_host::has_segment(const window_place& at) { return find(at.segment) != nullptr; }

void group_on_host::announce_end() {
  if (segment* const in = find(0)) in->word(0, word_of_end).store(1, std::memory_order_relaxed);
}

bool group_on_host::is_at_its_end() const {
  const segment* const in = find(0);
  return in != nullptr && in->word(0, word_of_end).load(std::memory_order_relaxed) != 0;
}

}  // namespace lockflight::mpi_preload
