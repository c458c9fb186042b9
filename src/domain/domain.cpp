#include "lockflight/domain.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>

#include "domain/attachment.hpp"
#include "domain/directory.hpp"
#include "lockflight/lock/robust/record.hpp"

namespace lockflight {
namespace {

using detail::slot_state;
using lock::record;

/// This thread's attachment, or for a moment the steward's where no slot is free.
std::shared_ptr<detail::attachment> any_place(const std::shared_ptr<detail::domain_file>& file) {
  try {
    return detail::attach_thread(file);
  } catch (const domain_error& e) {
    if (e.why != domain_error::reason::full) throw;
  }
  return std::make_shared<detail::attachment>(file, detail::take_steward(*file));
}

/// What each participant does with locks, by control line.
std::multimap<std::uint32_t, domain_lock_use> all_uses(const detail::domain_file& file) {
  std::multimap<std::uint32_t, domain_lock_use> found;
  detail::for_each_slot(file, [&](int i) {
    const auto& s = file.slot(i);
    const slot_state state = s.state.load(std::memory_order_acquire);
    if (state == slot_state::free) return;
    for (std::uint32_t k = 0; k < detail::records; ++k) {
      const auto of =
          record::from(file.word(i, detail::first_record + k).load(std::memory_order_acquire));
      const auto phase = of.get(record::phase);
      if (phase == record::idle || phase == record::left) continue;
      domain_lock_use use{.slot = i,
                          .pid = s.pid.load(std::memory_order_relaxed),
                          .dead = state == slot_state::dead};
      const bool has = phase == record::holding || phase == record::sharing;
      use.since_ns = (has ? s.holds_since[k] : s.waits_since).load(std::memory_order_relaxed);
      if (phase == record::holding) use.what = domain_lock_use::how::holds;
      if (phase == record::sharing) use.what = domain_lock_use::how::shares;
      if (phase == record::releasing) continue;
      found.emplace(static_cast<std::uint32_t>(of.get(record::lock)) * rma::line_words, use);
    }
  });
  return found;
}

}  // namespace

domain domain::open(std::string_view name, const domain_options& what) {
  return domain(detail::domain_file::open(name, &what));
}
domain domain::attach(std::string_view name) {
  return domain(detail::domain_file::open(name, nullptr));
}

bool domain::remove(std::string_view name, bool force) {
  std::shared_ptr<detail::domain_file> file;
  std::string path;
  detail::check_domain_name(name);
  try {
    file = detail::domain_file::open(name, nullptr);
    path = file->path();
  } catch (const domain_error& e) {
    if (e.why == domain_error::reason::missing) return false;
    // What is damaged can be removed, but nobody knows its users.
    if (e.why != domain_error::reason::damaged || !force) throw;
    const auto found = detail::find_domains(name);
    if (found.empty()) throw;
    path = found.front().path;
  }
  if (file && !force) {
    const auto ours = detail::attachment_of_thread(*file);
    const int self = ours && detail::is_idle(*file, ours->slot()) ? ours->slot() : -1;
    detail::mark_the_dead(*file, ours ? ours->slot() : -1);
    detail::for_each_slot(*file, [&](int i) {
      const auto& s = file->slot(i);
      if (i != self && s.state.load(std::memory_order_acquire) == slot_state::living)
        throw domain_error(domain_error::reason::held,
                           "domain " + file->name() + ": process " +
                               std::to_string(s.pid.load(std::memory_order_relaxed)) + " uses it");
    });
  }
  if (unlink(path.c_str()) == 0) return true;
  if (errno == ENOENT) return false;
  throw domain_error(domain_error::reason::system, path + ": " + std::strerror(errno));
}

std::vector<std::string> domain::list() {
  std::vector<std::string> names;
  for (const auto& one : detail::find_domains("")) names.push_back(one.name);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

const std::string& domain::name() const { return file_->name(); }
const domain_options& domain::options() const { return file_->options(); }

std::vector<domain_slot> domain::participants() const {
  file_->check_size();
  const auto ours = detail::attachment_of_thread(*file_);
  detail::mark_the_dead(*file_, ours ? ours->slot() : -1);
  std::vector<domain_slot> all;
  detail::for_each_slot(*file_, [&](int i) {
    const auto& s = file_->slot(i);
    const slot_state state = s.state.load(std::memory_order_acquire);
    if (state == slot_state::free) return;
    std::array<char, 17> command{};
    const std::array words{s.command[0].load(std::memory_order_relaxed),
                           s.command[1].load(std::memory_order_relaxed)};
    std::memcpy(command.data(), words.data(), sizeof words);
    all.push_back({i, s.pid.load(std::memory_order_relaxed), s.tid.load(std::memory_order_relaxed),
                   state == slot_state::dead, command.data()});
  });
  return all;
}

std::vector<domain_lock> domain::locks() const {
  const auto named = detail::all_locks(*file_);
  const auto ours = detail::attachment_of_thread(*file_);
  detail::mark_the_dead(*file_, ours ? ours->slot() : -1);
  const auto uses = all_uses(*file_);
  std::vector<domain_lock> all;
  for (const auto& [name, found] : named) {
    const auto word = [&, line = found.line](std::uint32_t i) {
      return file_->word(0, line + i).load(std::memory_order_acquire);
    };
    domain_lock one{.name = name,
                    .kind = std::string(found.kind->name),
                    .parameters = found.parameters,
                    .token = found.tokens_before + word(1),
                    .repairs = word(0) / 2,
                    .owner_died = word(2) != 0,
                    .uses = {}};
    const auto [first, last] = uses.equal_range(found.line);
    for (auto at = first; at != last; ++at) one.uses.push_back(at->second);
    all.push_back(std::move(one));
  }
  std::sort(all.begin(), all.end(),
            [](const domain_lock& a, const domain_lock& b) { return a.name < b.name; });
  return all;
}

std::uint32_t domain::names() const {
  return file_->header().count.load(std::memory_order_relaxed);
}

bool domain::remove_lock(std::string_view name) {
  detail::check_lock_name(name);
  const auto found = detail::find_lock(*file_, name);
  if (!found) return false;
  const auto me = any_place(file_);
  const auto held = [&](int pid) {
    return domain_error(domain_error::reason::held,
                        "lock " + detail::shown(name) + ": " +
                            (pid == 0 ? "somebody" : "process " + std::to_string(pid)) +
                            " holds or awaits it");
  };
  const auto uses = all_uses(*file_);
  if (const auto at = uses.find(found->line); at != uses.end() && !at->second.dead)
    throw held(at->second.pid);
  const auto mine = detail::lock_at(*me, *found);
  // All others have left, so a lock without try does not wait long.
  if (!found->kind->tries)
    mine->lock();
  else if (!mine->try_lock())
    throw held(0);
  const bool done = detail::forget(*file_, name, *found);
  mine->unlock();
  if (done) detail::free_block(*file_, *found);
  return done;
}

int domain::sweep() {
  file_->check_size();
  const auto ours = detail::attachment_of_thread(*file_);
  detail::mark_the_dead(*file_, ours ? ours->slot() : -1);
  if (!detail::has_dead(*file_)) return 0;
  return detail::sweep(*any_place(file_));
}

}  // namespace lockflight
