#include "mpi_preload/windows.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdio>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/never_destroyed.hpp"
#include "fabric/mpi/calls.hpp"
#include "mpi_preload/bindings.hpp"
#include "mpi_preload/errors.hpp"
#include "mpi_preload/group_on_host.hpp"
#include "mpi_preload/launch.hpp"
#include "mpi_preload/settings.hpp"
#include "mpi_preload/threads.hpp"
#include "mpi_preload/window_groups.hpp"

namespace lockflight::mpi_preload {
namespace {

using mpi::detail::communicator;

struct list {
  std::shared_mutex guard;
  // The entry is null for a window that is being made, and for one that is left to MPI.
  std::unordered_map<MPI_Win, owned_window> windows;
  using entry = decltype(windows)::node_type;
};
list& all() {
  // A program that ends without MPI_Finalize still has windows.
  static never_destroyed<list> those;
  return those.value;
}

// True while the drop-in works: the windows that its fabric makes come through the same calls of
// MPI as the program's, and must not get locks themselves.
thread_local bool at_work = false;
class work {
 public:
  work() : before_(std::exchange(at_work, true)) {}
  ~work() { at_work = before_; }
  work(const work&) = delete;
  work& operator=(const work&) = delete;

 private:
  bool before_;
};

/// The facts that the ranks of a window know of each other before they make its locks.
struct common_ground {
  bool off = false;          // all of them
  bool left_to_mpi = false;  // there is nothing to do for this window
  common_settings settings;
  window_offer offer;                   ///< the first rank's
  std::shared_ptr<window_group> meets;  ///< the group, if it meets in memory; else null
  std::string why_not;                  ///< the fault on this rank, which the others do not know
};

/// Makes room in the list too, so that adding the window cannot fail on one rank alone.
void make_room(MPI_Win win) {
  list& those = all();
  const std::unique_lock change(those.guard);
  those.windows.try_emplace(win);
}

/// Finds the common ground by one collective call. Throws on all ranks alike.
[[nodiscard]] common_ground found_by_mpi(const communicator& group, MPI_Win win, MPI_Info info) {
  // A step that can fail on one rank alone may not fail before all ranks have met. The first
  // reading of the settings is such a step: it takes memory.
  static const settings unread;
  const settings* read = &unread;
  std::string why = fault_in([&] { read = &environment(); });
  const settings& mine = *read;
  std::uint64_t host = 0;
  bool wants_mpi = false;
  if (mine.off) why = "LOCKFLIGHT_MPI_OFF is set";
  if (why.empty())
    why = fault_in([&] {
      make_room(win);
      host = number_of_this_host();
      wants_mpi = wants_mpi_alone_over_hosts(info, static_cast<std::size_t>(group.size()));
    });
  const auto flag = [](bool is) { return std::uint64_t{is ? 1u : 0u}; };
  // The bits that are set on all ranks: of a flag, whether all have it. All are on one host if the
  // bits that its number has everywhere and those that it lacks everywhere are all bits.
  enum {
    off,
    no_statistics,
    no_hangs,
    no_nodes,
    one_thread,
    of_host,
    not_of_host,
    first_wants_mpi,
    no_fault,
    count
  };
  using offer_sent = std::array<std::uint64_t, sizeof(window_offer) / sizeof(std::uint64_t)>;
  struct {
    std::array<std::uint64_t, count> flags;
    offer_sent offer;
  } common{};
  const bool is_first = group.rank() == 0;
  common.flags = {flag(mine.off),
                  flag(!mine.statistics),
                  flag(mine.hang_seconds <= 0),
                  flag(!mine.has_nodes),
                  flag(!many_threads()),
                  host,
                  ~host,
                  flag(!is_first || wants_mpi),
                  flag(why.empty())};
  // The first rank's bits alone decide about these: the others have them all.
  common.offer.fill(~std::uint64_t{0});
  window_offer offered;
  if (is_first) {
    if (why.empty()) offered = offer_for(group.get(), info);
    common.offer = std::bit_cast<offer_sent>(offered);
  }
  mpi::detail::combine(group, &common, sizeof common / sizeof(std::uint64_t), MPI_UINT64_T,
                       MPI_BAND);
  const auto& all = common.flags;
  const bool is_faulty = all[no_fault] == 0;
  if (is_first && offered.is_one() && (all[off] != 0 || is_faulty)) withdraw(offered);
  if (all[off] == 0 && is_faulty) mpi::detail::agree(group, why);
  const bool on_one_host = (all[of_host] | all[not_of_host]) == ~std::uint64_t{0};
  const observation wanted{.counts = all[no_statistics] == 0, .hangs = all[no_hangs] == 0};
  return {
      .off = all[off] != 0,
      .left_to_mpi = !on_one_host && all[first_wants_mpi] != 0 && !wanted.counts && !wanted.hangs,
      .settings = {.on_one_host = on_one_host && all[no_nodes] != 0,
                   .one_thread = all[one_thread] != 0,
                   .wanted = wanted},
      .offer = std::bit_cast<window_offer>(common.offer),
      .meets = nullptr,
      .why_not = ""};
}

/// Finds the common ground through the memory of the ranks' group: the offer is new, and the rest
/// is as it was for the first window of the group. Nothing if the first rank has dropped the group.
/// Throws nothing. Collective.
[[nodiscard]] std::optional<common_ground> found_in_memory(std::shared_ptr<window_group> known,
                                                           MPI_Comm whole, MPI_Win win,
                                                           MPI_Info info) {
  common_ground found{
      .settings = known->settings_in_common(), .offer = {}, .meets = known, .why_not = ""};
  found.why_not = fault_in([&] { make_room(win); });
  if (known->is_first_rank()) found.offer = offer_for(whole, info);
  // The first rank may have dropped the group just now, with an offer that failed or with a spare
  // that is not wanted. The other ranks then see that, and do not wait for it here.
  if (known->is_first_rank() && known->is_at_its_end()) return std::nullopt;
  if (!known->broadcast(found.offer)) return std::nullopt;
  return found;
}

/// True if the first rank wants just these locks for a window with this info.
[[nodiscard]] bool are_wanted(const window& spare, MPI_Info info) {
  if (info == MPI_INFO_NULL && spare.is_usual()) return true;
  return wanted_scheme(info, *spare.grant().group) == spare.scheme();
}

/// The locks of a window that these ranks have freed, for this one. Nothing has to be made nor to
/// become zero for it: all locks are free, and go on from where they are. Null if they are not
/// wanted, or if some rank lacks them: a rank that freed the window with a lock held has kept none,
/// and its newest spare is of another window. Throws nothing. Collective.
[[nodiscard]] owned_window used_again(window_group& known, MPI_Win win, MPI_Info info) {
  owned_window spare = take_spare(known);
  bool can = spare != nullptr;
  if (can) {
    const std::string why_not = fault_in([&] {
      make_room(win);
      // The other ranks read their settings for the warnings.
      const bool wanted = are_wanted(*spare, info);
      if (known.is_first_rank()) can = wanted;
    });
    can = can && why_not.empty();
  }
  if (known.all_have(can ? spare->grant().at.serial : 0)) {
    spare->use_again(win);
    return spare;
  }
  if (spare != nullptr) {
    window_grant was = spare->grant();
    spare.reset();
    leave(std::move(was));
  }
  return nullptr;
}

/// Gives back the locks of a window that has ended, as a spare if they can be used again.
void give_back(owned_window was) {
  window_grant grant = was->grant();
  if (was->can_be_used_again() && keep_spare(*grant.group, was)) return;
  was.reset();
  leave(std::move(grant));
}

/// Throws on all ranks if there is a fault on some rank. Collective.
void agree(const common_ground& ground, const communicator& group, const std::string& why) {
  if (ground.meets != nullptr && ground.meets->holds_on_all(why.empty())) return;
  mpi::detail::agree(group, why);
}

/// Makes the locks of a window. Fails on all ranks alike. Collective.
[[nodiscard]] owned_window made(MPI_Win win, const communicator& group, MPI_Info info,
                                const common_ground& ground) {
  const bool is_offered = ground.offer.is_one();
  window_grant grant = is_offered ? accept(ground.offer, group.get(), info)
                                  : join(group.get(), info, ground.settings);
  owned_window one;
  std::string why = ground.why_not;
  if (why.empty())
    why = fault_in([&] {
      if (is_offered) grant.group->prepare(grant.at, {}, group.get());
      one.reset(new window(win, grant, ground.settings.wanted,
                           /*is_usual=*/info == MPI_INFO_NULL));
    });
  try {
    // From here on all ranks' words are zero.
    agree(ground, group, why);
  } catch (...) {
    one.reset();
    leave(std::move(grant));
    throw;
  }
  return one;
}

/// Reports why a window stays MPI's. All ranks call this, for the same reason. An error about one
/// of MPI's limits is reported once: later windows will hardly succeed.
void say(const communicator& group, const std::exception& why) {
  const bool is_limit = dynamic_cast<const limit_reached*>(&why) != nullptr;
  static std::atomic<bool> said = false;
  if (is_limit && said.exchange(true)) return;
  if (group.rank() != 0) return;
  std::fprintf(stderr, "lockflight: this window %skeeps the locks of MPI: %s\n",
               is_limit ? "and perhaps others to come " : "", why.what());
}

}  // namespace

namespace detail {

constinit std::atomic<std::uint64_t> changes{1};
constinit found_alone last_alone{};
[[gnu::tls_model("initial-exec")]] constinit thread_local found last{};

/// Makes all threads look up again the windows that they found before.
void list_has_changed() {
  changes.fetch_add(1, std::memory_order_release);
  // With many threads the word is null at all times, and so no thread writes it.
  if (last_alone.is != nullptr) last_alone.is = nullptr;
}

window* look_for(MPI_Win win) {
  const std::uint64_t now = changes.load(std::memory_order_acquire);
  list& those = all();
  const std::shared_lock look(those.guard);
  const auto at = those.windows.find(win);
  last = {win, at == those.windows.end() ? nullptr : at->second.get(), now};
  if (!many_threads_or_unknown() && !has_tool_behind()) last_alone = {win, last.is};
  return last.is;
}

}  // namespace detail

// The walk takes as long as some hundred checks in a program of few windows. A window that has
// asked in vain asks again after twice as many, so that walks over many windows cost little, too.
void stop_checks(window& asks) {
  list& those = all();
  const std::shared_lock look(those.guard);
  const bool can = std::none_of(those.windows.begin(), those.windows.end(), [](const auto& one) {
    return one.second != nullptr && one.second->needs_checks();
  });
  asks.has_stopped_checks(can);
  if (!can) return;
  for (const auto& one : those.windows)
    if (one.second != nullptr) one.second->note_operations_to_come();
  leave_calls_to_mpi();
}

void adopt(MPI_Win win, MPI_Comm whole, MPI_Info info) {
  if (at_work) return;
  const work ours;
  if (!has_launch()) return;
  const std::shared_ptr<window_group> known = group_that_meets(whole);
  if (known == nullptr && !is_of_this_launch(whole)) return;
  // An error of the drop-in's own calls is not the program's.
  const returned_errors meanwhile(with_handler::communicator(whole));
  const communicator group = communicator::borrowed(whole);
  list& those = all();
  try {
    owned_window one;
    if (known != nullptr) one = used_again(*known, win, info);
    if (one == nullptr) {
      std::optional<common_ground> ground;
      if (known != nullptr) ground = found_in_memory(known, whole, win, info);
      if (!ground) ground = found_by_mpi(group, win, info);
      if (ground->off || ground->left_to_mpi) return;
      one = made(win, group, info, *ground);
    }
    const std::unique_lock change(those.guard);
    those.windows.at(win) = std::move(one);
    detail::list_has_changed();
  } catch (const std::exception& why) {
    const std::unique_lock change(those.guard);
    those.windows.erase(win);
    say(group, why);
  }
}

bool is_left_to_mpi(MPI_Win win) {
  list& those = all();
  const std::shared_lock look(those.guard);
  const auto at = those.windows.find(win);
  return at != those.windows.end() && at->second == nullptr;
}

// The window's entry is out of the list before the MPI frees the window, since another thread may
// then make a window with the same handle. An entry that is put back takes no memory.
int freed(MPI_Win* win) {
  list& those = all();
  list::entry entry;
  if (win != nullptr) {
    const std::unique_lock change(those.guard);
    entry = those.windows.extract(*win);
    if (!entry.empty()) detail::list_has_changed();
  }
  if (entry.empty()) return pmpi().Win_free(win);
  const with_handler on = with_handler::window(*win);
  window* const ours = entry.mapped().get();
  if (ours != nullptr) ours->about_to_be_freed();
  const answer done = result_of(
      on, [&] { return pmpi().Win_free(win); }, /*frees=*/true);
  if (done.code != MPI_SUCCESS) {
    {
      const std::unique_lock change(those.guard);
      those.windows.insert(std::move(entry));
      detail::list_has_changed();
    }
    return raise(on, done);
  }
  if (ours == nullptr) return done.code;
  const work drop_in;
  keep_for_the_end(ours->summary());
  ours->end();
  give_back(std::move(entry.mapped()));
  return done.code;
}

void forget_all() {
  {
    list& those = all();
    const std::unique_lock change(those.guard);
    // Freeing is collective, and so is summing up; not even that all have these windows is sure
    // here. MPI's epochs end, as they would have without us.
    for (auto& one : those.windows)
      if (window* const left = one.second.release()) static_cast<void>(left->end_unused_epoch());
    those.windows.clear();
    detail::list_has_changed();
  }
  const work ours;
  end_idle_groups();
}

}  // namespace lockflight::mpi_preload
