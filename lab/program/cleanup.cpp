#include "lab/program/cleanup.hpp"

#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>

#include "base/ignored_signal.hpp"

namespace lockflight::lab {
namespace {

// A handler may touch only what is lock-free: paths are owned by the slots and published by
// pointer.
constexpr std::size_t most_files = 16;
std::array<std::atomic<const char*>, most_files> files{};
constexpr std::array ends_us{SIGINT, SIGTERM, SIGHUP, SIGPIPE};
std::atomic<bool> progress_shown{false};
std::atomic<pid_t> owner{0};
static_assert(std::atomic<const char*>::is_always_lock_free);

void end_at_once(int signal_number) {
  // Ranks are forked from us and inherit this handler, but the files are not theirs.
  if (getpid() == owner.load()) {
    for (const auto& file : files)
      if (const char* const path = file.load(); path != nullptr) unlink(path);
    constexpr std::string_view erase_line = "\r\033[K";
    if (progress_shown.load() && write(STDERR_FILENO, erase_line.data(), erase_line.size()) < 0)
      errno = 0;  // nothing can be done about it
  }
  _exit(128 + signal_number);
}

}  // namespace

void clean_up_when_interrupted() {
  owner.store(getpid());
  for (const int signal_number : ends_us) {
    if (is_ignored(signal_number)) continue;
    struct sigaction action {};
    action.sa_handler = end_at_once;
    sigfillset(&action.sa_mask);
    sigaction(signal_number, &action, nullptr);
  }
}

bool progress_is_shown(bool shown) { return progress_shown.exchange(shown); }

interruptions_held::interruptions_held() {
  sigset_t held;
  sigemptyset(&held);
  for (const int signal_number : ends_us) sigaddset(&held, signal_number);
  sigprocmask(SIG_BLOCK, &held, &before_);
}

interruptions_held::~interruptions_held() { sigprocmask(SIG_SETMASK, &before_, nullptr); }

removed_when_interrupted::removed_when_interrupted(const std::string& path) : slot_(0) {
  const char* const copy = strdup(path.c_str());
  for (; slot_ < most_files; ++slot_) {
    const char* none = nullptr;
    if (files[slot_].compare_exchange_strong(none, copy)) return;
  }
  throw std::length_error("more than " + std::to_string(most_files) +
                          " files are being written at once");
}

// The copy is never freed: a handler may be about to read it. There are a few in a program's life.
removed_when_interrupted::~removed_when_interrupted() { files[slot_].store(nullptr); }

}  // namespace lockflight::lab
