#include "handles.hpp"

#include <algorithm>
#include <utility>

#include "lockflight/named_control.hpp"
#include "waiting.hpp"

namespace lockflight::python {
namespace {

std::unique_ptr<named_handle> make_handle(const recipe& of) {
  const others_run meanwhile;
  auto made = of.units ? std::make_unique<named_handle>(of.in, of.name, *of.units)
                       : std::make_unique<named_handle>(of.in, of.name, of.what);
  named_control(*made).interrupt_with(&is_interrupted);
  return made;
}

auto find_hold_of_parent(handle_table& in, const recipe& of) {
  return std::ranges::find_if(in.held_by_parent,
                              [&](const auto& each) { return each.lock().get() == &of; });
}

}  // namespace

void lost_numbers::add(std::uint64_t number) {
  {
    const std::scoped_lock guard(mutex_);
    all_.push_back(number);
  }
  added_.notify_one();
}

std::vector<std::uint64_t> lost_numbers::take() {
  std::unique_lock guard(mutex_);
  added_.wait(guard, [this] { return !all_.empty(); });
  return std::exchange(all_, {});
}

void make_table() {
  static thread_local std::unique_ptr<handle_table> owner;  // ends with the thread
  auto made = std::make_unique<handle_table>();
  if (owner != nullptr) {  // the parent's
    made->held_by_parent = owner->held_by_parent;
    for (auto& [identity, each] : owner->entries) {
      if (named_control(*each.handle).is_held_by_parent())
        made->held_by_parent.insert(made->held_by_parent.end(), each.again + 1, each.of);
      // The parent may have forked while its loss was told: its end would wait for that.
      static_cast<void>(each.at_loss.release());
    }
  }
  call_before_waits(&this_thread_waits);
  // The handles of the parent are dropped: their destructors do nothing in a child.
  owner = std::move(made);
  table = owner.get();
}

entry& handle_table::find_or_make(const std::shared_ptr<const recipe>& of) {
  auto found = entries.find(of.get());
  if (found == entries.end()) {
    if (entries.size() >= sweep_at) {  // drops what locks that are gone have left
      last = nullptr;
      std::erase_if(entries, [](const auto& each) { return each.second.of.expired(); });
      sweep_at = std::max<std::size_t>(64, 2 * entries.size());
    }
    found = entries.emplace(of.get(), entry{.of = of, .handle = make_handle(*of)}).first;
  }
  last = found->first;
  last_entry = &found->second;
  return found->second;
}

void handle_table::drop(const recipe* of) {
  if (last == of) last = nullptr;
  entries.erase(of);
}

named_handle* holding_handle(const recipe& of) {
  handle_table& mine = my_table();
  const auto found = mine.entries.find(&of);
  if (found == mine.entries.end() || !found->second.handle->is_held()) return nullptr;
  return found->second.handle.get();
}

bool is_held_by_another_object(const recipe& of) {
  return std::ranges::any_of(my_table().entries, [&](const auto& each) {
    const std::shared_ptr<const recipe> other = each.second.of.lock();
    return other != nullptr && other.get() != &of && each.second.handle->is_held() &&
           other->name == of.name && other->in.path() == of.in.path();
  });
}

bool is_held_by_parent(const recipe& of) {
  handle_table& mine = my_table();
  return find_hold_of_parent(mine, of) != mine.held_by_parent.end();
}

bool leaves_hold_of_parent(const recipe& of) {
  handle_table& mine = my_table();
  const auto found = find_hold_of_parent(mine, of);
  if (found == mine.held_by_parent.end()) return false;
  mine.held_by_parent.erase(found);
  return true;
}

}  // namespace lockflight::python
