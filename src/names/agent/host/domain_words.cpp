#include "names/agent/host/domain_words.hpp"

#include <fmt/format.h>
#include <atomic>

#include "base/random_number.hpp"
#include "fabric/shm/pause.hpp"
#include "lockflight/domain.hpp"
#include "names/life/machine_clock.hpp"
#include "names/locks/directory.hpp"
#include "names/locks/semaphore_kind.hpp"
#include "names/locks/users.hpp"

namespace lockflight::cluster {
namespace {

/// In a folder that only the agent's user can write to, also if the domain is a group's. The name
/// has the number of the domain file: another file's records mean nothing to it.
std::string records_path_of(detail::domain_file& file) {
  // Files that agents of an earlier domain file of that name have left go with the first agent of
  // this one.
  if (file.cluster().member == 0) {
    detail::unlink_files_beside(file.place());
    // A file with a number always has its origin, also if the agent is killed between the two.
    file.cluster().origin = detail::origin_of(file);
    file.cluster().member = random_number();
  }
  detail::require_original(file);
  const detail::domain_place place = detail::private_place(file.name());
  detail::make_folder(place);
  return fmt::format("{}.{:016x}.records", place.path, file.cluster().member.load());
}

}  // namespace

domain_words::domain_words(std::shared_ptr<detail::domain_file> file)
    : file_(std::move(file)),
      me_(detail::attach_thread(file_)),
      records_(records_path_of(*file_)) {}

bool domain_words::has_deadline_of_other_clock(instant ttl) const {
  if (deadline() == 0) return false;
  // An agent of an earlier version has not said which clock it reads. The number of a namespace
  // that has ended may be that of another one now: its deadline may be too far ahead, by our clock.
  const std::uint64_t of_agent = header().time_space;
  const bool is_other = of_agent != 0 && of_agent != detail::time_space();
  return is_other || deadline() > detail::boot_time() + ttl;
}

bool domain_words::has_deadline_ahead() const { return deadline() > detail::boot_time(); }

void domain_words::begin_with_own_clock(instant ttl) {
  if (has_deadline_of_other_clock(ttl)) {
    set_deadline(0);
    set_registered(0);
    wake_clients();
  }
  header().time_space = detail::time_space();
}

beat_number domain_words::next_beat(beat_number confirmed) {
  header().confirmed_beat = confirmed;
  return header().last_beat = random_number();
}

void domain_words::wake_clients() {
  // The words that clients are to read were stored before, and they have counted themselves as
  // sleepers before they read it for the last time.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (std::uint32_t i = 0; i < detail::bells; ++i) file_->bell(i).ring();
}

// ---- the words of a name ----

const domain_words::place* domain_words::find(const std::string& name) const {
  const auto known = places_.find(name);
  if (known != places_.end()) {
    if (known->second.serial_now->load() == known->second.serial) return &known->second;
    places_.erase(known);
  }
  const auto found = detail::find_lock(*file_, name);
  if (!found) return nullptr;
  const place where{found->line, found->serial, &detail::serial_of(*file_, *found)};
  return &(places_[name] = where);
}

const domain_words::place& domain_words::make(const std::string& name) {
  if (const place* const there = find(name)) return *there;
  const detail::domain_kind& kind = detail::kind_named(default_kind);
  try {
    static_cast<void>(detail::look_up(*me_, name, kind, kind.canonical({}), {}));
  } catch (const domain_error& e) {
    if (e.why != domain_error::reason::disagrees) throw;  // a client has made it meanwhile
  }
  return *find(name);
}

ownership domain_words::ownership_of(const std::string& name) const {
  const place* const where = find(name);
  return where == nullptr ? ownership{} : words_at(*where).get_ownership();
}

bool domain_words::swap_ownership(const std::string& name, ownership before, ownership after) {
  if (find(name) == nullptr && after == ownership{}) return before == after;
  const place& where = make(name);
  if (!words_at(where).swap_ownership(before, after)) return false;
  if (before != after)
    file_->bell_of_line(where.line + detail::words_in_file::ownership_at / rma::line_words)
        .ring_after_rmw();
  return true;
}

state domain_words::state_of(const std::string& name) const {
  const place* const where = find(name);
  return where == nullptr ? state{} : words_at(*where).get_state();
}

bool domain_words::swap_state(const std::string& name, state before, state after) {
  if (find(name) == nullptr && after == state{}) return before == after;
  return words_at(make(name)).swap_state(before, after);
}

void domain_words::if_unused(const std::string& name, const std::function<void()>& what) {
  const auto found = detail::find_lock(*file_, name);
  if (!found || !found->kind->can.tries) return;
  const auto lock = detail::lock_at(*me_, *found);
  if (!lock->acquire(mode::exclusive, limit::at_once())) return;
  what();
  lock->release(mode::exclusive);
}

bool domain_words::forget_unused() {
  constexpr int at_once = 1'000;
  int forgotten = 0;
  for (const auto& [name, line] : detail::lines_of_locks(*file_)) {
    if (!detail::words_in_file(*file_, line).are_unused()) continue;
    const auto found = detail::find_lock(*file_, name);
    if (!found || !found->kind->can.tries) continue;  // its lock would be waited for
    const detail::time_limit at_most{shm::detail::ns_from_now(10'000'000)};
    // A client that makes a name meanwhile comes first.
    try {
      if (detail::forget(*me_, name, *found, false, at_most) == nullptr) ++forgotten;
    } catch (const detail::directory_is_busy&) {
      return false;
    }
    places_.erase(name);
    if (forgotten == at_once) return false;
  }
  return true;
}

// ---- values ----

namespace {
/// A client that changes the directory meanwhile takes microseconds; one that is stopped does not
/// stop the agent.
detail::time_limit for_a_value() { return {shm::detail::ns_from_now(100'000'000)}; }
}  // namespace

std::vector<std::string> domain_words::names_with_values() const {
  std::vector<std::string> all;
  for (const auto& [name, line] : detail::lines_of_locks(*file_))
    if (const auto of = detail::user_name_of(name); of.is_value) all.emplace_back(of.name);
  return all;
}

bool domain_words::has_value(const std::string& name) const {
  return detail::find_value(*file_, name).has_value();
}

void domain_words::make_room_for_value(const std::string& name) {
  try {
    static_cast<void>(detail::room_for_value(*me_, name, 0, for_a_value()));
  } catch (const detail::directory_is_busy&) {  // a client that waits for the value makes it
  }
}

void domain_words::store_value(const std::string& name, const detail::stored_value& what) {
  if (!detail::find_value(*file_, name)) return;
  try {
    const auto block = detail::room_for_value(*me_, name, what.bytes.size(), for_a_value());
    const detail::value_words words(*file_, block);
    if (words.read() != what) words.write(what);
  } catch (const detail::directory_is_busy&) {
    throw domain_error(domain_error::reason::full,
                       "lock " + detail::shown(name) + ": no room for its value in time");
  }
}

bool domain_words::is_held_with(const std::string& name, std::uint64_t token) const {
  const auto found = detail::find_lock(*file_, name);
  if (!found) return false;
  const state now = state_of(name);
  return now.inside && detail::number_of(now.last) == token &&
         detail::is_held_alone(*file_, *found);
}

std::size_t domain_words::names_owned() const {
  std::size_t count = 0;
  for (const auto& [name, line] : detail::lines_of_locks(*file_)) {
    const ownership word = detail::words_in_file(*file_, line).get_ownership();
    if (word.owned != mode::none && word.incarnation == incarnation()) ++count;
  }
  return count;
}

std::vector<std::string> domain_words::names() const {
  std::vector<std::string> all;
  for (const auto& [name, line] : detail::lines_of_locks(*file_))
    if (!detail::words_in_file(*file_, line).are_unused()) all.push_back(name);
  return all;
}

}  // namespace lockflight::cluster
