#include "names/locks/attachment.hpp"

#include <algorithm>

#include "fabric/shm/pause.hpp"
#include "fabric/shm/waiting.hpp"
#include "lockflight/lock/robust/record.hpp"
#include "names/life/removal.hpp"
#include "names/locks/directory.hpp"
#include "names/locks/one_lock.hpp"
#include "names/locks/probes.hpp"
#include "names/locks/semaphore_kind.hpp"

namespace lockflight::detail {
namespace {

// Set once the attachments of the thread have ended: a destructor of another object of the thread
// that runs later must not make new ones.
thread_local bool thread_ends = false;

struct attachments {
  std::vector<std::shared_ptr<attachment>> all;
  ~attachments() {
    thread_ends = true;
    for (const auto& one : all) one->end();
  }
};

attachments& of_this_thread() {
  static thread_local attachments ours;
  return ours;
}

// Takes a slot in a domain that still has its path. It takes the slot first, and reads then whether
// the domain is removed (removal.hpp).
int take_slot_of_present(domain_file& file) {
  const int slot = take_slot(file);
  if (slot < 0) return slot;
  try {
    if (!is_removed(file) && file.is_current()) return slot;
  } catch (...) {
    leave_slot(file, slot);
    throw;
  }
  leave_slot(file, slot);
  file.throw_removed();
}

// A thread whose wait was given up has left the queue, and its queue node may be in it still.
remains remains_of(const domain_file& file, int slot) {
  auto found = remains::nothing;
  for (std::uint32_t k = 0; k < records; ++k) {
    const auto of =
        lock::record::from(file.slot(slot).words[first_record + k].load(std::memory_order_acquire));
    const auto phase = of.get(lock::record::phase);
    if (phase == lock::record::idle) continue;
    if (phase != lock::record::left) return remains::uses;
    found = remains::queue_nodes;
  }
  return found;
}

// Reports a repair to the probe, that of a unit with the semaphore's name.
void tell_of_repair(const domain_file& file, std::uint32_t line) {
  const auto [name, found] = named_at(file, line);
  const user_name known = user_name_of(name);
  const std::string_view kind =
      known.unit < 0 ? found.kind->about.name : semaphore_kind().about.name;
  probes::repaired(std::string(known.name).c_str(), kind.data());
}

}  // namespace

attachment::attachment(std::shared_ptr<domain_file> file, int slot)
    : file_(std::move(file)),
      slot_(slot),
      image_(image()),
      thread_(thread_number),
      port_(*file_, slot),
      me_(port_, own_words) {
  rma::ensure(me_.record_of(0, 0).index == first_record && me_.cells().used() <= own_words &&
                  me_.records() == static_cast<int>(records),
              "a participant's own words lie before the locks");
  held_.reserve(records);  // so that what follows an acquire does not fail
}

attachment::~attachment() {
  end();
  if (image_ != known_image()) port_.forget_sleep();
}

bool attachment::is_of_parent() const {
  return thread_.load(std::memory_order_relaxed) != over && image_ != known_image();
}

bool attachment::is_over() const {
  return thread_.load(std::memory_order_relaxed) == over || image_ != known_image();
}

// Another thread may have dropped the handle that held: then the record does not say so any more,
// and the hold is removed from the list here.
std::optional<attachment::hold> attachment::own_hold(std::uint32_t line) {
  std::erase_if(held_, [&](const hold& each) {
    const auto of = lock::record::from(
        file_->slot(slot_).words[first_record + static_cast<unsigned>(each.record)].load(
            std::memory_order_acquire));
    return !of.holds() || of.get(lock::record::lock) != each.line;
  });
  const auto found =
      std::ranges::find_if(held_, [&](const hold& each) { return each.line == line; });
  return found == held_.end() ? std::nullopt : std::optional(*found);
}

void attachment::unless_over(const std::function<void()>& what) {
  const std::scoped_lock hold(end_);
  if (!is_over()) what();
}

void attachment::end() {
  if (!is_ours()) return;
  const std::scoped_lock hold(end_);
  thread_.store(over, std::memory_order_relaxed);
  try {
    file_->check();
    port_.rest();
    me_.collect();
    leave_slot(*file_, slot_, remains_of(*file_, slot_));
  } catch (const domain_error&) {  // there is no slot to leave, and a store would end us
  }
}

std::shared_ptr<attachment> attachment_of_thread(const domain_file& file) {
  if (thread_ends) return nullptr;
  for (const auto& one : of_this_thread().all)
    if (&one->file() == &file && one->is_ours()) return one;
  return nullptr;
}

std::shared_ptr<attachment> attach_thread(const std::shared_ptr<domain_file>& file,
                                          const time_limit& how_long) {
  if (auto ours = attachment_of_thread(*file)) return ours;
  if (thread_ends)
    throw domain_error(domain_error::reason::wrong_thread,
                       "domain " + file->name() + ": this thread is at its end");
  // Each process registers, whatever its parent has done.
  if (file->header().fenced == 0 && !shm::detail::register_membarrier())
    throw domain_error(domain_error::reason::system,
                       "domain " + file->name() + ": membarrier is refused");
  number_this_thread();
  file->check();
  mark_earlier_images(*file);
  auto& all = of_this_thread().all;
  // Drops attachments of a parent, and of domains that are no more and that no handle needs.
  std::erase_if(all, [](const auto& one) {
    return !one->is_ours() || (one.use_count() == 1 && !one->file().is_current());
  });
  // Each try reads all slots.
  constexpr std::uint64_t most_between_tries = 500'000'000;
  std::uint64_t between_tries = 10'000'000;
  int slot = take_slot_of_present(*file);
  while (slot < 0) {
    if (has_dead(*file)) {
      if (const int steward = take_steward(*file); steward >= 0) {
        attachment by(file, steward);
        sweep(by);
      }
      slot = take_slot_of_present(*file);
      if (slot >= 0) break;
    }
    if (!how_long.sleep(between_tries)) return nullptr;
    between_tries = std::min(2 * between_tries, most_between_tries);
    slot = take_slot_of_present(*file);
  }
  all.push_back(std::make_shared<attachment>(file, slot));
  return all.back();
}

std::shared_ptr<attachment> any_attachment(const std::shared_ptr<domain_file>& file) {
  // A thread at its end takes no slot any more, and still drops handles of others.
  if (!thread_ends)
    if (auto ours = attach_thread(file, {.until_ns = 0})) return ours;
  // Another thread has the steward's slot for microseconds.
  const time_limit at_most{shm::detail::ns_from_now(100'000'000)};
  do {
    if (const int steward = take_steward(*file); steward >= 0)
      return std::make_shared<attachment>(file, steward);
  } while (at_most.sleep(1'000'000));
  throw domain_error(domain_error::reason::full, "domain " + file->name() + ": all " +
                                                     std::to_string(file->steward()) +
                                                     " slots are taken by living threads");
}

int sweep(attachment& by) {
  domain_file& file = by.file();
  file.check();
  examine_all(file);
  int freed = 0;
  for_each_slot(file, [&](int i) {
    domain_slot_page& s = file.slot(i);
    if (s.state() != slot_state::dead) return;
    for (std::uint32_t k = 0; k < records; ++k) {
      const auto of = lock::record::from(s.words[first_record + k].load(std::memory_order_acquire));
      if (of.get(lock::record::phase) == lock::record::idle) continue;
      const auto line = static_cast<std::uint32_t>(of.get(lock::record::lock));
      lock_at(by, line)->repair_if_needed();
      if (by.port().taken_events().has_repaired) tell_of_repair(file, line);
    }
    if (free_slot(file, i)) ++freed;
  });
  return freed;
}

}  // namespace lockflight::detail
