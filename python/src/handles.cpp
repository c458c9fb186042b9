#include "handles.hpp"

#include "waiting.hpp"

namespace lockflight::python {

void make_table() {
  static thread_local std::unique_ptr<handle_table> owner;  // ends with the thread
  auto made = std::make_unique<handle_table>();
  if (owner != nullptr) {  // the parent's
    made->held_by_parent = owner->held_by_parent;
    for (const auto& [identity, each] : owner->entries)
      if (each.handle->is_held()) made->held_by_parent.push_back(each.of);
  }
  call_before_waits(&this_thread_waits);
  // The handles of the parent are dropped: their destructors do nothing in a child.
  owner = std::move(made);
  table = owner.get();
}

std::unique_ptr<named_lock> make_handle(const recipe& of) {
  const others_run meanwhile;
  auto made = std::make_unique<named_lock>(of.in, of.name, of.what);
  made->interrupt_with(&is_interrupted);
  return made;
}

named_lock* known_handle(const std::shared_ptr<const recipe>& of) {
  handle_table& mine = my_table();
  const auto found = mine.entries.find(of.get());
  return found != mine.entries.end() ? found->second.handle.get() : nullptr;
}

bool was_held_by_parent(const std::shared_ptr<const recipe>& of) {
  auto& held = my_table().held_by_parent;
  const auto found =
      std::find_if(held.begin(), held.end(), [&](const auto& each) { return each.lock() == of; });
  if (found == held.end()) return false;
  held.erase(found);
  return true;
}

}  // namespace lockflight::python
