// Total store order: one value in each cell, and a buffer of stores that its participant reads
// first (Sewell, Sarkar, Owens, Zappa Nardelli and Myreen, "x86-TSO: A Rigorous and Usable
// Programmer's Model for x86 Multiprocessors", CACM 2010). Multi-copy atomic processors whose loads
// acquire and whose stores release are within it.
//
// The buffers are in `world`, since the engine makes a step of each store that becomes visible.
#pragma once

#include "lab/check/memory/memory.hpp"

namespace lockflight::check {

class tso_memory final : public memory {
 public:
  tso_memory(world& all, bool buffers) : memory(all), buffers_(buffers) {}

  void start(int participants) override;
  [[nodiscard]] bool buffers_stores() const override { return buffers_; }
  [[nodiscard]] bool needs_fences() const override { return false; }

  [[nodiscard]] int choices(rank_t, cell_id) const override { return 1; }
  [[nodiscard]] word peek(rank_t f, cell_id cell, int) const override;
  [[nodiscard]] bool is_free(cell_id, int) const override { return true; }
  word read(rank_t f, cell_id cell, int choice, order) override { return peek(f, cell, choice); }
  bool write(rank_t, cell_id cell, word value, int, order) override { return put(cell, value); }
  bool modify(rank_t, cell_id cell, word value, int, order) override { return put(cell, value); }
  void fence(rank_t) override {}
  void may_only_read(rank_t, cell_id) override {}
  [[nodiscard]] bool fence_is_private(rank_t) const override { return false; }

  void post(rank_t f, posted& p, order) override {
    p.after = world_.fiber[static_cast<std::size_t>(f)].stores_issued;
  }
  [[nodiscard]] int choices(const posted&) const override { return 1; }
  [[nodiscard]] word peek(const posted& p, int) const override { return world_.memory[p.cell]; }
  word read(posted& p, int) override { return world_.memory[p.cell]; }
  bool write(rank_t, posted& p, word value) override { return put(p.cell, value); }
  bool modify(rank_t, posted& p, word value) override { return put(p.cell, value); }
  void fence(posted&) override {}
  void follow(posted&, const posted&) override {}
  void complete(rank_t, const posted&, order) override {}

  void arrive(rank_t to, const posted&, word inbox) override { put(inbox_of(to), inbox); }
  void receive(rank_t by, word inbox) override { put(inbox_of(by), inbox); }
  [[nodiscard]] word inbox(rank_t of) const override { return world_.memory[inbox_of(of)]; }
  void catch_up(rank_t) override {}
  void learn(rank_t, rank_t) override {}

  // A participant that is in after another one has seen all that the other one did.
  void mark(rank_t, bool) override {}
  [[nodiscard]] bool has_seen(rank_t, bool) override { return true; }

  [[nodiscard]] word newest(cell_id cell) const override { return world_.memory[cell]; }
  std::uint8_t note_class(cell_id cell, std::uint8_t rmw_class) override;
  void settle() override {}
  void drop_unread() override {}
  [[nodiscard]] unsigned learned() const override { return 0; }
  [[nodiscard]] std::uint64_t key() const override { return hash_; }

  void open(undo& record, std::vector<std::byte>& copies) override;
  void close() override { recording_ = nullptr; }
  void take_back(const undo& record, std::span<const std::byte> copies) override;
  void save(std::vector<std::byte>& into) const override;
  void restore(std::span<const std::byte> from) override;

 private:
  bool put(cell_id cell, word value);
  void record(cell_id cell);

  bool buffers_;
  std::uint64_t hash_ = 0;
  undo* recording_ = nullptr;
};

}  // namespace lockflight::check
