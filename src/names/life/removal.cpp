#include "names/life/removal.hpp"

#include <unistd.h>
#include <atomic>

#include <string>

#include "base/signals_held.hpp"
#include "names/life/slots.hpp"

namespace lockflight::detail {
namespace {

// Marks are numbered, also those that were taken back, so that no mark is mistaken for another one.
constexpr std::uint64_t process_bits = 0xffffffff;

/// Marks the domain as being removed until this object ends. The domain is then as before, or its
/// path is gone.
class removal_mark {
 public:
  removal_mark() = default;
  ~removal_mark() {
    if (file_ != nullptr && !stays_) file_->header().removal.fetch_and(~process_bits);
  }
  removal_mark(const removal_mark&) = delete;
  removal_mark& operator=(const removal_mark&) = delete;

  void set(const domain_file& file) {
    file_ = &file;
    auto& mark = file.header().removal;
    mark.store((mark.load() | process_bits) + 1 + static_cast<std::uint32_t>(getpid()));
  }
  void stays() { stays_ = true; }

 private:
  const domain_file* file_ = nullptr;
  bool stays_ = false;
};

void refuse_if_used(domain_file& file, int own) {
  for_each_slot(file, [&](int i) {
    const domain_slot_page& s = file.slot(i);
    if (s.state() != slot_state::living || (i == own && is_idle(file, i))) return;
    throw domain_error(domain_error::reason::held,
                       "domain " + file.name() + ": " + process_text(file, i) + " uses it");
  });
}

void wake_all(const domain_file& file) {
  // The state of the domain was stored before, and a sleeper has counted itself before it reads
  // that state for the last time.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (std::uint32_t i = 0; i < bells; ++i) file.bell(i).ring();
  for_each_slot(file, [&](int i) { file.slot(i).bell.ring(); });
}

/// Opens the file of a domain that is to be removed. Null if the file is damaged and `force` allows
/// that.
std::shared_ptr<domain_file> open_to_remove(const domain_place& at, bool force) {
  try {
    return domain_file::open_at(at);
  } catch (const domain_error& e) {
    if (e.why == domain_error::reason::damaged && force) return nullptr;
    throw;
  }
}

}  // namespace

bool is_removed(const domain_file& file) {
  std::uint64_t mark = file.header().removal.load();
  if ((mark & process_bits) == 0) return false;
  // The path goes before the right does: so a mark without an owner, and with a path, is that of a
  // remover that died, or that was refused. A mark that is set meanwhile is another one.
  if (file.is_removal_locked() || !file.is_current()) return true;
  return !file.header().removal.compare_exchange_strong(mark, mark & ~process_bits);
}

int remover_of(const domain_file& file) {
  return static_cast<int>(file.header().removal.load() & process_bits);
}

bool remove_domain(const domain_place& at, bool force, own_slot own, end_of_file then) {
  removal_right right(at);
  if (!right) return false;
  const auto file = open_to_remove(at, force);
  removal_mark mark;
  if (file && !force) {
    // The slow examination comes first, since newcomers wait from the mark on.
    examine_all(*file);
    refuse_if_used(*file, own(*file));
  }
  const signals_held undisturbed;  // newcomers wait from here on
  if (file) mark.set(*file);
  if (file && !force) refuse_if_used(*file, own(*file));
  if (!right.unlink()) return false;
  mark.stays();
  try {
    if (file) then(*file), wake_all(*file);
  } catch (const domain_error&) {  // the file is damaged, and removed
  }
  drop_folder(at);
  return true;
}

}  // namespace lockflight::detail
