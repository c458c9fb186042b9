#include "names/life/slots.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <optional>

#include "base/agent_slots.hpp"
#include "fabric/shm/pause.hpp"
#include "names/file/fork.hpp"

namespace lockflight::detail {
namespace {

/// The owner of a slot whose participant's death is known: no process has number 0.
[[nodiscard]] std::uint64_t owner_of_counted_death(std::uint32_t incarnation) {
  return ~std::uint64_t{0} << 44 | (incarnation & ((1u << 22) - 1));
}
[[nodiscard]] bool is_counted_death(std::uint64_t owner) {
  return owner != 0 && thread_identity::from(owner, 0).pid == 0;
}

thread_identity owner_of(const domain_slot_page& s, std::uint64_t owner) {
  // Acquire: `born` was written before.
  const bool is_known = s.born_of.load(std::memory_order_acquire) == owner;
  return thread_identity::from(owner, is_known ? s.born.load(std::memory_order_relaxed) : 0);
}
void write_born(domain_slot_page& s, const thread_identity& us) {
  s.born_of.store(0, std::memory_order_release);
  s.born.store(us.born, std::memory_order_release);
  s.born_of.store(us.owner(), std::memory_order_release);
}

std::string comm_of(std::int32_t pid, std::int32_t tid) {
  const std::string path =
      "/proc/" + std::to_string(pid) + "/task/" + std::to_string(tid) + "/comm";
  const descriptor fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 32> text{};
  const ssize_t got = fd ? ::read(fd.get(), text.data(), text.size() - 1) : 0;
  std::string found(text.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  if (!found.empty() && found.back() == '\n') found.pop_back();
  return found;
}

/// The name that others see instead of those of this process's threads; empty: none is set.
std::array<char, 2 * sizeof(std::uint64_t) + 1> shown_command{};

/// The thread that the slot guards, if it is of these namespaces.
std::optional<thread_identity> guarded_by(const domain_slot_page& s, std::uint64_t space) {
  const std::uint64_t owner = s.guarded.load(std::memory_order_acquire);
  if (!thread_identity::is_of(space, owner)) return std::nullopt;
  // If another process is guarded by now, its start is not that of this one.
  const std::uint64_t born = s.guarded_born.load(std::memory_order_acquire);
  const bool is_same = s.guarded.load(std::memory_order_acquire) == owner;
  return thread_identity::from(owner, is_same ? born : 0);
}

// ---- what decides that a participant lives ----
//
//    source                    says                         and can be wrong
// 1  own thread: the slot's    it lives while that thread   a thread that ended without leaving,
//    byte is locked by us      is there                     if another one of ours has its number:
//                                                           until a full look at its start
// 2  byte: the kernel keeps    locked by another open       locked: a thread that ended without
//    it locked for an open     file: it lives; nothing      leaving, until its process looks; or a
//    file, until the last      below is asked               dead one whose open file a child has
//    process closes that                                    that never called us
// 3  image: the slot has our   it is dead: exec has ended   it may be one of another copy of this
//    process number and        it, or a process that had    library in our process: if that maps
//    another image's           our number before            the file too, 4 decides
// 4  /proc of our namespaces,  gone: it is dead. There, and numbers are used again; one that runs
//    as they are now           has the file mapped: it      another program by now may not be read
//                              lives, and has closed its    by us: until it ends, it lives
//                              descriptors. There without
//                              the file: it is dead
// 5  none, since it is of      byte free: it is dead.       free: it has closed its descriptors,
//    other namespaces or       byte not known: it lives     and lives in another container
//    /proc hides it
//
// Source 4 decides whether a guarded process lives, for the whole process, and its own byte where 4
// does not say. Source 4 comes first, since processes that the guarded one has started may have the
// byte as well, and are not guarded.

bool has_other_copy_of_us(const domain_file& file) {
  return mappings_of(getpid(), file.address()).value_or(2) > 1;
}

// True if an earlier image of this process had the slot, or an earlier process of its number.
bool is_of_earlier_image(const domain_file& file, const domain_slot_page& s,
                         const thread_identity& who) {
  const bool is_known = s.image_of.load(std::memory_order_acquire) == s.life_now().incarnation;
  return who.pid == getpid() && (!is_known || s.image.load(std::memory_order_relaxed) != image()) &&
         !has_other_copy_of_us(file);
}

bool guarded_lives(const domain_file& file, int slot) {
  const domain_slot_page& s = file.slot(slot);
  if (s.guarded.load(std::memory_order_acquire) == 0) return false;
  if (const auto who = guarded_by(s, our_space()))
    if (const life its = life_of(*who, extent::process); its != life::unknown)
      return its != life::gone;
  return file.is_guard_locked(slot).value_or(true);
}

// True if the thread lives that was the slot's owner when we read it.
bool owner_lives(const domain_file& file, int slot, std::uint64_t owner, thoroughness how) {
  if (is_counted_death(owner)) return false;
  const domain_slot_page& s = file.slot(slot);
  const thread_identity who = owner_of(s, owner);
  if (file.has_locked_slot(slot)) {  // 1
    if (!is_there(who)) return false;
    if (how == thoroughness::quick || !thread_identity::is_of(our_space(), owner)) return true;
    return life_of(who, extent::thread) != life::gone;
  }
  const std::optional<bool> is_locked = file.is_slot_locked(slot);
  if (is_locked == std::optional(true)) return true;                               // 2
  if (!thread_identity::is_of(our_space(), owner)) return !is_locked.has_value();  // 5
  if (is_of_earlier_image(file, s, who)) return false;                             // 3
  switch (life_of(who, extent::thread)) {                                          // 4
    case life::gone:
      return false;
    case life::living:
    case life::stopped:
      return mappings_of(who.pid, file.address()).value_or(1) > 0;
    case life::unknown:
      break;
  }
  return !is_locked.has_value();  // 5
}

bool lives(const domain_file& file, int slot, std::uint64_t owner, thoroughness how) {
  return owner_lives(file, slot, owner, how) || guarded_lives(file, slot);
}

// Counts a death after it is visible (C45). The slot has no owner from then on. If a thread dies
// between the two steps, the next thread that examines the slot does the second one. `owner` is the
// dead owner.
void count_death(domain_file& file, domain_slot_page& s, std::uint32_t incarnation,
                 std::uint64_t owner) {
  // A slot is cleaned only after its death is counted.
  if (s.counted.load(std::memory_order_acquire) == incarnation) return;
  if (!s.owner.compare_exchange_strong(owner, owner_of_counted_death(incarnation)) &&
      !is_counted_death(owner))
    return;
  file.header().deaths.fetch_add(1, std::memory_order_seq_cst);
  if (!has_left(s)) file.header().died.fetch_add(1, std::memory_order_relaxed);
  s.counted.store(incarnation, std::memory_order_release);
}

void mark_dead(domain_file& file, domain_slot_page& s, slot_life its, std::uint64_t owner) {
  if (s.change_life(its, {slot_state::dead, its.incarnation})) {
    if (its.state == slot_state::living)
      file.header().living.fetch_sub(1, std::memory_order_relaxed);
  } else if (s.life_now().bits() != slot_life{slot_state::dead, its.incarnation}.bits()) {
    return;  // the slot is another participant's by now
  }
  count_death(file, s, its.incarnation, owner);
}

// The slot is free, and we are its owner.
void move_in(domain_file& file, int slot, const thread_identity& us) {
  domain_slot_page& s = file.slot(slot);
  std::array<std::uint64_t, 2> command{};
  const std::string name = shown_command[0] != 0 ? shown_command.data() : comm_of(us.pid, us.tid);
  std::memcpy(command.data(), name.data(), std::min(name.size(), sizeof command));
  // Relaxed: the command is for display only.
  s.command[0].store(command[0], std::memory_order_relaxed);
  s.command[1].store(command[1], std::memory_order_relaxed);
  s.pid.store(us.pid, std::memory_order_relaxed);
  s.tid.store(us.tid, std::memory_order_relaxed);
  s.sleeps_at.store(0, std::memory_order_relaxed);
  s.relied_on.store(0, std::memory_order_relaxed);
  s.guarded.store(0, std::memory_order_relaxed);
  s.examined_at.store(0, std::memory_order_relaxed);
  s.fully_examined_at.store(now_ns(), std::memory_order_relaxed);
  write_born(s, us);
  const std::uint32_t incarnation = incarnation_after(s.life_now().incarnation);
  const bool has_hold_bytes = file.lock_hold_bytes(slot, 1, hold_bytes);
  s.hold_byte.store(has_hold_bytes ? std::uint64_t{incarnation} << 32 | 1 : 0,
                    std::memory_order_relaxed);
  s.image.store(image(), std::memory_order_relaxed);
  s.image_of.store(incarnation, std::memory_order_release);
  auto& used = file.header().used_slots;
  const auto ours = static_cast<std::uint32_t>(slot) + 1;
  for (std::uint32_t now = used.load(); now < ours && !used.compare_exchange_weak(now, ours);) {
  }
  file.header().living.fetch_add(1, std::memory_order_relaxed);
  // This comes before the first word of ours is written: from here on our death concerns others.
  s.life.store(slot_life{slot_state::living, incarnation}.bits());
}

void make_fresh(domain_slot_page& s) {
  for (auto& w : s.words)
    if (w.load(std::memory_order_relaxed) != 0) w.store(0, std::memory_order_relaxed);
  s.guarded.store(0, std::memory_order_relaxed);
  s.guarded_born.store(0, std::memory_order_relaxed);
}

// Frees the slot of an owner that has ended. The caller has the slot's byte, and is its owner
// meanwhile; if the caller dies in here, the next thread that comes does the same again.
bool clean(domain_file& file, int slot, std::uint64_t owner, const thread_identity& us) {
  domain_slot_page& s = file.slot(slot);
  if (!s.owner.compare_exchange_strong(owner, us.owner())) return false;
  write_born(s, us);
  // This comes first: if we die in here, no other thread subtracts the same once more
  // (domain_port::disarm).
  const std::uint32_t at = s.sleeps_at.exchange(0);
  if (at == own_bell) s.bell.parked.store(0, std::memory_order_relaxed);
  if (at != 0 && at != own_bell && at <= bells) {
    auto& parked = file.bell(at - 1).parked;
    for (std::uint32_t now = parked.load();
         now > 0 && !parked.compare_exchange_weak(now, now - 1);) {
    }
  }
  make_fresh(s);
  s.life.store(slot_life{slot_state::free, s.life_now().incarnation}.bits());
  return true;
}

// Calls `what` with the slot's byte locked, which keeps the byte if the result is true. False if
// another process has it: a living owner, or a dying one whose files are not closed yet.
template <class What>
bool with_byte(domain_file& file, int slot, What what) {
  const std::scoped_lock one_of_us(file.taking());
  // Another thread of ours may be the owner, or may have been, and died.
  const bool was_ours = file.has_locked_slot(slot);
  if (!was_ours && !file.lock_slot(slot)) return false;
  bool keeps = false;
  try {
    keeps = what();
  } catch (...) {
    if (!was_ours) file.unlock_slot(slot);
    throw;
  }
  if (!keeps && !was_ours) file.unlock_slot(slot);
  return keeps;
}

// True if the slot can be cleaned: its owner has ended, and nothing of it is needed any more.
bool is_left(domain_file& file, int slot, std::uint64_t owner) {
  domain_slot_page& s = file.slot(slot);
  const slot_life its = s.life_now();
  // A death that is not counted yet is counted for its owner, not for the one that cleans.
  const bool is_counted =
      its.state != slot_state::dead || s.counted.load(std::memory_order_acquire) == its.incarnation;
  return owner != 0 && its.state != slot_state::living && is_counted && is_idle(file, slot) &&
         !owner_lives(file, slot, owner, thoroughness::full);
}

// Takes that slot if it is free, or if it was a dead participant's and no lock needs it.
bool try_to_take(domain_file& file, int slot, const thread_identity& us, thoroughness how) {
  domain_slot_page& s = file.slot(slot);
  if (how == thoroughness::full && s.state() != slot_state::free)
    examine(file, slot, thoroughness::full);
  std::uint64_t owner = s.owner.load(std::memory_order_acquire);
  if (owner != 0 && !is_left(file, slot, owner)) return false;
  return with_byte(file, slot, [&] {
    if (owner == 0 ? !s.owner.compare_exchange_strong(owner, us.owner())
                   : !clean(file, slot, owner, us))
      return false;
    if (!is_idle(file, slot)) {  // its words were written over: a sweep deals with what it held
      s.life.store(slot_life{slot_state::dead, s.life_now().incarnation}.bits());
      return false;
    }
    move_in(file, slot, us);
    return true;
  });
}

}  // namespace

int take_slot(domain_file& file) {
  const thread_identity us = this_thread();
  const int most = file.steward();
  const int first = file.is_of_cluster() && !file.is_agent() ? slots_of_agent(most) : 0;
  const int used =
      std::min(most, static_cast<int>(file.header().used_slots.load(std::memory_order_acquire)));
  // A few of the slots that seem alive are examined each time, so that dead ones do not accumulate.
  constexpr std::uint32_t examined_each_time = 2;
  if (used > 0) {
    const std::uint32_t next =
        file.header().next_to_examine.fetch_add(examined_each_time, std::memory_order_relaxed);
    for (std::uint32_t i = 0; i < examined_each_time; ++i)
      examine(file, static_cast<int>((next + i) % static_cast<std::uint32_t>(used)),
              thoroughness::full);
  }
  for (int i = first; i < used; ++i)
    if (try_to_take(file, i, us, thoroughness::quick)) return i;
  for (int i = std::max(first, used); i < most; ++i) {
    file.make_room_for_slot(i);
    if (try_to_take(file, i, us, thoroughness::quick)) return i;
  }
  for (int i = first; i < most; ++i)
    if (try_to_take(file, i, us, thoroughness::full)) return i;
  return -1;
}

int take_steward(domain_file& file) {
  const int slot = file.steward();
  file.make_room_for_slot(slot);
  return try_to_take(file, slot, this_thread(), thoroughness::full) ? slot : -1;
}

void leave_slot(domain_file& file, int slot, remains what) {
  domain_slot_page& s = file.slot(slot);
  if (what != remains::nothing) {
    if (what == remains::queue_nodes)
      s.has_left.store(s.life_now().incarnation, std::memory_order_release);
    // Once the slot is dead another thread of ours may have it, and once the bytes are unlocked
    // waiters look whether it is.
    const std::scoped_lock one_of_us(file.taking());
    mark_dead(file, s, s.life_now(), s.owner.load(std::memory_order_relaxed));
    file.unlock_slot(slot);
    return;
  }
  file.header().living.fetch_sub(1, std::memory_order_relaxed);
  make_fresh(s);
  s.life.store(slot_life{slot_state::free, s.life_now().incarnation}.bits());
  std::uint64_t us = s.owner.load(std::memory_order_relaxed);
  const std::scoped_lock one_of_us(file.taking());
  // The owner is cleared before the byte is unlocked: a slot that has an owner and whose byte is
  // free is a dead participant's. Release: a thread that takes the slot sees its words as new.
  s.owner.compare_exchange_strong(us, 0, std::memory_order_release);
  file.unlock_slot(slot);
}

void mark_earlier_images(domain_file& file) {
  if (!file.is_new_to_image()) return;
  for_each_slot(file, [&](int i) {
    const std::uint64_t owner = file.slot(i).owner.load(std::memory_order_acquire);
    if (thread_identity::from(owner, 0).pid == getpid()) examine(file, i, thoroughness::full);
  });
}

bool has_left(const domain_slot_page& s) {
  return s.has_left.load(std::memory_order_acquire) == s.life_now().incarnation;
}

bool examine(domain_file& file, int slot, thoroughness how) {
  domain_slot_page& s = file.slot(slot);
  // The incarnation is read first: the later steps are about that participant, or change nothing.
  const slot_life its = s.life_now();
  const std::uint64_t owner = s.owner.load(std::memory_order_acquire);
  if (its.state == slot_state::dead) {
    count_death(file, s, its.incarnation, owner);
    return true;
  }
  if (its.state == slot_state::living) {
    if (owner == 0 || lives(file, slot, owner, how)) return false;
  } else if (is_idle(file, slot) ||
             (owner != 0 && owner_lives(file, slot, owner, thoroughness::full))) {
    return false;  // if not, it was written over, or its owner died before it was living
  }
  if (s.owner.load(std::memory_order_acquire) == owner) mark_dead(file, s, its, owner);
  return s.state() == slot_state::dead;
}

void examine_all(domain_file& file) {
  for_each_slot(file, [&](int i) {
    if (file.slot(i).state() == slot_state::living) examine(file, i, thoroughness::full);
  });
  // Corrects slots that were counted twice or not at all because a thread died between.
  auto& living = file.header().living;
  std::int32_t before = living.load();
  std::int32_t now = 0;
  for_each_slot(file, [&](int i) { now += file.slot(i).state() == slot_state::living ? 1 : 0; });
  living.compare_exchange_strong(before, now);
}

bool free_slot(domain_file& file, int slot) {
  domain_slot_page& s = file.slot(slot);
  const std::uint64_t owner = s.owner.load(std::memory_order_acquire);
  if (s.state() != slot_state::dead || !is_left(file, slot, owner)) return false;
  bool is_free = false;
  static_cast<void>(with_byte(file, slot, [&] {
    is_free = clean(file, slot, owner, this_thread());
    if (is_free) s.owner.store(0, std::memory_order_release);
    return false;  // the byte is not needed any more
  }));
  return is_free;
}

bool is_idle(const domain_file& file, int slot) {
  const domain_slot_page& s = file.slot(slot);
  for (std::uint32_t i = 0; i < records; ++i)
    // Acquire: a thread that finds the record idle sees the writes that made it so.
    if (s.words[first_record + i].load(std::memory_order_acquire) != 0) return false;
  return true;
}

bool has_dead(const domain_file& file) {
  bool found = false;
  for_each_slot(file, [&](int i) {
    if (file.slot(i).state() == slot_state::dead) found = true;
  });
  return found;
}

void guard(domain_slot_page& slot, const thread_identity& also) noexcept {
  // The start is 0, which means unknown, while the number changes: so no reader combines the number
  // of one process with the start of another.
  slot.guarded_born.store(0, std::memory_order_release);
  slot.guarded.store(also.owner(), std::memory_order_release);
  slot.guarded_born.store(also.born, std::memory_order_release);
}

bool guards_process(const domain_slot_page& slot, std::int32_t pid) noexcept {
  const std::uint64_t guarded = slot.guarded.load(std::memory_order_acquire);
  const std::uint64_t space =
      slot.owner.load(std::memory_order_acquire) >> thread_identity::space_at;
  return thread_identity::from(guarded, 0).pid == pid && thread_identity::is_of(space, guarded);
}

std::string command_of(const domain_slot_page& s) {
  // A guarded process of the owner's own program is a run in a run, or has not called exec yet: the
  // owner's text says what it runs.
  if (const auto who = guarded_by(s, recent_space()))
    if (std::string found = comm_of(who->pid, who->tid);
        !found.empty() && found != comm_of(s.pid.load(std::memory_order_relaxed),
                                           s.tid.load(std::memory_order_relaxed)))
      return found;
  std::array<char, 17> command{};
  const std::array words{s.command[0].load(std::memory_order_relaxed),
                         s.command[1].load(std::memory_order_relaxed)};
  std::memcpy(command.data(), words.data(), sizeof words);
  return command.data();
}

std::string command_of_process() {
  return shown_command[0] != 0 ? shown_command.data() : comm_of(getpid(), getpid());
}

void show_process_as(std::string_view command) noexcept {
  shown_command = {};
  command.copy(shown_command.data(), shown_command.size() - 1);
}

bool has_foreign_pid(const domain_file& file, int slot) {
  // The owner word of a dead participant is gone.
  const std::uint64_t owner = file.slot(slot).born_of.load(std::memory_order_acquire);
  return owner != 0 && !file.has_locked_slot(slot) && !is_numbered_here(owner);
}

std::string process_text(const domain_file& file, int slot) {
  return "process " + std::to_string(file.slot(slot).pid.load(std::memory_order_relaxed)) +
         (has_foreign_pid(file, slot) ? " of another PID namespace" : "");
}

bool is_stopped(const domain_slot_page& s) {
  const std::uint64_t owner = s.owner.load(std::memory_order_acquire);
  const std::uint64_t space = recent_space();
  if (!thread_identity::is_of(space, owner)) return false;
  if (life_of(owner_of(s, owner), extent::thread) == life::stopped) return true;
  const auto also = guarded_by(s, space);
  return also && life_of(*also, extent::thread) == life::stopped;
}

}  // namespace lockflight::detail
