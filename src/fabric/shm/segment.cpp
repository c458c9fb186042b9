#include "segment.hpp"

#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <new>
#include <system_error>

#include "base/descriptor.hpp"
#include "base/round_up.hpp"
#include "lockflight/rma/assert.hpp"

namespace lockflight::shm::detail {
namespace {

constexpr std::size_t page = 4096;

/// A file in memory without a name.
descriptor anonymous_file(std::size_t bytes) {
  descriptor made(memfd_create("lockflight", MFD_CLOEXEC));
  if (!made) throw std::system_error(errno, std::generic_category(), "memfd_create");
  if (ftruncate(made.get(), static_cast<off_t>(bytes)) != 0)
    throw std::system_error(errno, std::generic_category(), "ftruncate of the shared segment");
  return made;
}

}  // namespace

std::uint32_t rounded_words(std::uint32_t words) {
  return std::bit_ceil(std::max(words, static_cast<std::uint32_t>(page / sizeof(rma::word))));
}

void control::report(rma::rank_t rank, const std::string& how) {
  if (reporting.exchange(1) != 0) {
    // A rank that fails at the same time stays until the first one's report is complete, else the
    // parent could find it dead without a report.
    while (aborted.load() == 0) sched_yield();
    return;
  }
  failed_rank = rank;
  failure[how.copy(failure.data(), failure.size() - 1)] = '\0';
  aborted.store(1);
}

segment::segment(int ranks, std::uint32_t words_per_rank) : ranks_(ranks) {
  const auto count = static_cast<std::size_t>(ranks);
  const std::size_t stride = std::size_t{rounded_words(words_per_rank)} * sizeof(rma::word);
  // Each client of a server may have two messages under way (C28); 64 is for small runs' bursts.
  view_.slots_each = std::bit_ceil(std::max<std::size_t>(64, 2 * count));

  const std::size_t bells = round_up(sizeof(control), page);
  const std::size_t mailboxes = bells + round_up(count * sizeof(detail::bells), page);
  const std::size_t slots = mailboxes + round_up(count * sizeof(mailbox_ends), page);
  const std::size_t cells = slots + round_up(count * view_.slots_each * sizeof(message_slot), page);
  bytes_ = cells + count * stride;

  const descriptor file = anonymous_file(bytes_);
  base_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file.get(), 0);
  if (base_ == MAP_FAILED)
    throw std::system_error(errno, std::generic_category(), "mmap of the shared segment");

  auto* const at = static_cast<std::byte*>(base_);
  view_.shared = new (at) control;
  view_.bells = reinterpret_cast<detail::bells*>(at + bells);
  view_.mailboxes = reinterpret_cast<mailbox_ends*>(at + mailboxes);
  view_.slots = reinterpret_cast<message_slot*>(at + slots);
  view_.cells = at + cells;
  view_.stride_shift = std::countr_zero(stride);
  // Bells, mailboxes and cells start as the kernel's zeroes (C22). A slot's turn would start as its
  // number; it is stored as an offset from that, so that these pages stay uncommitted as well.
}

void segment::lose(rma::rank_t rank) const {
  control& shared = *view_.shared;
  const std::uint32_t before = shared.losses.load(std::memory_order_relaxed);  // ours alone
  rma::ensure(before < static_cast<std::uint32_t>(ranks_), "a rank is lost once");
  shared.lost[before] = rank;
  // Release: a rank that sees the loss sees all writes of the lost rank, since we have seen its
  // end.
  shared.losses.store(before + 1, std::memory_order_release);
  // The fence comes before the reads of `parked`: a rank that marks itself after them reads the
  // losses once more.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (int r = 0; r < ranks_; ++r) view_.bells[r].ring_all();
}

segment::~segment() { munmap(base_, bytes_); }

}  // namespace lockflight::shm::detail
