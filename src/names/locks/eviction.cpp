// Names are removed when their users ask for it, and when there is no room for others.
#include <algorithm>
#include <ctime>
#include <functional>
#include <stdexcept>
#include <utility>

#include "fabric/shm/pause.hpp"
#include "lockflight/lock/robust/record.hpp"
#include "names/locks/block.hpp"
#include "names/locks/directory_lock.hpp"
#include "names/locks/value.hpp"

namespace lockflight::detail {

using rma::word;

namespace {

/// Frees the block of a name that is not in use. False if the name has another lock by now.
bool take_out(const domain_file& file, std::string_view name, const found_lock& what) {
  domain_header& h = file.header();
  std::uint32_t before = 0;
  std::uint32_t line = 0;
  blocks::walk(file, blocks::bucket_of(file, name).load(),
               [&](std::uint32_t at, const domain_class&) {
                 if (at == what.line) return line = at, true;
                 return before = at, false;
               });
  if (line == 0 || blocks::read(file, line, blocks::serial_word) != what.serial) return false;
  h.tokens.store(
      std::max(h.tokens.load(), what.tokens_before + blocks::read(file, line, blocks::token_word)));
  // This comes first: a handle that acquires after us finds that this is not its lock any more.
  blocks::put(file, line, blocks::serial_word, 0);
  const word next = blocks::read(file, line, blocks::next_word);
  if (before == 0)
    blocks::bucket_of(file, name)
        .store(static_cast<std::uint32_t>(next), std::memory_order_release);
  else
    blocks::put(file, before, blocks::next_word, next);
  h.count.fetch_sub(1);
  domain_class& c = blocks::class_at(file, blocks::class_of_block(file, line));
  // A reader that is at this block goes on to free ones, and finds that something has changed.
  blocks::put(file, line, blocks::next_word, std::exchange(c.free, line));
  return true;
}

/// Removes the units of a semaphore whose queue the caller holds, so that no participant takes a
/// unit meanwhile. Null if that was done, else why not.
const char* forget_units(attachment& by, std::string_view name, const found_lock& what,
                         bool on_request, const time_limit& how_long) {
  // Any unit may have been used before others were set.
  const unit_set units =
      what.has_set_units ? unit_set::first(most_units) : units_of_semaphore(what.parameters);
  for (int unit = units.at_or_after(0); unit >= 0; unit = units.at_or_after(unit + 1)) {
    const std::string name_of_it = name_of_unit(name, unit);
    const auto found = find_lock(by.file(), name_of_it);
    if (!found) continue;
    if (const char* const why_not = forget(by, name_of_it, *found, on_request, how_long))
      return why_not;
  }
  return nullptr;
}

/// Removes what belongs to a lock that the caller holds, and has names of its own. Null if that was
/// done, else why not.
const char* forget_parts(attachment& by, std::string_view name, const found_lock& what,
                         bool on_request, const time_limit& how_long) {
  if (is_semaphore(*what.kind)) return forget_units(by, name, what, on_request, how_long);
  if (what.kind == &value_kind()) return nullptr;
  const auto value = find_value(by.file(), name);
  return value ? forget(by, name_of_value(name), *value, true, how_long) : nullptr;
}

/// True if the name is that of the value of a lock that there is: the value goes with its lock.
bool is_kept_value(const domain_file& file, std::string_view name) {
  const user_name of = user_name_of(name);
  return of.is_value && blocks::find_line(file, of.name) != 0;
}

/// True if the name's work counts as done at present, by the wall clock, which its users go by.
bool is_done_now(const domain_file& file, std::uint32_t line) {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return blocks::read(file, line, blocks::done_until_word) > static_cast<word>(now.tv_sec);
}

/// True if the choice of an operator would be lost with the name. That of a cluster is in etcd.
bool keeps_set_units(const domain_file& file, const found_lock& what) {
  return what.has_set_units && !file.is_of_cluster();
}

}  // namespace

bool make_room(attachment& by, const time_limit& how_long) {
  constexpr std::size_t at_once = 1024;
  std::size_t freed = 0;
  std::vector<std::uint32_t> in_use;
  const domain_file& file = by.file();
  for_each_slot(file, [&](int i) {
    for (std::uint32_t k = 0; k < records; ++k)
      if (const auto of = lock::record::from(file.slot(i).words[first_record + k].load());
          of.get(lock::record::phase) != lock::record::idle)
        in_use.push_back(static_cast<std::uint32_t>(of.get(lock::record::lock)));
  });
  std::sort(in_use.begin(), in_use.end());
  auto all = all_locks(file);
  std::erase_if(all, [&](const auto& one) {
    return std::binary_search(in_use.begin(), in_use.end(), one.second.line) ||
           !one.second.kind->can.tries || is_done_now(file, one.second.line) ||
           is_kept_value(file, one.first) || keeps_set_units(file, one.second);
  });
  std::sort(all.begin(), all.end(),
            [](const auto& a, const auto& b) { return a.second.serial < b.second.serial; });
  for (const auto& [name, found] : all)
    if (forget(by, name, found, false, how_long) == nullptr && ++freed == at_once) break;
  return freed > 0;
}

const char* forget(attachment& by, std::string_view name, const found_lock& what, bool on_request,
                   const time_limit& how_long) {
  // The agent writes to the words of names that are not in use on this host.
  if (by.file().is_of_cluster() && !by.file().is_agent())
    return "the agent alone forgets names of a cluster's domain";
  const auto lock = lock_at(by, what);
  // A lock without attempts is waited for, mostly not for long, since it is not in use.
  const std::function<bool()> is_late = [&] { return now_ns() >= how_long.until_ns; };
  try {
    const port_interrupt ends(by.port(), is_late);
    if (!lock->acquire(mode::exclusive,
                       what.kind->can.tries ? limit::at_once() : limit::for_ever()))
      return "somebody holds or awaits it";
  } catch (const std::length_error&) {
    return "this thread holds as many locks as it can";
  }
  const char* why_not = nullptr;
  try {
    // In a cluster the name's own words say whether a holder died. And a waiter of a semaphore may
    // have died at the head of the queue, which guards nothing.
    const bool marks_deaths = !by.file().is_of_cluster() && !is_semaphore(*what.kind);
    if (lock->owner_died() && !on_request && marks_deaths) {
      why_not = "a holder died in it";
    } else if (is_done_now(by.file(), what.line) && !on_request) {
      why_not = "its work counts as done, and would be done again";
    } else if (keeps_set_units(by.file(), what) && !on_request) {
      why_not = "its units were set";
    } else if (by.file().is_of_cluster() && !words_in_file(by.file(), what.line).are_unused()) {
      why_not = "this host owns it among the hosts of the cluster";
    } else {
      why_not = forget_parts(by, name, what, on_request, how_long);
      if (why_not == nullptr) {
        const directory_lock hold(by, how_long);
        // (!) The lock of a value may have been made since the caller looked, and its holder may be
        // about to write the value.
        if (!on_request && is_kept_value(by.file(), name))
          why_not = "it is the value of a lock";
        else if (!take_out(by.file(), name, what))
          why_not = "the name has another lock by now";
      }
    }
  } catch (...) {
    lock->release(mode::exclusive);
    throw;
  }
  lock->release(mode::exclusive);
  static_cast<void>(by.port().taken_events());
  return why_not;
}

}  // namespace lockflight::detail
