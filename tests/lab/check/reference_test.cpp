// The engine against a reference: the memory model written down once more, step by step and without
// any of the engine's savings (a post, a store, the end of a flush are steps of their own; states
// are compared in full, not by a hash). Random small programs must have the same outcomes in both.
#include <gtest/gtest.h>

#include <array>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "lab/check/engine/port.hpp"
#include "lab/check/search/search.hpp"
#include "tests/support/long_tests.hpp"

namespace lockflight::check {
namespace {

constexpr std::uint32_t first_word = 8;
constexpr int cells_each = 3;  // of each rank: a plain one, a nic one, a cpu one
constexpr word not_delivered = 99;

enum class op {
  store,
  load,
  put,
  get,
  fetch_add,
  swap,
  compare_swap,
  cpu_add,
  flush,
  fence,
  await
};

struct instruction {
  op what;
  int cell = 0;  // rank * cells_each + class
  word a = 0;
  word b = 0;
  rank_t target = -1;  // of a flush; -1 all
};

using code = std::vector<instruction>;
using outcome_set = std::set<std::vector<word>>;

[[nodiscard]] rank_t home_of(int cell) { return cell / cells_each; }
[[nodiscard]] bool is_posted(op what) {
  return what == op::put || what == op::get || what == op::fetch_add || what == op::swap ||
         what == op::compare_swap;
}

// ---- the reference ----

struct pending {
  std::size_t at;  // the instruction
  bool done = false;
  word read = 0;
  std::size_t stores_before = 0;
};

struct thread_state {
  std::size_t next = 0;
  std::size_t stores_issued = 0;
  std::vector<std::pair<int, word>> buffer;
  std::vector<pending> posts;
  std::vector<word> results;
};

class reference {
 public:
  explicit reference(const std::vector<code>& programs)
      : programs_(programs), memory_(programs.size() * cells_each), threads_(programs.size()) {
    for (std::size_t t = 0; t < programs.size(); ++t)
      threads_[t].results.assign(programs[t].size(), not_delivered);
    explore();
  }

  [[nodiscard]] const outcome_set& outcomes() const { return outcomes_; }
  [[nodiscard]] bool can_be_stuck() const { return stuck_; }

 private:
  void explore() {
    if (!seen_.insert(everything()).second) return;
    const std::vector<word> memory = memory_;
    const std::vector<thread_state> threads = threads_;
    bool can_go_on = false;  // by a step that will surely happen
    bool finished = true;
    for (std::size_t t = 0; t < threads_.size(); ++t) {
      finished = finished && threads_[t].next == programs_[t].size();
      const auto branch = [&](bool is_sure) {
        can_go_on = can_go_on || is_sure;
        explore();
        memory_ = memory;
        threads_ = threads;
      };
      if (step(t)) branch(true);
      if (drain(t)) branch(true);
      for (std::size_t i = 0; i < threads[t].posts.size(); ++i)
        if (take_effect(t, i)) branch(is_flushing(threads[t], programs_[t], i));
    }
    if (finished) outcomes_.insert(result());
    if (!finished && !can_go_on) stuck_ = true;
  }

  [[nodiscard]] std::vector<word> result() const {
    std::vector<word> all = memory_;
    for (const thread_state& t : threads_)
      all.insert(all.end(), t.results.begin(), t.results.end());
    return all;
  }

  [[nodiscard]] std::vector<word> everything() const {
    std::vector<word> all = result();
    for (const thread_state& t : threads_) {
      all.push_back(t.next);
      all.push_back(t.buffer.size());
      for (const auto& [cell, value] : t.buffer) {
        all.push_back(static_cast<word>(cell));
        all.push_back(value);
      }
      all.push_back(t.posts.size());
      for (const pending& p : t.posts) {
        all.push_back(p.at);
        all.push_back(p.done ? p.read + 1 : 0);
      }
    }
    return all;
  }

  [[nodiscard]] static bool is_flushing(const thread_state& t, const code& program, std::size_t i) {
    if (t.next == program.size() || program[t.next].what != op::flush) return false;
    const rank_t target = program[t.next].target;
    return target < 0 || target == home_of(program[t.posts[i].at].cell);
  }

  [[nodiscard]] word visible(const thread_state& t, int cell) const {
    for (auto at = t.buffer.rbegin(); at != t.buffer.rend(); ++at)
      if (at->first == cell) return at->second;
    return memory_[static_cast<std::size_t>(cell)];
  }

  bool drain(std::size_t which) {
    thread_state& t = threads_[which];
    if (t.buffer.empty()) return false;
    memory_[static_cast<std::size_t>(t.buffer.front().first)] = t.buffer.front().second;
    t.buffer.erase(t.buffer.begin());
    return true;
  }

  bool take_effect(std::size_t which, std::size_t i) {
    thread_state& t = threads_[which];
    pending& p = t.posts[i];
    if (p.done || t.stores_issued - t.buffer.size() < p.stores_before) return false;
    const instruction& what = programs_[which][p.at];
    word& cell = memory_[static_cast<std::size_t>(what.cell)];
    p.done = true;
    p.read = cell;
    if (what.what == op::put || what.what == op::swap) cell = what.a;
    if (what.what == op::fetch_add) cell += what.a;
    if (what.what == op::compare_swap && cell == what.a) cell = what.b;
    return true;
  }

  /// The next instruction, if it can be carried out now.
  bool step(std::size_t which) {
    thread_state& t = threads_[which];
    const code& program = programs_[which];
    if (t.next == program.size()) return false;
    const instruction& what = program[t.next];
    if (is_posted(what.what)) {
      t.posts.push_back({.at = t.next, .stores_before = t.stores_issued});
    } else if (what.what == op::store) {
      t.buffer.emplace_back(what.cell, what.a);
      ++t.stores_issued;
    } else if (what.what == op::load) {
      t.results[t.next] = visible(t, what.cell);
    } else if (what.what == op::await) {
      if (visible(t, what.cell) != what.a) return false;
    } else if (what.what == op::flush) {
      if (!deliver(t, program, what.target)) return false;
    } else {
      if (!t.buffer.empty()) return false;
      if (what.what == op::cpu_add) {
        word& cell = memory_[static_cast<std::size_t>(what.cell)];
        t.results[t.next] = cell;
        cell += what.a;
      }
    }
    ++t.next;
    return true;
  }

  static bool deliver(thread_state& t, const code& program, rank_t target) {
    const auto is_meant = [&](const pending& p) {
      return target < 0 || home_of(program[p.at].cell) == target;
    };
    for (const pending& p : t.posts)
      if (is_meant(p) && !p.done) return false;
    for (const pending& p : t.posts)
      if (is_meant(p) && program[p.at].what != op::put) t.results[p.at] = p.read;
    std::erase_if(t.posts, is_meant);
    return true;
  }

  const std::vector<code>& programs_;
  std::vector<word> memory_;
  std::vector<thread_state> threads_;
  std::set<std::vector<word>> seen_;
  outcome_set outcomes_;
  bool stuck_ = false;
};

// ---- the same on the engine ----

/// A participant's program, through its port.
void play(port& p, const code& program, std::vector<word>& told) {
  std::array<word, 16> results;
  results.fill(not_delivered);
  for (std::size_t i = 0; i < program.size(); ++i) {
    const instruction& what = program[i];
    const rank_t home = home_of(what.cell);
    const auto index = first_word + static_cast<std::uint32_t>(what.cell % cells_each);
    const rma::plain_cell plain{home, index};
    const rma::nic_cell nic{home, index};
    const rma::cpu_cell cpu{home, index};
    if (what.what == op::store) p.store(plain, what.a);
    if (what.what == op::load) results[i] = p.load(plain);
    if (what.what == op::put) p.put(nic, what.a);
    if (what.what == op::get) p.get(nic, results[i]);
    if (what.what == op::fetch_add) p.fetch_add(nic, what.a, results[i]);
    if (what.what == op::swap) p.swap(nic, what.a, results[i]);
    if (what.what == op::compare_swap) p.compare_swap(nic, what.a, what.b, results[i]);
    if (what.what == op::cpu_add) results[i] = p.cpu_fetch_add(cpu, what.a);
    if (what.what == op::flush && what.target < 0) p.flush();
    if (what.what == op::flush && what.target >= 0) p.flush(what.target);
    if (what.what == op::fence) p.fence();
    if (what.what == op::await) p.await(plain, rma::equals(what.a));
  }
  told.assign(results.begin(), results.begin() + static_cast<std::ptrdiff_t>(program.size()));
}

class checked {
 public:
  checked(const std::vector<code>& programs, const limits& until) {
    const int ranks = static_cast<int>(programs.size());
    // Written when a participant is done and read when all are: so it was written on the present
    // schedule, however often the search went back before.
    std::vector<std::vector<word>> told(programs.size());
    engine e({rma::topology::flat(ranks),
              [&](engine& on, rank_t me) {
                port p(on, me);
                play(p, programs[static_cast<std::size_t>(me)], told[static_cast<std::size_t>(me)]);
                on.act(me, action::rendezvous);
                if (me != 0) return;
                std::array<word, 3 * cells_each> memory{};
                for (int c = 0; c < ranks * cells_each; ++c)
                  memory[static_cast<std::size_t>(c)] = p.load(rma::plain_cell{
                      home_of(c), first_word + static_cast<unsigned>(c % cells_each)});
                std::vector<word> all(memory.begin(), memory.begin() + ranks * cells_each);
                for (const auto& one : told) all.insert(all.end(), one.begin(), one.end());
                outcomes_.insert(std::move(all));
              }},
             {});
    found_ = search_all(e, until);
  }

  [[nodiscard]] const outcome_set& outcomes() const { return outcomes_; }
  [[nodiscard]] const outcome& found() const { return found_; }

 private:
  outcome_set outcomes_;
  outcome found_;
};

// ---- the programs ----

[[nodiscard]] instruction random_instruction(std::mt19937& random, int ranks) {
  const auto pick = [&](int most) {
    return static_cast<int>(random() % static_cast<unsigned>(most));
  };
  const int rank = pick(ranks);
  const int plain = rank * cells_each;
  const int nic = plain + 1;
  const int cpu = plain + 2;
  const auto value = static_cast<word>(1 + pick(2));
  switch (pick(14)) {
    case 0:
    case 1:
      return {op::store, pick(2) == 0 ? plain : cpu, value};
    case 2:
    case 3:
    case 4:
      return {op::load, plain + pick(3)};
    case 5:
    case 6:
      return {op::put, plain + pick(3), value};
    case 7:
      return {op::get, plain + pick(3)};
    case 8:
      return {op::fetch_add, nic, value};
    case 9:
      return {op::swap, nic, value};
    case 10:
      return {op::compare_swap, nic, static_cast<word>(pick(2)), value};
    case 11:
      return {op::cpu_add, cpu, value};
    case 12:
      return {.what = op::flush, .target = pick(ranks + 1) - 1};
    default:
      return pick(2) == 0 ? instruction{op::fence} : instruction{op::await, plain + pick(3), value};
  }
}

[[nodiscard]] std::vector<code> random_programs(std::mt19937& random) {
  const int ranks = random() % 4 == 0 ? 3 : 2;
  std::vector<code> programs(static_cast<std::size_t>(ranks));
  for (code& one : programs) {
    const unsigned length = ranks == 3 ? 2 : 3 + random() % 2;
    for (unsigned i = 0; i < length; ++i) one.push_back(random_instruction(random, ranks));
    one.push_back({op::flush});
    one.push_back({op::fence});
  }
  return programs;
}

[[nodiscard]] std::string text_of(const std::vector<code>& programs) {
  static const std::array<const char*, 11> names{"store",     "load",  "put",  "get",
                                                 "fetch_add", "swap",  "cas",  "cpu_add",
                                                 "flush",     "fence", "await"};
  std::string text;
  for (const code& one : programs) {
    for (const instruction& i : one)
      text += std::string(names[static_cast<std::size_t>(i.what)]) + "(" + std::to_string(i.cell) +
              "," + std::to_string(i.a) + "," + std::to_string(i.b) + "," +
              std::to_string(i.target) + ") ";
    text += "|| ";
  }
  return text;
}

TEST(reference, has_the_same_outcomes) {
  std::mt19937 random(2016);
  const int usual = test::long_tests() ? 4000 : 500;
  const int most_programs = engine::can_copy_stacks() ? usual : 60;  // a sanitizer takes its time
  int stuck = 0;
  std::size_t outcomes = 0;
  for (int i = 0; i < most_programs; ++i) {
    const std::vector<code> programs = random_programs(random);
    const reference expected(programs);
    const checked got(programs, {.shorten = false});
    ASSERT_EQ(got.found().what == verdict::violation, expected.can_be_stuck())
        << i << ": " << text_of(programs);
    if (expected.can_be_stuck()) {
      ++stuck;
      const std::string& property = got.found().broken->property;
      ASSERT_TRUE(property == "deadlock" || property == "lost wake-up") << property;
      continue;
    }
    outcomes += expected.outcomes().size();
    ASSERT_EQ(got.outcomes(), expected.outcomes()) << i << ": " << text_of(programs);
  }
  EXPECT_GT(stuck, most_programs / 20) << "deadlocks are among what is compared";
  EXPECT_GT(outcomes, 2u * static_cast<unsigned>(most_programs))
      << "and so are programs with several outcomes";
}

}  // namespace
}  // namespace lockflight::check
