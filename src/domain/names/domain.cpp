#include "lockflight/domain.hpp"

#include <algorithm>
#include <map>

#include "base/clock.hpp"
#include "domain/cluster/elsewhere.hpp"
#include "domain/cluster/words.hpp"
#include "domain/membership/machine_clock.hpp"
#include "domain/membership/removal.hpp"
#include "domain/names/attachment.hpp"
#include "domain/names/directory.hpp"
#include "domain/names/semaphore_kind.hpp"
#include "fabric/shm/pause.hpp"
#include "lockflight/lock/robust/record.hpp"

namespace lockflight {
namespace {

using detail::slot_state;
using lock::record;

/// What each participant does with locks, by their first line.
std::multimap<std::uint32_t, domain_lock_use> all_uses(const detail::domain_file& file) {
  std::multimap<std::uint32_t, domain_lock_use> found;
  const std::int64_t shift_ns = detail::clock_shift_ns();
  detail::for_each_slot(file, [&](int i) {
    const auto& s = file.slot(i);
    const slot_state state = s.state();
    if (state == slot_state::free || detail::is_idle(file, i)) return;
    const bool is_foreign = detail::has_foreign_pid(file, i);
    for (std::uint32_t k = 0; k < detail::records; ++k) {
      const auto of =
          record::from(s.words[detail::first_record + k].load(std::memory_order_acquire));
      const auto phase = of.get(record::phase);
      if (phase != record::acquiring && phase != record::evicted && phase != record::holding &&
          phase != record::sharing)
        continue;
      const auto also = detail::thread_identity::from(s.guarded.load(std::memory_order_relaxed), 0);
      domain_lock_use use{.slot = i,
                          .pid = s.pid.load(std::memory_order_relaxed),
                          .guarded_pid = also.pid,
                          .dead = state == slot_state::dead,
                          .stopped = detail::is_stopped(s),
                          .has_foreign_pid = is_foreign};
      const bool has = phase == record::holding || phase == record::sharing;
      const auto& since = has ? s.holds_since[k] : s.waits_since;
      use.since_ns = detail::from_machine(since.load(std::memory_order_relaxed), shift_ns);
      if (phase == record::holding) use.what = domain_lock_use::how::holds;
      if (phase == record::sharing) use.what = domain_lock_use::how::shares;
      found.emplace(static_cast<std::uint32_t>(of.get(record::lock)), use);
    }
  });
  return found;
}

/// In a cluster's domain a token is the name's, and a client that waits for other hosts has the
/// lock of its own host meanwhile.
void show_among_hosts(const detail::domain_file& file, std::uint32_t line, domain_lock& one) {
  const detail::words_in_file words(file, line);
  const cluster::state is = words.get_state();
  const cluster::ownership owned = words.get_ownership();
  one.token = detail::number_of(is.last);
  one.owner_died = is.died;
  const bool suffices = owned.incarnation == words.incarnation() && owned.owned >= owned.wanted &&
                        owned.owned != cluster::mode::none;
  if (suffices) return;
  for (domain_lock_use& each : one.uses) each.what = domain_lock_use::how::waits;
}

/// Of the locks that a semaphore consists of its users see one: those that use its queue wait, and
/// those that hold a unit hold. A participant that is about to take a unit, or has just taken it,
/// has the queue as well.
void add_unit(int unit, const domain_lock& its, domain_lock& to) {
  for (domain_lock_use use : its.uses) {
    if (use.what == domain_lock_use::how::waits) continue;
    std::erase_if(to.uses, [&](const domain_lock_use& each) {
      return each.slot == use.slot && each.what == domain_lock_use::how::waits;
    });
    use.unit = unit;
    to.uses.push_back(use);
  }
  to.token = std::max(to.token, its.token);
  to.acquires += its.acquires;
  to.repairs += its.repairs;
  to.owner_died = to.owner_died || its.owner_died;
}

/// The semaphores and locks of users, from all that the directory has, in order of their names.
std::vector<domain_lock> as_users_see(std::vector<domain_lock> all) {
  std::sort(all.begin(), all.end(),
            [](const domain_lock& a, const domain_lock& b) { return a.name < b.name; });
  std::vector<domain_lock> seen;
  std::map<std::string, std::size_t, std::less<>> semaphores;
  for (domain_lock& each : all) {
    if (each.kind != detail::semaphore_kind().about.name) continue;
    each.units = detail::units_of_semaphore(each.parameters);
    each.token = 0;
    each.acquires = 0;
    each.owner_died = false;
    for (domain_lock_use& use : each.uses) use.what = domain_lock_use::how::waits;
  }
  for (domain_lock& each : all) {
    const auto name = detail::user_name_of(each.name);
    const auto of = semaphores.find(name.name);
    if (name.unit >= 0 && of != semaphores.end()) {
      add_unit(name.unit, each, seen[of->second]);
    } else if (name.unit < 0) {
      if (each.units > 0) semaphores.emplace(each.name, seen.size());
      seen.push_back(std::move(each));
    }
  }
  return seen;
}

using named_locks_found = std::vector<std::pair<std::string, detail::found_lock>>;

std::vector<domain_lock> shown(const detail::domain_file& file, const named_locks_found& named) {
  const auto uses = all_uses(file);
  std::vector<domain_lock> all;
  for (const auto& [name, found] : named) {
    const auto numbers = detail::numbers_of(file, found);
    domain_lock one{.name = name,
                    .kind = std::string(found.kind->about.name),
                    .parameters = detail::without_defaults(*found.kind, found.parameters),
                    .token = numbers.token,
                    .acquires = numbers.acquires,
                    .repairs = numbers.repairs,
                    .owner_died = numbers.owner_died,
                    .uses = {}};
    const auto [first, last] = uses.equal_range(found.line);
    for (auto at = first; at != last; ++at) one.uses.push_back(at->second);
    if (file.is_of_cluster()) show_among_hosts(file, found.line, one);
    all.push_back(std::move(one));
  }
  return as_users_see(std::move(all));
}

int slot_of_this_thread(const detail::domain_file& file) {
  const auto ours = detail::attachment_of_thread(file);
  return ours ? ours->slot() : -1;
}

}  // namespace

domain domain::open(std::string_view name, const domain_options& what) {
  auto file = detail::domain_file::open(name, &what, what.mode);
  // As long as the deadline is ahead, its agent may be about to be started again.
  if (file->is_of_cluster() && !file->has_agent() &&
      file->cluster().deadline <= detail::boot_time())
    throw domain_error(domain_error::reason::missing,
                       "domain " + file->name() + ": its agent does not run on this host (" +
                           file->place().path + "; lockflight agent --domain " +
                           file->name().substr(detail::cluster_prefix.size()) +
                           " --etcd URL starts it)");
  detail::mark_earlier_images(*file);
  return domain(std::move(file));
}
domain domain::attach(std::string_view name, unsigned mode) {
  auto file = detail::domain_file::open(name, nullptr, mode);
  detail::mark_earlier_images(*file);
  return domain(std::move(file));
}

bool domain::remove(std::string_view name, bool force, unsigned mode) {
  detail::check_domain_name(name);
  return detail::remove_domain(detail::place_of(name, mode, ""), force, slot_of_this_thread,
                               detail::end_all);
}

std::vector<std::string> domain::list() {
  std::vector<std::string> names;
  for (const auto& one : detail::find_places("")) names.push_back(one.name);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

const std::string& domain::name() const { return file_->name(); }
const domain_options& domain::options() const { return file_->options(); }
const std::string& domain::path() const { return file_->place().path; }
bool domain::still_valid() const { return file_->is_current(); }

bool domain::is_of_cluster() const { return file_->is_of_cluster(); }
std::chrono::nanoseconds domain::time_to_live() const {
  constexpr std::int64_t most = 3'600'000'000;  // the word may have been written over
  if (!is_of_cluster()) return std::chrono::nanoseconds(0);
  return std::chrono::microseconds(
      std::clamp<std::int64_t>(file_->cluster().time_to_live, 0, most));
}
std::chrono::nanoseconds domain::cut_off_for() const {
  if (!is_of_cluster()) return std::chrono::nanoseconds(0);
  const cluster::instant deadline = file_->cluster().deadline;
  if (deadline <= 0) return std::chrono::nanoseconds::max();  // it is not a member yet, or again
  const cluster::instant ago = detail::boot_time() - deadline;
  return std::chrono::microseconds(std::max<cluster::instant>(ago, 0));
}
bool domain::has_agent() const { return is_of_cluster() && file_->has_agent(); }

std::vector<domain_slot> domain::participants() const {
  file_->check();
  detail::examine_all(*file_);
  std::vector<domain_slot> all;
  detail::for_each_slot(*file_, [&](int i) {
    const auto& s = file_->slot(i);
    const slot_state state = s.state();
    if (state == slot_state::free || (state == slot_state::dead && detail::has_left(s))) return;
    all.push_back(
        {.slot = i,
         .pid = s.pid.load(std::memory_order_relaxed),
         .thread = s.tid.load(std::memory_order_relaxed),
         .dead = state == slot_state::dead,
         .stopped = state == slot_state::living && detail::is_stopped(s),
         .guarded_pid =
             detail::thread_identity::from(s.guarded.load(std::memory_order_relaxed), 0).pid,
         .command = detail::command_of(s),
         .has_foreign_pid = detail::has_foreign_pid(*file_, i)});
  });
  return all;
}

std::vector<domain_lock> domain::locks() const {
  file_->check();
  const auto named = detail::all_locks(*file_);
  detail::examine_all(*file_);
  return shown(*file_, named);
}

std::vector<domain_use_elsewhere> domain::uses_of(std::string_view name) const {
  file_->check();
  named_locks_found of_name;
  if (const auto found = detail::find_lock(*file_, name)) {
    of_name.emplace_back(name, *found);
    const int units =
        detail::is_semaphore(*found->kind) ? detail::units_of_semaphore(found->parameters) : 0;
    for (int unit = 0; unit < units; ++unit)
      if (const auto its = detail::find_lock(*file_, detail::name_of_unit(name, unit)))
        of_name.emplace_back(detail::name_of_unit(name, unit), *its);
  }
  detail::examine_all(*file_);
  std::vector<domain_use_elsewhere> all;
  const std::uint64_t now = now_ns();
  for (const domain_lock& each : shown(*file_, of_name))
    for (const domain_lock_use& use : each.uses) {
      const bool waits = use.what == domain_lock_use::how::waits;
      if (waits && use.dead) continue;  // nothing is left of it but a slot that a sweep frees
      const std::uint64_t since = use.since_ns == 0 ? now : std::min(use.since_ns, now);
      all.push_back({.host = "",
                     .name = each.name,
                     .what = use.what,
                     .pid = use.guarded_pid != 0 ? use.guarded_pid : use.pid,
                     .dead = use.dead,
                     .stopped = use.stopped,
                     .milliseconds = (now - since) / 1'000'000,
                     .command = detail::command_of(file_->slot(use.slot)),
                     .unit = use.unit,
                     .has_foreign_pid = use.has_foreign_pid});
    }
  for (domain_use_elsewhere& each : elsewhere(name).uses) all.push_back(std::move(each));
  std::stable_sort(all.begin(), all.end(),
                   [](const domain_use_elsewhere& a, const domain_use_elsewhere& b) {
                     const auto rank = [](const domain_use_elsewhere& of) {
                       return std::pair(of.what == domain_lock_use::how::waits, ~of.milliseconds);
                     };
                     return rank(a) < rank(b);
                   });
  return all;
}

domain_elsewhere domain::elsewhere(std::string_view name) const {
  domain_elsewhere found;
  if (!file_->is_of_cluster()) return found;
  constexpr auto at_most = std::chrono::milliseconds(2'000);
  const auto lines =
      detail::ask_agent(*file_, {std::string(detail::uses_question), std::string(name)}, at_most);
  if (!lines) return found;
  found.uses = detail::uses_from(*lines);
  found.silent.assign(lines->back().begin() + 1, lines->back().end());
  return found;
}

std::uint32_t domain::names() const {
  return file_->header().count.load(std::memory_order_relaxed);
}

std::uint64_t domain::deaths() const {
  return file_->header().died.load(std::memory_order_relaxed);
}

bool domain::remove_lock(std::string_view name) {
  detail::check_lock_name(name);
  const auto found = detail::find_lock(*file_, name);
  if (!found) return false;
  const auto me = detail::any_attachment(file_);
  detail::examine_all(*file_);
  const auto held = [&](const std::string& why) {
    return domain_error(domain_error::reason::held, "lock " + detail::shown(name) + ": " + why);
  };
  const auto uses = all_uses(*file_);
  const auto [first, last] = uses.equal_range(found->line);
  for (auto at = first; at != last; ++at)
    if (!at->second.dead)
      throw held(detail::process_text(*file_, at->second.slot) + " holds or awaits it");
  try {
    constexpr std::uint64_t at_most = 10'000'000'000;
    const detail::time_limit how_long{shm::detail::ns_from_now(at_most)};
    if (const char* const why_not = detail::forget(*me, name, *found, true, how_long))
      throw held(why_not);
  } catch (const detail::directory_is_busy&) {
    throw held("another process changes the directory and does not go on");
  }
  return true;
}

int domain::sweep() {
  file_->check();
  detail::examine_all(*file_);
  if (!detail::has_dead(*file_)) return 0;
  return detail::sweep(*detail::any_attachment(file_));
}

}  // namespace lockflight
