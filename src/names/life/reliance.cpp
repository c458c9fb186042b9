#include "names/life/reliance.hpp"

#include <algorithm>
#include <memory>
#include <mutex>
#include <system_error>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/signals_held.hpp"
#include "base/thread_without_signals.hpp"
#include "names/file/byte_lock.hpp"

namespace lockflight::detail {

/// A byte that a thread of this process waits for, guarded by process_mutex().
struct watched_byte {
  std::uint64_t device, inode;
  int slot;
  std::uint64_t hold_byte;
  std::vector<reliance*> relying{};

  [[nodiscard]] bool is(const watched_byte& other) const {
    return device == other.device && inode == other.inode && slot == other.slot &&
           hold_byte == other.hold_byte;
  }
  void tell() {
    for (reliance* const each : relying) each->tell();
  }
};

namespace {

constexpr std::size_t most_threads = 16;
/// After a refusal, before the next try: waiters come here more than 20 times a second.
constexpr std::uint64_t refusals_last = 10'000'000'000;

/// The bytes that this process waits for. A child has no thread of its parent, and begins anew.
struct watched_bytes {
  std::vector<std::unique_ptr<watched_byte>> all;
  std::uint64_t refused_until = 0;
};

/// Called with process_mutex().
watched_bytes& of_process(std::uint64_t image) {
  static watched_bytes* ours = nullptr;  // never destroyed: threads may outlive static objects
  static std::uint64_t of_image = 0;
  if (of_image != image) {
    ours = new watched_bytes;
    of_image = image;
  }
  return *ours;
}

/// The body of the thread. The thread uses no domain_file, since the last handle may be gone
/// meanwhile.
void watch(watched_byte& what, int fd) {
  const off_t byte = byte_of_hold(what.slot, static_cast<std::uint32_t>(what.hold_byte));
  await_byte(fd, byte);
  if (domain_file::is_opened_to_wait(fd, what.device, what.inode)) {
    unlock_byte(fd, byte);  // a child may have the open file, too
    close(fd);
  }
  const std::uint64_t ours = image();
  const std::scoped_lock guard(process_mutex());
  what.tell();
  std::erase_if(of_process(ours).all, [&](const auto& each) { return each.get() == &what; });
}

/// Starts a thread for that byte. False if there is no descriptor or no thread for it.
bool start(const domain_file& file, watched_byte& what) {
  descriptor opened = file.opened_to_wait();
  if (!opened) return false;
  try {
    thread_without_signals([&what, fd = opened.get()] { watch(what, fd); }).detach();
  } catch (const std::system_error&) {
    return false;
  }
  static_cast<void>(opened.release());  // the thread closes it
  return true;
}

}  // namespace

bool reliance::begin(const domain_file& file, int slot, std::uint64_t hold_byte) {
  end();
  const signals_held until_unlocked;  // a handler may jump out of the wait
  const std::uint64_t ours = image();
  const std::scoped_lock guard(process_mutex());
  watched_bytes& of = of_process(ours);
  auto wanted =
      std::make_unique<watched_byte>(watched_byte{file.device(), file.inode(), slot, hold_byte});
  auto found = std::ranges::find_if(of.all, [&](const auto& each) { return each->is(*wanted); });
  if (found == of.all.end()) {
    if (of.all.size() >= most_threads || now_ns() < of.refused_until) return false;
    if (!start(file, *wanted)) {
      of.refused_until = now_ns() + refusals_last;
      return false;
    }
    found = of.all.insert(found, std::move(wanted));
  }
  byte_ = found->get();
  image_ = ours;
  is_free_.store(false, std::memory_order_relaxed);
  byte_->relying.push_back(this);
  return true;
}

void reliance::end() {
  watched_byte* const before = std::exchange(byte_, nullptr);
  // In a child this is the copy of its parent's object.
  if (before == nullptr || image_ != known_image()) return;
  const signals_held until_unlocked;
  const std::scoped_lock guard(process_mutex());
  for (const auto& each : of_process(image_).all)
    if (each.get() == before) std::erase(each->relying, this);
}

}  // namespace lockflight::detail
