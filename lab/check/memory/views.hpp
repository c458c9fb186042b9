// Release/acquire views with seq_cst fences: RC11 (Lahav, Vafeiadis, Kang, Hur and Dreyer,
// "Repairing Sequential Consistency in C/C++11", PLDI 2017) as an operational memory (Kang, Hur,
// Lahav, Vafeiadis and Dreyer, "A Promising Semantics for Relaxed-Memory Concurrency", POPL 2017,
// without promises).
//
// A cell is a short history of messages. A view says for each cell the oldest message that may
// still be read. Each participant has a view, and so has each message: the view of its writer. A
// participant reads any message that is not older than its view, and an acquire joins the message's
// view to its own. A write goes behind any message that is not older than the writer's view, but
// never between a read-modify-write and the message that it read. The fences have a view together;
// a fence makes that view and its participant's both the join of the two. A posted operation has
// the view of its posting and takes effect at the end of the history (C5).
//
// The uses of the guarded data are marks on cells of their own: one for exclusive uses, and one for
// the shared uses of each participant. A participant has seen a use if its view has the mark.
//
// RC11 also orders seq_cst read-modify-writes without a fence between them. Here they only acquire
// and release, so that every behaviour of RC11 is a behaviour here.
//
// After each step, messages older than all views of participants that may still read are dropped
// and the rest renumbered, so that equal futures look equal.
#pragma once

#include <array>
#include <bit>
#include <cstring>

#include "lab/check/memory/memory.hpp"

namespace lockflight::check {

class views_memory final : public memory {
 public:
  views_memory(world& all, bool tracks_relaxed) : memory(all), tracks_relaxed_(tracks_relaxed) {}

  void start(int participants) override;
  [[nodiscard]] bool buffers_stores() const override { return false; }
  [[nodiscard]] bool needs_fences() const override { return true; }

  [[nodiscard]] int choices(rank_t f, cell_id cell) const override;
  [[nodiscard]] word peek(rank_t f, cell_id cell, int choice) const override;
  [[nodiscard]] bool is_free(cell_id cell, int choice) const override;
  word read(rank_t f, cell_id cell, int choice, order how) override;
  bool write(rank_t f, cell_id cell, word value, int choice, order how) override;
  bool modify(rank_t f, cell_id cell, word value, int choice, order how) override;
  void fence(rank_t f) override;
  void may_only_read(rank_t f, cell_id cell) override { looks(f, at(cell)); }
  [[nodiscard]] bool fence_is_private(rank_t f) const override;

  void post(rank_t f, posted& p, order how) override;
  [[nodiscard]] int choices(const posted& p) const override;
  [[nodiscard]] word peek(const posted& p, int choice) const override;
  word read(posted& p, int choice) override;
  bool write(rank_t f, posted& p, word value) override;
  bool modify(rank_t f, posted& p, word value) override;
  void fence(posted& p) override;
  void follow(posted& later, const posted& before) override { join(later.view, before.view); }
  void complete(rank_t f, const posted& p, order how) override;

  void arrive(rank_t to, const posted& p, word inbox) override;
  void receive(rank_t by, word inbox) override;
  [[nodiscard]] word inbox(rank_t of) const override { return head_.inbox[index(of)]; }
  void catch_up(rank_t f) override;
  void learn(rank_t f, rank_t other) override { join(now(f), now(other)); }

  void mark(rank_t f, bool exclusive) override;
  [[nodiscard]] bool has_seen(rank_t f, bool exclusive) override;

  [[nodiscard]] word newest(cell_id cell) const override;
  std::uint8_t note_class(cell_id cell, std::uint8_t rmw_class) override;
  void settle() override;
  void drop_unread() override;
  [[nodiscard]] unsigned learned() const override { return learned_; }
  [[nodiscard]] std::uint64_t key() const override;

  void open(undo& record, std::vector<std::byte>& copies) override;
  void close() override {}
  void take_back(const undo& record, std::span<const std::byte> copies) override;
  void save(std::vector<std::byte>& into) const override;
  void restore(std::span<const std::byte> from) override;

 private:
  /// Where a view's entry for a cell or a mark is, and the history of the cell or mark.
  using location = std::size_t;
  /// The number of a view. Views move only when the stride changes; their numbers stay.
  using view_id = std::uint8_t;

  struct message {
    word value = 0;
    view_id view = nothing;
    bool attached = false;  ///< a read-modify-write that read the message before
  };

  /// The view that has seen nothing: of an initial message, or of one whose writer knew nothing
  /// that some reader does not know.
  static constexpr view_id nothing = 0;
  static constexpr view_id of_fences = 1 + most_fibers;
  static constexpr view_id first_free = 2 + most_fibers;
  static constexpr view_id most_views = 192;
  static constexpr location marks = 1 + most_fibers;
  static constexpr std::size_t most_messages = 250;  ///< of a cell
  static constexpr std::size_t most_locations = marks + most_cells;
  static constexpr std::size_t most_letters = 2 * most_fibers;
  static constexpr std::size_t stride_unit = 32;

  struct head {
    std::array<std::uint64_t, most_views / 64> used{};  ///< bit v: view v is in use
    std::array<word, most_fibers> inbox{};
    std::uint16_t locations = 0;
    std::uint16_t messages = 0;
    std::uint16_t stride = 0;                     ///< bytes of a view
    std::uint16_t views = 0;                      ///< the views in use have numbers below this
    std::array<view_id, most_fibers> acquired{};  ///< the view that an acquire fence would add …
    std::array<view_id, most_fibers> released{};  ///< … and what the last fence released
    std::array<std::uint8_t, most_fibers> letters{};
    std::array<std::array<view_id, most_letters>, most_fibers> letter{};
    std::uint8_t participants = 0;
  };

  [[nodiscard]] static std::size_t index(rank_t f) { return static_cast<std::size_t>(f); }
  [[nodiscard]] static location at(cell_id cell) { return marks + cell; }
  [[nodiscard]] static view_id now(rank_t f) { return static_cast<view_id>(1 + f); }
  [[nodiscard]] bool is_known(location l) const { return l < head_.locations; }
  [[nodiscard]] std::uint8_t* view(view_id v) {
    return bytes_.data() + std::size_t{v} * head_.stride;
  }
  [[nodiscard]] const std::uint8_t* view(view_id v) const {
    return bytes_.data() + std::size_t{v} * head_.stride;
  }
  [[nodiscard]] std::size_t count(location l) const {
    return static_cast<std::size_t>(first_[l + 1] - first_[l]);
  }
  [[nodiscard]] message& message_at(location l, std::size_t place) {
    return messages_[first_[l] + place];
  }
  [[nodiscard]] const message& message_at(location l, std::size_t place) const {
    return messages_[first_[l] + place];
  }
  [[nodiscard]] std::size_t place_of(location l, int choice) const {
    return count(l) - 1 - static_cast<std::size_t>(choice);
  }

  // The uses that participants make of a location, as far as it has been learned.
  struct uses {
    std::array<std::uint8_t, most_locations + stride_unit>
        skips{};  ///< 0 of those that the participant reads
    std::array<bool, most_locations> modifies{};
  };
  void looks(rank_t f, location l);
  void writes(location l);
  void modifies(rank_t f, location l);
  void know(location l);
  void widen(std::size_t stride);
  [[nodiscard]] view_id copy_of(view_id v);
  void join(view_id into, view_id from);
  void raise(view_id v, location l, std::size_t place) {
    std::uint8_t& entry = view(v)[l];
    if (entry < place) entry = static_cast<std::uint8_t>(place);
  }
  void see(rank_t f, location l, std::size_t place);
  void insert(location l, std::size_t place, word value, bool attached);
  bool put(rank_t f, location l, std::size_t place, word value, bool attached, view_id with);
  void acquire(rank_t f, view_id v, bool acquires);
  [[nodiscard]] bool reads(rank_t f) const;
  void drop_what_nobody_reads();
  void collect_views();
  [[nodiscard]] std::uint64_t hash_of(view_id v) const;
  [[nodiscard]] std::size_t copied_bytes() const;
  void copy_to(std::byte* to) const;
  void copy_from(const std::byte* from);

  bool tracks_relaxed_;
  bool drops_unread_ = false;
  unsigned learned_ = 0;
  std::array<uses, most_fibers> uses_{};
  std::array<bool, most_locations> is_written_{};  // by writes that are no read-modify-writes
  head head_;
  std::vector<std::uint16_t> first_{0};  // [location]: of its messages; one more than locations
  std::vector<message> messages_;        // from the oldest to the newest of each location
  std::vector<std::uint8_t> classes_;    // [location]
  std::vector<std::uint8_t> bytes_;      // of the views
  std::vector<std::uint8_t> floor_;      // used by settle()
};

}  // namespace lockflight::check
