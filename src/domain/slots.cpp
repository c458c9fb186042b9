#include "domain/slots.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>

namespace lockflight::detail {
namespace {

// The thread that finds it so marks it dead first and counts it then (C45). A marker that dies in
// between leaves the mutex marked for the next one.
void mark_dead(domain_file& file, domain_slot_words& s) {
  s.state.store(slot_state::dead, std::memory_order_seq_cst);
  file.header().deaths.fetch_add(1, std::memory_order_seq_cst);
  ring_all_bells(file);
}

// Tries to have the slot's mutex. Its owner, if that has died, is marked here.
bool try_life(domain_file& file, domain_slot_words& s) {
  const int how = pthread_mutex_trylock(&s.life);
  if (how == 0) return true;
  if (how != EOWNERDEAD) return false;
  if (s.state.load(std::memory_order_acquire) != slot_state::free) mark_dead(file, s);
  pthread_mutex_consistent(&s.life);
  return true;
}

// Ours is the mutex, and the slot is free.
void move_in(domain_file& file, int slot) {
  domain_slot_words& s = file.slot(slot);
  std::array<char, 16> command{};
  if (const int fd = open("/proc/thread-self/comm", O_RDONLY | O_CLOEXEC); fd >= 0) {
    const ssize_t got = ::read(fd, command.data(), command.size() - 1);
    if (got > 0 && command[static_cast<std::size_t>(got) - 1] == '\n')
      command[static_cast<std::size_t>(got) - 1] = '\0';
    close(fd);
  }
  std::array<std::uint64_t, 2> words{};
  std::memcpy(words.data(), command.data(), command.size());
  // Relaxed: for show alone.
  s.command[0].store(words[0], std::memory_order_relaxed);
  s.command[1].store(words[1], std::memory_order_relaxed);
  s.pid.store(getpid(), std::memory_order_relaxed);
  s.tid.store(static_cast<int>(syscall(SYS_gettid)), std::memory_order_relaxed);
  s.sleeps_at.store(0, std::memory_order_relaxed);
  s.incarnation.fetch_add(1, std::memory_order_relaxed);
  auto& used = file.header().used_slots;
  const auto ours = static_cast<std::uint32_t>(slot) + 1;
  if (slot != file.steward())
    for (std::uint32_t now = used.load(); now < ours && !used.compare_exchange_weak(now, ours);) {
    }
  // Before the first word of ours: from here on a death is seen.
  s.state.store(slot_state::living, std::memory_order_seq_cst);
}

void move_out(domain_file& file, int slot) {
  domain_slot_words& s = file.slot(slot);
  for (std::uint32_t i = first_own_word; i < domain_shape::first_block; ++i)
    if (auto& w = file.word(slot, i); w.load(std::memory_order_relaxed) != 0)
      w.store(0, std::memory_order_relaxed);
  // Release: a thread that takes the slot finds its words as new.
  s.state.store(slot_state::free, std::memory_order_release);
}

}  // namespace

void ring_all_bells(const domain_file& file) {
  std::atomic_thread_fence(std::memory_order_seq_cst);  // before the reads of `parked`
  for (int i = 0; i < file.ranks(); ++i) file.view().bells[i].ring();
}

int mark_the_dead(domain_file& file, int self) {
  int living = 0;
  for_each_slot(file, [&](int i) {
    domain_slot_words& s = file.slot(i);
    const slot_state state = s.state.load(std::memory_order_acquire);
    // Its marker may have died before it counted the death: then the mutex says so.
    if (state == slot_state::dead && try_life(file, s)) pthread_mutex_unlock(&s.life);
    if (state != slot_state::living) return;
    ++living;
    if (i == self || !try_life(file, s)) return;
    // A slot that is living and has no owner was written over.
    if (s.state.load(std::memory_order_acquire) == slot_state::living) mark_dead(file, s);
    --living;
    pthread_mutex_unlock(&s.life);
  });
  return living;
}

int take_slot(domain_file& file) {
  for (int i = 0; i < file.steward(); ++i) {
    domain_slot_words& s = file.slot(i);
    if (s.state.load(std::memory_order_acquire) == slot_state::dead) continue;
    file.make_room(&file.word(i, first_own_word),
                   (domain_shape::first_block - first_own_word) * sizeof(rma::word));
    if (!try_life(file, s)) continue;
    if (s.state.load(std::memory_order_acquire) == slot_state::free) {
      if (is_idle(file, i)) return move_in(file, i), i;
      mark_dead(file, s);  // its state was written over: a sweep deals with what it held
    }
    pthread_mutex_unlock(&s.life);
  }
  return -1;
}

int take_steward(domain_file& file) {
  constexpr time_t patience_s = 10;
  domain_slot_words& s = file.slot(file.steward());
  timespec until{};
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += patience_s;
  const int how = pthread_mutex_timedlock(&s.life, &until);
  if (how == EOWNERDEAD) {
    if (s.state.load(std::memory_order_acquire) != slot_state::free) mark_dead(file, s);
    pthread_mutex_consistent(&s.life);
  } else if (how != 0) {
    throw domain_error(domain_error::reason::full, "domain " + file.name() + ": all " +
                                                       std::to_string(file.steward()) +
                                                       " slots are taken, and the steward's is");
  }
  const int slot = file.steward();
  if (s.state.load(std::memory_order_acquire) != slot_state::free) {
    if (!is_idle(file, slot)) {
      pthread_mutex_unlock(&s.life);
      throw domain_error(domain_error::reason::full,
                         "domain " + file.name() + ": all " + std::to_string(slot) +
                             " slots are taken, and the last steward died (a thread that has a "
                             "slot can sweep)");
    }
    move_out(file, slot);
  }
  move_in(file, slot);
  return slot;
}

void leave_slot(domain_file& file, int slot, bool dead) {
  domain_slot_words& s = file.slot(slot);
  if (dead)
    mark_dead(file, s);
  else
    move_out(file, slot);
  pthread_mutex_unlock(&s.life);
}

bool free_slot(domain_file& file, int slot) {
  domain_slot_words& s = file.slot(slot);
  if (!try_life(file, s)) return false;
  const bool is_dead =
      s.state.load(std::memory_order_acquire) == slot_state::dead && is_idle(file, slot);
  if (is_dead) {
    const std::uint32_t bell = s.sleeps_at.exchange(0, std::memory_order_relaxed);
    if (bell != 0 && bell <= static_cast<std::uint32_t>(file.ranks()))
      file.view().bells[bell - 1].parked.fetch_sub(1, std::memory_order_seq_cst);
    move_out(file, slot);
  }
  pthread_mutex_unlock(&s.life);
  return is_dead;
}

bool is_idle(const domain_file& file, int slot) {
  for (std::uint32_t i = 0; i < records; ++i)
    // Acquire: a thread that finds it idle sees what was done about it.
    if (file.word(slot, first_record + i).load(std::memory_order_acquire) != 0) return false;
  return true;
}

bool has_dead(const domain_file& file) {
  bool found = false;
  for_each_slot(file, [&](int i) {
    if (file.slot(i).state.load(std::memory_order_acquire) == slot_state::dead) found = true;
  });
  return found;
}

}  // namespace lockflight::detail
