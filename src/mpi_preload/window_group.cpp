#include "mpi_preload/window_group.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "mpi_preload/launch.hpp"

namespace lockflight::mpi_preload {
namespace {

// Up to 128 MiB. Memory that no rank uses is not taken.
constexpr std::uint32_t most_words = 1u << 24;
// MPI promises tags up to 32,767, and lower ones have other uses.
constexpr std::int32_t first_tag = 16;
constexpr std::int32_t most_windows = 32'000;

[[nodiscard]] std::logic_error no_meetings() {
  return std::logic_error("a group that does not meet in memory");
}

}  // namespace

window_group::window_group(const name& called, MPI_Comm whole, bool several_hosts,
                           std::uint32_t first_words, std::uint32_t own_words)
    : called_(called),
      several_hosts_(several_hosts),
      first_of_windows_(std::max(own_words, rma::line_words)) {
  int rank = 0;
  PMPI_Comm_rank(whole, &rank);
  is_first_ = rank == 0;
  if (first_words > 0) {
    words_.emplace_back(word_ranges(first_of_windows_, first_words));
    words_in_all_ = first_words;
  }
  ranks_ = group_in_launch(whole);
}

window_group::~window_group() {
  int is_over = 0;
  PMPI_Finalized(&is_over);
  if (is_over == 0) PMPI_Group_free(&ranks_);
}

bool window_group::is_of(MPI_Group ranks) const {
  int how = MPI_UNEQUAL;
  PMPI_Group_compare(ranks, ranks_, &how);
  return how == MPI_IDENT;
}

bool window_group::all_have(std::uint64_t /*number*/) { throw no_meetings(); }
bool window_group::broadcast(window_offer& /*offer*/) { throw no_meetings(); }
bool window_group::holds_on_all(bool /*holds*/) { throw no_meetings(); }

bool window_group::has_tag() const { return !free_tags_.empty() || next_tag_ != most_windows; }

std::int32_t window_group::take_tag() {
  if (free_tags_.empty()) return first_tag + next_tag_++;
  const std::int32_t tag = free_tags_.back();
  free_tags_.pop_back();
  return tag;
}

// The serial begins anew after 2^32 windows.
void window_group::identify(window_place& at) {
  at.tag = take_tag();
  at.serial = ++last_serial_ != 0 ? last_serial_ : ++last_serial_;
}

// The segment is -1 if none has room.
window_place window_group::take_from_segments(std::uint32_t words) {
  window_place at{.words = words};
  for (std::size_t s = 0; s < words_.size() && at.segment < 0; ++s) {
    if (!words_[s]) continue;
    if (const auto first = words_[s]->take(words)) {
      at.segment = static_cast<std::int32_t>(s);
      at.first = *first;
    }
  }
  return at;
}

window_place window_group::reserve_in_segments(std::uint32_t words) {
  const std::lock_guard alone(guard_);
  if (!has_tag()) return {};
  window_place at = take_from_segments(words);
  if (at.segment >= 0) identify(at);
  return at;
}

// No part of a new segment can be given to other windows before the segment is offered.
reservation window_group::reserve(std::uint32_t words) {
  const std::lock_guard alone(guard_);
  if (!has_tag()) return {};
  reservation made{.at = take_from_segments(words)};
  window_place& at = made.at;
  if (at.segment < 0) {
    if (words_.size() == most_segments) return {};
    at.segment_words =
        std::max({words + first_of_windows_, usual_words, std::min(words_in_all_, most_words)});
    at.segment = static_cast<std::int32_t>(words_.size());
    word_ranges all_of_it(first_of_windows_, at.segment_words);
    at.first = all_of_it.take(words).value();
    words_.emplace_back(std::move(all_of_it));
    try {
      made.from = offer(at);
    } catch (...) {
      words_.pop_back();
      throw;
    }
    words_in_all_ += at.segment_words;
  }
  identify(at);
  return made;
}

// The place is reserved on the first rank alone.
void window_group::give_back(const window_place& at) {
  if (!is_first_ || at.tag < 0) return;
  const std::lock_guard alone(guard_);
  free_tags_.push_back(at.tag);
  auto& words = words_[static_cast<std::size_t>(at.segment)];
  if (words) words->give_back(at.first, at.words);
}

void window_group::forget_segment(std::size_t number) {
  const std::lock_guard alone(guard_);
  if (number < words_.size()) words_[number].reset();
}

}  // namespace lockflight::mpi_preload
