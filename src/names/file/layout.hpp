// The parts of a domain's file. All that its participants share lies in here, and no part
// of it is an address.
//
// In this order: the head (header, classes, buckets, bells), a page for each slot, and the room,
// which grows: the words of the locks. Slots and room are divided into pieces. A piece has memory
// from the moment on that the header counts it, so that no read ever ends a process for want of
// memory; what nobody needs yet has none, and no process maps it.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "lockflight/fabric/parking.hpp"
#include "lockflight/rma/cell.hpp"
#include "lockflight/rma/layout.hpp"

namespace lockflight::detail {

constexpr std::uint32_t records = 32;     ///< of robust locks, of each participant
constexpr std::uint32_t own_words = 320;  ///< of each participant: its queue nodes and records
constexpr std::uint32_t first_record =
    rma::line_words + 32 * rma::line_words;  ///< behind the nodes
constexpr int most_slots = 4095;
constexpr std::size_t bytes_of_note = 128;  ///< of a hold with a life of its own
constexpr int ranks = 4096;                 ///< a power of two; one slot is the steward's

/// The state of a slot.
enum class slot_state : std::uint8_t { free = 0, living = 1, dead = 2 };

/// The same with the number of the participant that has it, or had it last, in one word: so what is
/// found out about one participant is never said of the next.
struct slot_life {
  slot_state state = slot_state::free;
  std::uint32_t incarnation = 0;

  [[nodiscard]] std::uint64_t bits() const {
    return std::uint64_t{incarnation} << 32 | static_cast<std::uint64_t>(state);
  }
  [[nodiscard]] static slot_life from(std::uint64_t bits) {
    return {static_cast<slot_state>(bits & 0xff), static_cast<std::uint32_t>(bits >> 32)};
  }
};

/// A participant's place: a page.
struct domain_slot_page {
  /// The participant's cells: those with an index below own_words.
  std::atomic<rma::word> words[own_words];

  // ---- its participant ----
  /// The participant's process and thread (slots.cpp packs them), or the one that cleans up after
  /// it; 0: nobody. Changed by compare-swap.
  alignas(64) std::atomic<std::uint64_t> owner;
  std::atomic<std::uint64_t> life;     ///< a slot_life
  std::atomic<std::uint32_t> counted;  ///< the last incarnation whose death was counted
  /// The incarnation that has nothing left to do under the locks that it holds: its death is a
  /// release. 0: none.
  std::atomic<std::uint32_t> finished;
  std::atomic<std::uint64_t> born;  ///< when `born_of` started, in ticks since the boot
  /// The owner of which `born` says that: a new owner is not judged by the start of the last one.
  std::atomic<std::uint64_t> born_of;
  /// A process that has to have ended as well, and when it started; 0: none.
  std::atomic<std::uint64_t> guarded, guarded_born;

  /// On CLOCK_MONOTONIC, when somebody looked last whether it lives, quickly and fully.
  std::atomic<std::uint64_t> examined_at, fully_examined_at;

  /// The process image (fork.hpp) of the incarnation `image_of`; of any other one it is not known,
  /// nor if earlier versions of lockflight, which do not write it, have had the slot since.
  std::atomic<std::uint64_t> image;
  std::atomic<std::uint32_t> image_of;
  /// The incarnation whose thread has left of itself, and whose queue nodes others may still write
  /// to: its slot is dead until they do not, but nobody died. 0: none.
  std::atomic<std::uint32_t> has_left;

  // ---- what it is doing ----
  /// The bell at which the participant sleeps, or is about to: 1 + its number, or own_bell; 0:
  /// none.
  alignas(64) std::atomic<std::uint32_t> sleeps_at;
  /// A bit for each record: somebody relies on its hold (names/life/reliance.hpp). Earlier versions
  /// neither read nor write this word.
  std::atomic<std::uint32_t> relied_on;
  /// On the machine's CLOCK_MONOTONIC (machine_clock.hpp), for show alone.
  std::atomic<std::uint64_t> waits_since;
  std::atomic<std::uint64_t> holds_since[records];
  std::atomic<std::uint64_t> command[2];
  std::atomic<std::int32_t> pid, tid;

  shm::detail::bell bell;  ///< of its cells

  // ---- ends of holds, which earlier versions neither read nor write ----
  /// When the hold of each record is to end (names/life/hold_end.hpp).
  std::atomic<std::uint64_t> ends[records];
  /// The incarnation that is a keeper of `lockflight hold`, the token by which its hold is
  /// released, and its note. 0: none.
  std::atomic<std::uint32_t> keeper;
  std::atomic<std::uint64_t> kept_token;
  std::atomic<std::uint64_t> note[bytes_of_note / sizeof(std::uint64_t)];
  /// Of a candidate of an election, in the lower half; the upper half is its incarnation.
  std::atomic<std::uint64_t> priority;
  std::atomic<std::uint32_t> candidate_for;  ///< the first line of the election's lock
  /// The number of the hold byte that the participant keeps locked until a hold ends on which
  /// others rely, and the incarnation in the upper half. Another incarnation: it keeps none.
  std::atomic<std::uint64_t> hold_byte;

  [[nodiscard]] slot_life life_now() const {
    return slot_life::from(life.load(std::memory_order_seq_cst));
  }
  [[nodiscard]] slot_state state() const { return life_now().state; }
  /// False if it was not `from` any more.
  bool change_life(slot_life from, slot_life to) {
    std::uint64_t expected = from.bits();
    return life.compare_exchange_strong(expected, to.bits());
  }
};
constexpr std::uint32_t own_bell = UINT32_MAX;
constexpr std::size_t slot_bytes = 4096;
static_assert(sizeof(domain_slot_page) <= slot_bytes);
static_assert(offsetof(domain_slot_page, ends) == 3200, "behind all that earlier versions know");
static_assert(offsetof(domain_slot_page, sleeps_at) == sizeof(domain_slot_page::words) + 128 &&
                  offsetof(domain_slot_page, waits_since) ==
                      offsetof(domain_slot_page, sleeps_at) + 8,
              "earlier versions find the other words where they were");

/// Locks of one kind with the same parameters and names of about the same length: their blocks are
/// alike.
struct alignas(512) domain_class {
  char kind[32];
  char parameters[464];      ///< all of them, with their values
  std::uint32_t name_lines;  ///< of a block, its last ones
  std::uint32_t words;       ///< of a block
  std::uint32_t free;        ///< the first free block; each leads to the next
};
constexpr std::uint32_t most_classes = 64;
/// The index of the word of a lock's block that has the lock's class in its lower half. The upper
/// half counts the generations of the lock that were replaced because others had left, which
/// repaired nothing.
constexpr std::uint32_t class_word = 5;
constexpr std::uint64_t one_repair_without_death = std::uint64_t{1} << 32;
constexpr std::uint32_t buckets = 32768;
constexpr std::uint32_t bells = 1024;  ///< of the words of locks

struct domain_header {
  // Never changes once the file has its name; `check` is of all this.
  std::uint64_t magic;
  std::uint32_t format;
  std::uint32_t abi;  ///< sizes that would make another layout
  std::uint32_t slots;
  std::uint32_t names;
  std::uint32_t mode;
  std::uint32_t fenced;  ///< 1: no membarrier here, each store has its fence
  std::uint64_t check;

  // ---- membership ----
  alignas(128) std::atomic<std::uint64_t> deaths;
  std::atomic<std::uint32_t> used_slots;   ///< no slot from here on was ever taken
  std::atomic<std::uint32_t> slot_pieces;  ///< pieces that have memory
  std::atomic<std::int32_t> living;        ///< about as many threads have slots
  std::atomic<std::uint32_t> next_to_examine;
  /// The number of the process that removes the domain or has removed it, so that no thread takes a
  /// slot; in the upper half the number of such marks. Or 0.
  std::atomic<std::uint64_t> removal;
  /// The part of `deaths`, which ends waits, that are no departures: for display only.
  std::atomic<std::uint64_t> died;

  // ---- the directory ----
  /// The participant that changes it: 1 + its slot, and its incarnation in the upper half; or 0.
  alignas(128) std::atomic<std::uint64_t> directory;
  std::atomic<std::uint64_t> changes;  ///< odd while somebody changes it
  std::atomic<std::uint64_t> serials;  ///< the last one given
  /// At least as large as any token of a lock that is forgotten. Begins with the wall clock, so
  /// that tokens grow across domains of the same name, too.
  std::atomic<std::uint64_t> tokens;
  std::atomic<std::uint32_t> classes;
  std::atomic<std::uint32_t> next_line;    ///< no block from here on
  std::atomic<std::uint32_t> room_pieces;  ///< pieces that have memory
  std::atomic<std::uint32_t> count;        ///< of names
};

/// The words that clients of a cluster's domain share with the agent of their host
/// (src/names/cluster/client). They lie behind the header, where the domain of one host has zeros.
struct cluster_header {
  /// The host's member_id, and a number that no earlier agent of the host had.
  std::atomic<std::uint64_t> member;
  std::atomic<std::uint32_t> agents;
  std::atomic<std::int64_t> registered;
  /// A client could not ring: the agent has to look at all names.
  std::atomic<std::uint32_t> missed_rings;
  /// The domain's time to live in microseconds, for clients that choose how early they act.
  std::atomic<std::int64_t> time_to_live;
  /// The numbers of the beats of this host that etcd may have (names/cluster/core/words.hpp).
  std::atomic<std::uint64_t> confirmed_beat;
  std::atomic<std::uint64_t> last_beat;
  /// The cluster of this host's agents, and how often it was recovered.
  std::atomic<std::uint64_t> cluster;
  // Each acquire reads these.
  alignas(64) std::atomic<std::int64_t> deadline;  ///< microseconds of CLOCK_BOOTTIME
  std::atomic<std::uint32_t> incarnation;
  std::atomic<std::uint32_t> recoveries;
  /// The time namespace whose clock the deadline is of (machine_clock.hpp).
  std::atomic<std::uint64_t> time_space;
  /// A number of the machine, its boot and this very file. A copy has another one.
  std::atomic<std::uint64_t> origin;
};

static_assert(offsetof(domain_header, directory) == 256, "where earlier versions find it");

constexpr std::size_t page = 4096;
constexpr std::size_t cluster_at = page / 2;
static_assert(sizeof(domain_header) <= cluster_at && cluster_at + sizeof(cluster_header) <= page);
constexpr std::size_t piece_bytes = std::size_t{256} << 10;
constexpr std::uint32_t slots_of_piece = piece_bytes / slot_bytes;
constexpr std::uint32_t lines_of_piece = piece_bytes / (rma::line_words * sizeof(rma::word));
constexpr std::uint32_t most_slot_pieces = ranks / slots_of_piece;
constexpr std::uint32_t most_room_pieces = 16384;  ///< 4 GiB
constexpr std::uint32_t first_line = own_words / rma::line_words;
constexpr std::uint32_t last_line = first_line + most_room_pieces * lines_of_piece;

constexpr std::size_t up_to_page(std::size_t n) { return (n + page - 1) / page * page; }
constexpr std::size_t classes_at = up_to_page(sizeof(domain_header));
constexpr std::size_t buckets_at = up_to_page(classes_at + most_classes * sizeof(domain_class));
constexpr std::size_t bells_at = up_to_page(buckets_at + buckets * sizeof(std::uint32_t));
constexpr std::size_t head_bytes = up_to_page(bells_at + bells * sizeof(shm::detail::bell));
constexpr std::size_t slots_at = head_bytes;
constexpr std::size_t room_at = slots_at + ranks * slot_bytes;

// The bytes that participants and removers lock, for the kernel to give back when they end.
constexpr off_t removal_byte = 0;
constexpr off_t agent_byte = 1;  ///< of the agent of a cluster's domain
[[nodiscard]] constexpr off_t byte_of_slot(int number) {
  return static_cast<off_t>(slots_at + static_cast<std::size_t>(number) * slot_bytes);
}
/// A guarded process has a byte of its own, so that nobody takes what the last participant has left
/// running for it.
[[nodiscard]] constexpr off_t byte_of_guard(int number, std::uint32_t incarnation) {
  return byte_of_slot(number) + 1 + static_cast<off_t>(incarnation % (slot_bytes - 1));
}
/// A participant has some bytes behind that of its slot, numbered from 1 on, for the processes that
/// wait until its hold ends (names/life/reliance.hpp).
constexpr std::uint32_t hold_bytes = 3;
[[nodiscard]] constexpr off_t byte_of_hold(int number, std::uint32_t hold_byte) {
  return byte_of_slot(number) + static_cast<off_t>(hold_byte);
}
/// The number of a slot's next participant: one whose guarded process has none of these bytes.
[[nodiscard]] constexpr std::uint32_t incarnation_after(std::uint32_t last) {
  do ++last;
  while (byte_of_guard(0, last) <= byte_of_hold(0, hold_bytes));
  return last;
}

/// Slots are used from 0 on, but neighbours have ranks that are far apart, as locks share counters
/// among ranks that are near each other. Its own inverse.
[[nodiscard]] constexpr int rank_of_slot(int slot) {
  constexpr int bits = 12;
  static_assert(1 << bits == ranks);
  unsigned from = static_cast<unsigned>(slot);
  unsigned to = 0;
  for (int i = 0; i < bits; ++i, from >>= 1) to = to << 1 | (from & 1);
  return static_cast<int>(to);
}

}  // namespace lockflight::detail
