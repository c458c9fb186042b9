#include "fabric/mpi/link.hpp"

#include <atomic>
#include <utility>

namespace lockflight::mpi::detail {
namespace {

constexpr int tag = 1;
constexpr int tag_of_nothing = 2;
constexpr int words_of_message = 4;

MPI_Aint displacement(std::uint32_t index) { return static_cast<MPI_Aint>(index); }

MPI_Op op_of(remote_kind kind) {
  switch (kind) {
    case remote_kind::get:
      return MPI_NO_OP;
    case remote_kind::put:
    case remote_kind::swap:
      return MPI_REPLACE;
    default:
      return MPI_SUM;
  }
}

}  // namespace

link::link(const communicator& messages, MPI_Win exposed, bool patient, rma::word run)
    : messages_(messages), run_(run), exposed_(exposed), patient_(patient) {}

link::~link() {
  for (outgoing& o : sent_) PMPI_Wait(&o.request, MPI_STATUS_IGNORE);
  for (auto& [lines, column] : columns_) PMPI_Type_free(&column);
}

// All operations are of the accumulate family, gets and puts too: only those are atomic with each
// other, word by word (C1, C3).
void link::post(remote_kind kind, rma::rank_t home, std::uint32_t index, rma::word value,
                rma::word* result) {
  operation& s = begin(home);
  s.value = value;
  const MPI_Op op = op_of(kind);
  if (patient_) {
    // An operation without a result gets one all the same: the request of an MPI_Raccumulate
    // completes when the origin may be reused, this one when the target has answered.
    check(PMPI_Rget_accumulate(&s.value, 1, MPI_UINT64_T, result != nullptr ? result : &s.ignored,
                               1, MPI_UINT64_T, home, displacement(index), 1, MPI_UINT64_T, op,
                               exposed_, &s.request),
          "MPI_Rget_accumulate");
  } else if (result != nullptr) {
    check(
        PMPI_Fetch_and_op(&s.value, result, MPI_UINT64_T, home, displacement(index), op, exposed_),
        "MPI_Fetch_and_op");
  } else {
    check(PMPI_Accumulate(&s.value, 1, MPI_UINT64_T, home, displacement(index), 1, MPI_UINT64_T, op,
                          exposed_),
          "MPI_Accumulate");
  }
}

// Posts one operation, in which each word is read atomically by itself.
void link::post_lines(rma::rank_t home, std::uint32_t index, std::span<rma::word> results) {
  operation& s = begin(home);
  const auto words = static_cast<int>(results.size());
  const MPI_Datatype there = column(results.size());
  if (patient_)
    check(PMPI_Rget_accumulate(nullptr, 0, MPI_UINT64_T, results.data(), words, MPI_UINT64_T, home,
                               displacement(index), 1, there, MPI_NO_OP, exposed_, &s.request),
          "MPI_Rget_accumulate");
  else
    check(PMPI_Get_accumulate(nullptr, 0, MPI_UINT64_T, results.data(), words, MPI_UINT64_T, home,
                              displacement(index), 1, there, MPI_NO_OP, exposed_),
          "MPI_Get_accumulate");
}

MPI_Datatype link::column(std::size_t lines) {
  const auto [at, is_new] = columns_.try_emplace(lines, MPI_DATATYPE_NULL);
  if (is_new) {
    check(PMPI_Type_vector(static_cast<int>(lines), 1, static_cast<int>(rma::line_words),
                           MPI_UINT64_T, &at->second),
          "MPI_Type_vector");
    check(PMPI_Type_commit(&at->second), "MPI_Type_commit");
  }
  return at->second;
}

void link::post_compare_swap(rma::rank_t home, std::uint32_t index, rma::word expected,
                             rma::word desired, rma::word* result) {
  operation& s = begin(home);
  s.value = desired;
  s.compare = expected;
  check(PMPI_Compare_and_swap(&s.value, &s.compare, result, MPI_UINT64_T, home, displacement(index),
                              exposed_),
        "MPI_Compare_and_swap");
  // MPI has no compare-and-swap with a request. An operation posted after it that changes nothing
  // (index 0 is never given out, C21) is answered at about the same time.
  if (patient_)
    check(PMPI_Rget_accumulate(nullptr, 0, MPI_UINT64_T, &s.ignored, 1, MPI_UINT64_T, home, 0, 1,
                               MPI_UINT64_T, MPI_NO_OP, exposed_, &s.request),
          "MPI_Rget_accumulate");
}

link::operation& link::begin(rma::rank_t home) {
  if (under_way_.full()) complete_all();  // as early as C5 allows
  return under_way_.add(home);
}

// Each test also serves other ranks, so two ranks that wait for each other's answer both proceed.
void link::wait_patiently(rma::rank_t home) {
  under_way_.for_each_to(
      home, [](operation& o) { finish(std::exchange(o.request, MPI_REQUEST_NULL), "MPI_Test"); });
}

void link::complete(rma::rank_t home) {
  if (!under_way_.any_to(home)) return;
  if (patient_) wait_patiently(home);
  // A completed request means only that the result is here; this call completes the operation at
  // the target (C7).
  check(PMPI_Win_flush(home, exposed_), "MPI_Win_flush");
  under_way_.release(home);
  // Our later loads come after the answers.
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

void link::complete_all() { fabric::detail::complete_each(under_way_, *this); }

// Every MPI sends a few words at once (eagerly). A message that a library delays nevertheless waits
// in this queue, not in the caller (C28).
void link::send(rma::rank_t to, const rma::message& m) {
  while (!sent_.empty()) {
    int done = 0;
    check(PMPI_Test(&sent_.front().request, &done, MPI_STATUS_IGNORE), "MPI_Test");
    if (done == 0) break;
    sent_.pop_front();
  }
  outgoing& o = sent_.emplace_back();
  o.content = {m.body[0], m.body[1], m.body[2], run_};
  check(PMPI_Isend(o.content.data(), words_of_message, MPI_UINT64_T, to, tag, messages_.get(),
                   &o.request),
        "MPI_Isend");
}

bool link::try_receive(rma::message& got) {
  while (true) {
    int there = 0;
    MPI_Status status;
    check(PMPI_Iprobe(MPI_ANY_SOURCE, tag, messages_.get(), &there, &status), "MPI_Iprobe");
    if (there == 0) return false;
    envelope content{};
    check(PMPI_Recv(content.data(), words_of_message, MPI_UINT64_T, status.MPI_SOURCE, tag,
                    messages_.get(), MPI_STATUS_IGNORE),
          "MPI_Recv");
    if (content[3] != run_) continue;  // left over from an earlier run
    got = {status.MPI_SOURCE, {content[0], content[1], content[2]}};
    return true;
  }
}

// A probe makes progress, active messages of one-sided operations included, unless it finds a
// matching message: both libraries then return at once. So this one asks for a message that no rank
// sends.
void link::progress() {
  int there = 0;
  check(PMPI_Iprobe(MPI_ANY_SOURCE, tag_of_nothing, messages_.get(), &there, MPI_STATUS_IGNORE),
        "MPI_Iprobe");
}

}  // namespace lockflight::mpi::detail
