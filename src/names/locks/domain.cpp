#include "lockflight/domain.hpp"

#include <algorithm>
#include <iterator>

#include "base/visible_text.hpp"
#include "fabric/shm/pause.hpp"
#include "names/cluster/client/elsewhere.hpp"
#include "names/cluster/client/words.hpp"
#include "names/life/removal.hpp"
#include "names/locks/attachment.hpp"
#include "names/locks/circle.hpp"
#include "names/locks/directory.hpp"
#include "names/locks/users.hpp"

namespace lockflight {
namespace {

using detail::slot_state;

int slot_of_this_thread(const detail::domain_file& file) {
  const auto ours = detail::attachment_of_thread(file);
  return ours ? ours->slot() : -1;
}

/// The file, ready for this process. Throws domain_error if its words are not those of this host,
/// or its deadline is not of the clock that this process reads.
std::shared_ptr<detail::domain_file> usable(std::shared_ptr<detail::domain_file> file) {
  if (file->is_of_cluster()) {
    detail::require_original(*file);
    detail::require_agents_clock(*file);
  }
  detail::mark_earlier_images(*file);
  return file;
}

}  // namespace

domain domain::open(std::string_view name, const domain_options& what) {
  auto file = detail::domain_file::open(name, what, true);
  // The agent may be about to be started again as long as the deadline is ahead.
  if (file->is_of_cluster() && !file->has_agent() &&
      (file->cluster().deadline <= detail::boot_time() || detail::reads_other_clock(*file)))
    throw domain_error(domain_error::reason::missing,
                       "domain " + file->name() + ": its agent does not run on this host (" +
                           file->place().path + "; lockflight agent --domain " +
                           file->name().substr(detail::cluster_prefix.size()) +
                           " --etcd URL starts it)");
  return domain(usable(std::move(file)));
}
domain domain::attach(std::string_view name, unsigned mode, const std::string& group) {
  return domain(usable(detail::domain_file::open(name, {.mode = mode, .group = group}, false)));
}

bool domain::remove(std::string_view name, bool force, unsigned mode, const std::string& group) {
  detail::check_domain_name(name);
  return detail::remove_domain(detail::place_of(name, mode, group), force, slot_of_this_thread,
                               detail::end_all);
}

std::vector<std::string> domain::list() {
  std::vector<std::string> names;
  for (const auto& one : detail::find_places("")) names.push_back(one.name);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::vector<domain_owner> domain::owners_of(std::string_view name) {
  detail::check_domain_name(name);
  std::vector<domain_owner> all;
  for (const auto& one : detail::find_places(name))
    all.push_back({one.mode, one.mode == 0600 ? "" : std::to_string(one.group)});
  return all;
}

std::string domain::warning_before_open(std::string_view name, unsigned mode) {
  if (detail::is_cluster_name(name) || detail::own_place(name)) return "";
  const std::string makes = "makes domain '" + std::string(name) + "'";
  const std::string of_cluster = std::string(detail::cluster_prefix) + std::string(name);
  const auto owners = owners_of(name);
  if (owners.empty())
    return owners_of(of_cluster).empty()
               ? ""
               : makes + ", which is of this machine alone; that of the cluster is '" + of_cluster +
                     "'";
  if (mode != 0 || name == default_domain || !detail::places_meant(name).empty()) return "";
  return makes + ", which is of this user alone; group " + owners.front().group +
         ", which this user is not in, has another one, with mode 0660";
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
  if (deadline <= 0)
    return std::chrono::nanoseconds::max();  // the host is not a member yet, or again
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
  const auto found = detail::all_locks(*file_);
  detail::examine_all(*file_);
  return detail::locks_as_users_see(*file_, found);
}

std::vector<lock_user> domain::users_of(std::string_view name, std::vector<std::string>* silent,
                                        std::chrono::milliseconds at_most) const {
  file_->check();
  std::vector<lock_user> all = detail::users_here(*file_, name);
  domain_elsewhere there = elsewhere(name, at_most);
  for (domain_lock& lock : there.locks) std::ranges::move(lock.users, std::back_inserter(all));
  if (silent != nullptr) *silent = std::move(there.silent);
  detail::sort_users(all);
  return all;
}

domain_elsewhere domain::elsewhere(std::string_view name, std::chrono::milliseconds at_most) const {
  domain_elsewhere found;
  if (!file_->is_of_cluster() || at_most.count() <= 0) return found;
  std::vector<std::string> question{std::string(detail::uses_question), std::string(name)};
  // The agent is to answer while there is time, with what it knows by then.
  if (at_most < hosts_answer_within) question.push_back(std::to_string(at_most.count() * 2 / 3));
  const auto lines = detail::ask_agent(*file_, question, at_most);
  if (!lines) {
    found.silent.emplace_back(domain_elsewhere::own_agent);
    return found;
  }
  found.locks = detail::locks_from(*lines);
  found.silent.assign(lines->back().begin() + 1, lines->back().end());
  return found;
}

std::string silence_text(const std::vector<std::string>& silent) {
  if (silent.empty()) return "";
  if (silent.back() == domain_elsewhere::unknown_hosts) {
    const std::string others = silence_text({silent.begin(), silent.end() - 1});
    return others + (others.empty() ? "" : ", and ") +
           "this host is cut off, so that hosts may have come that it has not heard of";
  }
  std::string text;
  for (const std::string& each : silent)
    text += (text.empty() ? "" : &each == &silent.back() ? " and " : ", ") + visible(each);
  const bool is_one = silent.size() == 1 && silent.front() != domain_elsewhere::every_host;
  text += is_one ? " does not answer" : " do not answer";
  if (silent.front() == domain_elsewhere::own_agent) text += ", so no other host was asked";
  return text;
}

std::vector<domain_lock> domain::locks_on_all_hosts(std::vector<std::string>* silent,
                                                    std::chrono::milliseconds at_most) const {
  std::vector<domain_lock> all = locks();
  domain_elsewhere there = elsewhere("", at_most);
  if (silent != nullptr) *silent = std::move(there.silent);
  for (domain_lock& lock : there.locks) {
    auto at = std::ranges::lower_bound(all, lock.name, {}, &domain_lock::name);
    if (at == all.end() || at->name != lock.name) {
      at = all.insert(at, domain_lock{});
      at->name = lock.name;
    }
    std::ranges::move(lock.users, std::back_inserter(at->users));
    detail::sort_users(at->users);
  }
  return all;
}

std::vector<lock_circle> domain::circles(const std::vector<domain_lock>& seen,
                                         std::chrono::milliseconds at_most) const {
  std::vector<lock_circle> found = detail::circles_among(seen, detail::parent_of_process);
  if (found.empty()) return found;
  // A participant that is about to go on may have been seen while it still waited.
  constexpr std::uint64_t between_looks_ns = 20'000'000;
  shm::detail::sleep_for_ns(between_looks_ns);
  const auto is_same = [](const circle_member& a, const circle_member& b) {
    return a.user.host == b.user.host && a.user.slot == b.user.slot && a.user.pid == b.user.pid &&
           a.holds == b.holds && a.waits_for == b.waits_for && a.user.for_ns <= b.user.for_ns;
  };
  const auto again =
      detail::circles_among(locks_on_all_hosts(nullptr, at_most), detail::parent_of_process);
  std::erase_if(found, [&](const lock_circle& each) {
    return std::ranges::none_of(
        again, [&](const lock_circle& other) { return std::ranges::equal(each, other, is_same); });
  });
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
  if (const int user = detail::slot_of_user(*file_, *found); user >= 0)
    throw held(detail::process_text(*file_, user) + " holds it or waits for it");
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
