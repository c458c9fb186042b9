#include "handles.hpp"

#include "waiting.hpp"

namespace lockflight::python {
namespace {

named_lock made(const recipe& of, const named_lock*) { return {of.in, of.name, of.what}; }
named_semaphore made(const recipe& of, const named_semaphore*) {
  return {of.in, of.name, of.units};
}

}  // namespace

template <class Handle>
void make_table() {
  static thread_local std::unique_ptr<handle_table<Handle>> owner;  // ends with the thread
  auto made = std::make_unique<handle_table<Handle>>();
  if (owner != nullptr) {  // the parent's
    made->held_by_parent = owner->held_by_parent;
    for (const auto& [identity, each] : owner->entries)
      if (each.handle->is_held())
        made->held_by_parent.insert(made->held_by_parent.end(), each.again + 1, each.of);
  }
  call_before_waits(&this_thread_waits);
  // The handles of the parent are dropped: their destructors do nothing in a child.
  owner = std::move(made);
  table<Handle> = owner.get();
}

template <class Handle>
std::unique_ptr<Handle> make_handle(const recipe& of) {
  const others_run meanwhile;
  auto handle = std::make_unique<Handle>(made(of, static_cast<const Handle*>(nullptr)));
  handle->interrupt_with(&is_interrupted);
  return handle;
}

template <class Handle>
Handle* known_handle(const std::shared_ptr<const recipe>& of) {
  handle_table<Handle>& mine = my_table<Handle>();
  const auto found = mine.entries.find(of.get());
  return found != mine.entries.end() ? found->second.handle.get() : nullptr;
}

template <class Handle>
bool was_held_by_parent(const std::shared_ptr<const recipe>& of) {
  auto& held = my_table<Handle>().held_by_parent;
  const auto found =
      std::find_if(held.begin(), held.end(), [&](const auto& each) { return each.lock() == of; });
  if (found == held.end()) return false;
  held.erase(found);
  return true;
}

template void make_table<named_lock>();
template void make_table<named_semaphore>();
template std::unique_ptr<named_lock> make_handle<named_lock>(const recipe&);
template std::unique_ptr<named_semaphore> make_handle<named_semaphore>(const recipe&);
template named_lock* known_handle<named_lock>(const std::shared_ptr<const recipe>&);
template named_semaphore* known_handle<named_semaphore>(const std::shared_ptr<const recipe>&);
template bool was_held_by_parent<named_lock>(const std::shared_ptr<const recipe>&);
template bool was_held_by_parent<named_semaphore>(const std::shared_ptr<const recipe>&);

}  // namespace lockflight::python
