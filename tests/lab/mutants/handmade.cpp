// Broken locks that resemble no lock of the table.
#include <array>
#include <cstdint>

#include "lab/check/program/subject.hpp"
#include "tests/lab/mutants/mutant.hpp"

namespace lockflight::mutants {
namespace {

struct no_parameters {
  [[nodiscard]] static constexpr std::array<lock::parameter<no_parameters>, 0> all() { return {}; }
};

/// The base of every lock here: four words at rank 0, each as the class that it is used with.
class four_words {
 public:
  static constexpr lock::facts about{.name = "handmade",
                                     .what = lock::kind::mutex,
                                     .source = "tests/lab/mutants/handmade.cpp",
                                     .bytes_home = 32,
                                     .bytes_per_node = 0,
                                     .bytes_per_participant = 0};
  using parameters = no_parameters;

  struct cells {
    rma::nic_cell words;

    static cells place(rma::layout& in, const rma::topology&, const parameters&, rma::rank_t home) {
      return {in.take<rma::nic_cell>(4).at(home)};
    }
  };

  four_words(rma::participant<check::port>& me, const cells& where, const parameters&)
      : port_(me.port()), rank_(me.rank()), words_(where.words) {}

 protected:
  [[nodiscard]] rma::nic_cell word(std::uint32_t i) const { return words_ + i; }
  [[nodiscard]] rma::plain_cell plain_word(std::uint32_t i) const {
    return {words_.home, words_.index + i};
  }

  check::port& port_;
  rma::rank_t rank_;

 private:
  rma::nic_cell words_;
};

enum class peterson_as : std::uint8_t { published, without_its_fence, victim_first };

/// G. L. Peterson, "Myths About the Mutual Exclusion Problem", 1981; two ranks of one node.
template <peterson_as How>
class peterson : public four_words {
 public:
  using four_words::four_words;

  void lock() {
    const auto me = static_cast<std::uint32_t>(rank_);
    const std::uint32_t other = 1 - me;
    if (How == peterson_as::victim_first) port_.store(plain_word(turn), other);
    port_.store(plain_word(me), 1);
    if (How != peterson_as::victim_first) port_.store(plain_word(turn), other);
    // The write above must be visible before the read below.
    if (How != peterson_as::without_its_fence) port_.fence();
    while (port_.load(plain_word(other)) == 1 && port_.load(plain_word(turn)) == other)
      port_.pause(0);
  }

  void unlock() { port_.store(plain_word(static_cast<std::uint32_t>(rank_)), 0); }

 private:
  static constexpr std::uint32_t turn = 2;
};

/// A participant that sees another one withdraws and tries again; two of them can do so for ever.
class polite : public four_words {
 public:
  using four_words::four_words;

  void lock() {
    while (true) {
      add(1);
      if (rma::get_now(port_, word(0)) == 1) return;
      add(~rma::word{0});
      port_.pause(0);
    }
  }

  void unlock() { add(~rma::word{0}); }

 private:
  void add(rma::word value) {
    port_.add(word(0), value);
    port_.flush(word(0).home);
  }
};

}  // namespace

std::vector<mutant> handmade_mutants() {
  const std::string unfenced =
      "each one's mark waits in its store buffer while it looks for the "
      "other's";
  return {
      {.name = "peterson",
       .lock = "handmade",
       .why = "control: nothing is broken",
       .base = "peterson",
       .bound = "writers=2 levels=2 rounds=2",
       .expected = "ok",
       .stale = "",
       .broken = check::make_subject<peterson<peterson_as::published>>()},
      {.name = "peterson_unfenced",
       .lock = "handmade",
       .why = unfenced,
       .base = "peterson",
       .bound = "writers=2 levels=2",
       .expected = "mutual exclusion",
       .stale = "",
       .broken = check::make_subject<peterson<peterson_as::without_its_fence>>()},
      {.name = "peterson_unfenced_unbuffered",
       .lock = "handmade",
       .why = "control: without store buffers it needs no fence",
       .base = "peterson",
       .bound = "writers=2 levels=2 rounds=2 off=s",
       .expected = "ok",
       .stale = "",
       .broken = check::make_subject<peterson<peterson_as::without_its_fence>>()},
      {.name = "peterson_victim_first",
       .lock = "handmade",
       .why = "a participant that gives way before it announces itself can be missed by both",
       .base = "peterson",
       .bound = "writers=2 levels=2",
       .expected = "mutual exclusion",
       .stale = "",
       .broken = check::make_subject<peterson<peterson_as::victim_first>>()},
      {.name = "polite",
       .lock = "handmade",
       .why = "two that withdraw for each other do so for ever",
       .base = "",
       .bound = "writers=2",
       .expected = "livelock",
       .stale = "",
       .broken = check::make_subject<polite>()},
  };
}

}  // namespace lockflight::mutants
