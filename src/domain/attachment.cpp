#include "domain/attachment.hpp"

#include <vector>

#include "domain/directory.hpp"
#include "fabric/shm/waiting.hpp"
#include "lockflight/lock/robust/record.hpp"

namespace lockflight::detail {
namespace {

// What else ends with the thread may come after its attachments.
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

}  // namespace

attachment::attachment(std::shared_ptr<domain_file> file, int slot)
    : file_(std::move(file)),
      slot_(slot),
      thread_(thread_number),
      port_(*file_, slot),
      me_(port_, file_->shape().words) {
  rma::ensure(me_.record_of(0, 0).index == first_record &&
                  me_.cells().used() <= domain_shape::first_block &&
                  me_.records() == static_cast<int>(records),
              "a participant's own words lie before the locks");
}

void attachment::end() {
  if (!is_ours()) return;
  thread_.store(over, std::memory_order_relaxed);
  if (!file_->has_its_size()) return;  // there is no slot to leave, and a store would end us
  leave_slot(*file_, slot_, !is_idle(*file_, slot_));
}

std::shared_ptr<attachment> attachment_of_thread(const domain_file& file) {
  if (thread_ends) return nullptr;
  for (const auto& one : of_this_thread().all)
    if (&one->file() == &file && one->is_ours()) return one;
  return nullptr;
}

std::shared_ptr<attachment> attach_thread(const std::shared_ptr<domain_file>& file) {
  if (auto ours = attachment_of_thread(*file)) return ours;
  if (thread_ends)
    throw domain_error(domain_error::reason::wrong_thread,
                       "domain " + file->name() + ": this thread is at its end");
  // Of each process, whatever its parent has done.
  if (file->header().fenced == 0 && !shm::detail::register_membarrier())
    throw domain_error(domain_error::reason::system,
                       "domain " + file->name() + ": membarrier is refused");
  static_cast<void>(process_mutex());  // from here on a fork is noticed
  number_this_thread();
  file->check_size();
  auto& all = of_this_thread().all;
  // Those of a parent, and those of domains that are no more and that no handle needs.
  std::erase_if(all, [](const auto& one) {
    return !one->is_ours() || (one.use_count() == 1 && one->file().is_removed());
  });
  mark_the_dead(*file, -1);
  int slot = take_slot(*file);
  if (slot < 0 && has_dead(*file)) {
    attachment steward(file, take_steward(*file));
    sweep(steward);
    slot = take_slot(*file);
  }
  if (slot < 0)
    throw domain_error(domain_error::reason::full, "domain " + file->name() + ": all " +
                                                       std::to_string(file->steward()) +
                                                       " slots are taken by living threads");
  all.push_back(std::make_shared<attachment>(file, slot));
  if (has_dead(*file)) sweep(*all.back());
  return all.back();
}

int sweep(attachment& by) {
  domain_file& file = by.file();
  file.check_size();
  mark_the_dead(file, by.slot());
  int freed = 0;
  for_each_slot(file, [&](int i) {
    if (file.slot(i).state.load(std::memory_order_acquire) != slot_state::dead) return;
    for (std::uint32_t k = 0; k < records; ++k) {
      const auto of =
          lock::record::from(file.word(i, first_record + k).load(std::memory_order_acquire));
      if (of.get(lock::record::phase) == lock::record::idle) continue;
      lock_at(by, static_cast<std::uint32_t>(of.get(lock::record::lock)) * rma::line_words)
          ->repair_if_needed();
    }
    if (free_slot(file, i)) ++freed;
  });
  return freed;
}

}  // namespace lockflight::detail
