#include "mpi_preload/observer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "mpi_preload/settings.hpp"

namespace lockflight::mpi_preload {
namespace {

[[nodiscard]] std::string name_of(MPI_Win win) {
  char name[MPI_MAX_OBJECT_NAME] = {};
  int length = 0;
  PMPI_Win_get_name(win, name, &length);
  return length > 0 ? fmt::format("'{}'", std::string_view(name, static_cast<std::size_t>(length)))
                    : "without a name";
}

}  // namespace

observer::observer(MPI_Win of, rma::participant<mpi::port>& me, const scheme_name& scheme,
                   const observation& what)
    : win_(of),
      me_(me),
      scheme_(scheme),
      by_mpi_(scheme.lock_all == way_of_mpi),
      counts_(what.counts),
      observes_(what.counts || what.hangs),
      holder_(me.cells().take<rma::plain_cell>(1)),
      last_(me.cells().take<rma::plain_cell>(1)) {
  counted_.handoffs.resize(static_cast<std::size_t>(me_.machine().levels()));
  if (counts_) counted_.waited_for.resize(static_cast<std::size_t>(me_.machine().ranks()));
}

void observer::has_waited(const wait& what) {
  const double waited = PMPI_Wtime() - what.since;
  const auto k = static_cast<std::size_t>(what.kind);
  ++counted_.locks[k];
  counted_.waited_s[k] += waited;
  counted_.longest_wait_s = std::max(counted_.longest_wait_s, waited);
  // MPI may lock later than its call returns, so the holder is not known.
  if (what.kind != lock_kind::exclusive || by_mpi_) return;
  const rma::word last = rma::get_now(me_.port(), last_.at(what.target));
  if (last != 0 && static_cast<int>(last) - 1 != me_.rank())
    ++counted_.handoffs[static_cast<std::size_t>(
        me_.machine().common_level(static_cast<rma::rank_t>(last) - 1, me_.rank()) - 1)];
  rma::put_now(me_.port(), holder_.at(what.target), static_cast<rma::word>(me_.rank()) + 1);
}

// Each thread has its own record: several threads of a process may wait in one window, and leave in
// any order.
thread_local observer::wait* observer::waiting_ = nullptr;

void observer::released(lock_kind kind, int target) {
  if (!observes_ || kind != lock_kind::exclusive) return;
  me_.port().put(holder_.at(target), 0);
  me_.port().put(last_.at(target), static_cast<rma::word>(me_.rank()) + 1);
  me_.port().flush(target);
}

void observer::note_holder(lock_kind kind, int target) {
  if (kind == lock_kind::all || !counts_ || by_mpi_) return;
  const rma::word holder = rma::get_now(me_.port(), holder_.at(target));
  if (holder != 0) ++counted_.waited_for[static_cast<std::size_t>(holder - 1)];
}

void observer::tell_if_this_thread_hangs() {
  if (waiting_ != nullptr) waiting_->in->tell_if_it_hangs();
}

void observer::tell_if_it_hangs() {
  const double limit = environment().hang_seconds;
  if (limit <= 0 || waiting_ == nullptr || waiting_->told) return;
  const double waited = PMPI_Wtime() - waiting_->since;
  if (waited < limit) return;
  waiting_->told = true;
  const wait what = *waiting_;
  const std::string holder = holder_for(what);
  const std::string on = what.target >= 0 ? "target " + std::to_string(what.target) : "all targets";
  std::fprintf(stderr,
               "lockflight: rank %d has waited %.0f s for a%s lock on %s of the window %s%s\n",
               me_.rank(), waited, what.kind == lock_kind::exclusive ? "n exclusive" : " shared",
               on.c_str(), name_of(win_).c_str(), holder.c_str());
}

// On another node's target this takes a round trip; the caller is waiting anyway.
std::string observer::who_holds(int target) {
  const rma::word holder = rma::get_now(me_.port(), holder_.at(target));
  return holder != 0 ? "rank " + std::to_string(holder - 1) : "";
}

// Only exclusive holders are recorded. Without one the wait may be for those that share the target
// or have locked all, or behind another waiter, and none of these is known.
std::string observer::holder_for(const wait& what) {
  if (by_mpi_) return "; the MPI has its locks, and does not say which rank holds them";
  if (what.target >= 0)
    if (const std::string who = who_holds(what.target); !who.empty())
      return ", for " + who + ", which holds it exclusively";
  // lock_all waits for the holder of any target; where the window has one lock, so does an
  // exclusive lock.
  const bool for_any =
      what.target < 0 || (what.kind == lock_kind::exclusive && scheme_.lock_all == "global");
  if (for_any)
    for (std::size_t t = 0; t < static_cast<std::size_t>(me_.machine().ranks()); ++t)
      if (const std::string who = who_holds(static_cast<int>(t)); !who.empty())
        return ", for " + who + ", which holds target " + std::to_string(t) + " exclusively";
  return for_any ? "; no rank holds a target exclusively" : "; no rank holds it exclusively";
}

void observer::note_name() {
  if (counts_) name_ = name_of(win_);
}

std::string observer::summary(window_group& group, const window_place& at) const {
  if (!counts_) return "";
  std::string told = tell(counted_, name_, scheme_, group, at);
  group.report_to_first(at);
  return told;
}

}  // namespace lockflight::mpi_preload
