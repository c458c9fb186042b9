// The cells as participants see them: the replaceable part of the engine. The engine asks which
// messages a read can return and where a write can go, chooses, and tells the memory; it assumes
// nothing else about how writes become visible.
//
// A message is a value that was written to a cell. The messages of a cell have one order (C1). A
// choice numbers them from the newest one, which is 0, towards older ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "lab/check/memory/world.hpp"

namespace lockflight::check {

/// The memory order of an operation, as C++ has it. tso ignores it.
struct order {
  bool acquires;
  bool releases;
};

class memory {
 public:
  /// The change of one step, to undo it: the words of the one cell that it wrote, or a copy of the
  /// whole memory in the bytes that all records share.
  struct undo {
    cell_id cell = no_cell;
    std::uint8_t old_class = 0;
    word old_word = 0;
    std::uint64_t old_hash = 0;
    std::size_t copy_at = 0;
  };

  explicit memory(world& all) : world_(all) {}
  virtual ~memory() = default;
  memory(const memory&) = delete;
  memory& operator=(const memory&) = delete;

  /// All cells hold 0, and every participant has seen that.
  virtual void start(int participants) = 0;
  /// True if a store waits in a buffer of its participant (fiber_state::buffer) until a step makes
  /// it visible. If not, the store is a step of the participant.
  [[nodiscard]] virtual bool buffers_stores() const = 0;

  /// True if an RMW and a flush order nothing by themselves, so that a port needs a fence behind
  /// them.
  [[nodiscard]] virtual bool needs_fences() const = 0;

  // ---- immediate operations of a participant ----

  /// The number of messages that a read can return.
  [[nodiscard]] virtual int choices(rank_t f, cell_id cell) const = 0;
  [[nodiscard]] virtual word peek(rank_t f, cell_id cell, int choice) const = 0;
  /// True if a write can come right behind that message.
  [[nodiscard]] virtual bool is_free(cell_id cell, int choice) const = 0;
  virtual word read(rank_t f, cell_id cell, int choice, order how) = 0;
  /// Writes right behind that message. Returns whether the cell's newest value changes, as do the
  /// others that write.
  virtual bool write(rank_t f, cell_id cell, word value, int choice, order how) = 0;
  /// A read-modify-write that read that message.
  virtual bool modify(rank_t f, cell_id cell, word value, int choice, order how) = 0;
  virtual void fence(rank_t f) = 0;
  /// The participant's compare-swap of the CPU may fail, and is a read then.
  virtual void may_only_read(rank_t f, cell_id cell) = 0;
  /// True if a fence adds nothing to what other participants may see. Such a fence loses nothing if
  /// it comes at once: later ones let their participant read fewer messages.
  [[nodiscard]] virtual bool fence_is_private(rank_t f) const = 0;

  // ---- posted operations ----

  /// The operation was posted, and carries what its participant has seen and written.
  virtual void post(rank_t f, posted& p, order how) = 0;
  [[nodiscard]] virtual int choices(const posted& p) const = 0;
  [[nodiscard]] virtual word peek(const posted& p, int choice) const = 0;
  virtual word read(posted& p, int choice) = 0;
  /// Writes behind the newest message.
  virtual bool write(rank_t f, posted& p, word value) = 0;
  /// A read-modify-write that read the newest message.
  virtual bool modify(rank_t f, posted& p, word value) = 0;
  /// Where posts are ordered, a fence comes behind each that writes (C30), and what has taken
  /// effect comes before the later ones.
  virtual void fence(posted& p) = 0;
  virtual void follow(posted& later, const posted& before) = 0;
  /// A flush that the participant waited for has completed the operation.
  virtual void complete(rank_t f, const posted& p, order how) = 0;

  // ---- messages between participants, and deaths ----

  /// The message `p` arrives, and the receiver's inbox is `inbox` then.
  virtual void arrive(rank_t to, const posted& p, word inbox) = 0;
  virtual void receive(rank_t by, word inbox) = 0;
  [[nodiscard]] virtual word inbox(rank_t of) const = 0;
  /// So much time has passed that the participant reads no overwritten value any more.
  virtual void catch_up(rank_t f) = 0;
  /// From here on `f` has seen all that `other` has.
  virtual void learn(rank_t f, rank_t other) = 0;

  // ---- the data that a lock guards ----

  /// The participant has used the data, alone (`exclusive`) or beside others.
  virtual void mark(rank_t f, bool exclusive) = 0;
  /// True if the participant has seen all uses that exclude its own.
  [[nodiscard]] virtual bool has_seen(rank_t f, bool exclusive) = 0;

  // ---- for the engine ----

  /// The newest value.
  [[nodiscard]] virtual word newest(cell_id cell) const = 0;
  /// Notes that the cell is read-modify-written by that class, and returns all its classes.
  virtual std::uint8_t note_class(cell_id cell, std::uint8_t rmw_class) = 0;
  /// A step has ended.
  virtual void settle() = 0;
  /// From here on, whatever no participant has been seen to read is dropped. A search that drops
  /// starts over when it learns that a participant does read something.
  virtual void drop_unread() = 0;
  /// Grows when something is learned.
  [[nodiscard]] virtual unsigned learned() const = 0;
  /// A hash of the contents, of what participants have seen of it and may still see.
  [[nodiscard]] virtual std::uint64_t key() const = 0;

  /// Until close(), a step is recorded in `record`.
  virtual void open(undo& record, std::vector<std::byte>& copies) = 0;
  virtual void close() = 0;
  virtual void take_back(const undo& record, std::span<const std::byte> copies) = 0;
  /// The parts that are not in `world`.
  virtual void save(std::vector<std::byte>& into) const = 0;
  virtual void restore(std::span<const std::byte> from) = 0;

 protected:
  world& world_;
};

enum class memory_kind : std::uint8_t { tso, views };

struct memory_options {
  bool buffers_stores = true;   ///< tso: others see a store at any later moment
  bool tracks_relaxed = false;  ///< views: some operations neither acquire nor release
};

[[nodiscard]] std::unique_ptr<memory> make_memory(memory_kind kind, world& all,
                                                  const memory_options& how);

}  // namespace lockflight::check
