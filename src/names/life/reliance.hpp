// A waiter relies on a hold: it sleeps until the kernel tells that the hold has ended, and need not
// look meanwhile whether others live.
//
// Each participant keeps a byte of the file locked (hold_byte). The kernel unlocks it when the
// participant's process ends or becomes another program, and the participant itself when it leaves,
// and at the end of a hold on which somebody relies. A thread of the waiting process sleeps in
// F_OFD_SETLKW until it can share that byte, and then wakes the waiters.
//
// Invariants:
// - A waiter that relies has set its bit in `relied_on` of the holder, has made the holder pass a
//   fence, and has found the hold and the number of the byte unchanged after that. So the holder
//   finds the bit when it releases, or the waiter has found that it did.
// - The bytes of holds say nothing about who lives: a stopped process that shares one of them
//   changes no answer about others.
//
// Cost: a thread for each byte, for all waiters of the process. The thread ends with the hold, also
// if nobody waits for that any more. Where no thread, no descriptor or no byte is to be had, or the
// process has 16 such threads, waiters look for themselves as they do before they rely.
#pragma once

#include <atomic>
#include <cstdint>

#include "names/file/file.hpp"

namespace lockflight::detail {

struct watched_byte;

class reliance {
 public:
  /// `wake(with)` is called on another thread if the hold may have ended. It must not wait.
  reliance(void (*wake)(void*), void* with) : wake_(wake), with_(with) {}
  ~reliance() { end(); }
  reliance(const reliance&) = delete;
  reliance& operator=(const reliance&) = delete;

  /// Begins to wait for that byte, instead of the one before. False if that cannot be done.
  [[nodiscard]] bool begin(const domain_file& file, int slot, std::uint64_t hold_byte);
  void end();
  /// False if the byte is free, and if nothing was begun.
  [[nodiscard]] bool goes_on() const {
    return byte_ != nullptr && !is_free_.load(std::memory_order_acquire);
  }

 private:
  friend struct watched_byte;
  void tell() {
    is_free_.store(true, std::memory_order_release);
    wake_(with_);
  }

  void (*wake_)(void*);
  void* with_;
  watched_byte* byte_ = nullptr;  // only to be compared, once it is free
  std::uint64_t image_ = 0;       // of the process that has begun
  std::atomic<bool> is_free_{false};
};

}  // namespace lockflight::detail
