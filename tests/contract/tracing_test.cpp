// The tracing decorator and the trace that it writes.
#include "lockflight/fabric/tracing.hpp"

#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "tests/contract/support.hpp"

namespace lockflight::test {
namespace {

using fabric::trace_event;
using fabric::trace_kind;
using traced_port = fabric::tracing<shm::port>;
using json = nlohmann::json;

/// The events of each rank of a run.
struct recording {
  explicit recording(int ranks, std::size_t room = 1000)
      : events(static_cast<std::size_t>(ranks), std::vector<trace_event>(room)),
        used(static_cast<std::size_t>(ranks)),
        dropped(static_cast<std::size_t>(ranks)) {}

  [[nodiscard]] fabric::trace_buffer buffer(rank_t rank) {
    const auto r = static_cast<std::size_t>(rank);
    return {events[r], used[r], dropped[r]};
  }
  [[nodiscard]] std::span<const trace_event> of(std::size_t rank) const {
    return std::span(events[rank]).first(used[rank]);
  }
  [[nodiscard]] std::string chrome(std::string_view lock_name) const {
    std::vector<std::span<const trace_event>> of_rank;
    for (std::size_t r = 0; r < events.size(); ++r) of_rank.push_back(of(r));
    std::ostringstream out;
    fabric::write_chrome_trace(out, of_rank, lock_name);
    return out.str();
  }
  [[nodiscard]] std::vector<trace_kind> kinds(std::size_t rank) const {
    std::vector<trace_kind> all;
    for (const trace_event& e : of(rank)) all.push_back(e.kind);
    return all;
  }

  std::vector<std::vector<trace_event>> events;
  std::vector<std::uint64_t> used;
  std::vector<std::uint64_t> dropped;
};

/// Runs `body(port, me)` on every rank, traced.
template <class Body>
void traced(recording& into, const rma::topology& machine, Body body) {
  shm::run_ports({.machine = machine, .threads = true}, [&](shm::port& bare) {
    traced_port port(bare, into.buffer(bare.rank()));
    rma::participant<traced_port> me(port, 4096);
    body(port, me);
  });
}

/// The trace of a lock with one waiter: rank 1 acquires while rank 0 holds.
recording two_holders() {
  recording r(2);
  traced(r, nodes(2, 1), [](auto& port, auto& me) {
    const auto tail = take<nic_cell>(me).at(0);
    const auto wait = take<plain_cell>(me);
    for (int i = 0; i < 3; ++i) {
      const auto episode = static_cast<word>(i) + 1;
      port.mark(me.rank() == 0 ? trace_kind::acquire : trace_kind::acquire_shared, 4);
      static_cast<void>(rma::swap_now(port, tail, 1));
      if (me.rank() == 1) port.await(wait.at(1), rma::equals(episode));
      port.mark(trace_kind::acquired, 4);
      port.mark(trace_kind::release, 4);
      if (me.rank() == 0) rma::put_now(port, wait.at(1), episode);
      port.mark(trace_kind::released, 4);
      if (me.rank() == 0)
        port.poll(wait.at(0), rma::equals(episode), {100, 1'000});
      else
        rma::put_now(port, wait.at(0), episode);
    }
  });
  return r;
}

TEST(tracing, records_each_operation_with_its_cell) {
  recording r(1);
  traced(r, one_node(1), [](auto& port, auto& me) {
    const one_of_each cells = one_of_each::take_from(me);
    word result = 0;
    port.put(cells.plain, 1);
    port.get(cells.cpu, result);
    port.add(cells.nic, 1);
    port.fetch_add(cells.nic, 1, result);
    port.swap(cells.nic, 1, result);
    port.compare_swap(cells.nic, 1, 2, result);
    port.flush();
    result = port.cpu_fetch_add(cells.cpu, 1);
    result = port.cpu_swap(cells.cpu, 1);
    result = port.cpu_compare_swap(cells.cpu, 1, 2);
    port.await(cells.plain, rma::equals(1));
    port.poll(cells.nic, rma::equals(2), rma::backoff::none());
    port.send(0, {});
    require(result == 1, "the operations themselves are done");
  });
  using enum trace_kind;
  std::vector<trace_kind> kinds = r.kinds(0);
  std::erase(kinds, flush);  // not recorded as an operation of its own at present
  EXPECT_EQ(kinds, (std::vector{put, get, add, fetch_add, swap, cas, rmw, rmw, rmw, await, awaited,
                                poll, polled, send}));
  std::uint64_t last = 0;
  for (const trace_event& e : r.of(0)) {
    EXPECT_GE(e.at_ns, last) << "time does not go back";
    last = e.at_ns;
    if (e.kind != flush && e.kind != send) {
      EXPECT_NE(e.cell, rma::null_ref);
    }
  }
  EXPECT_EQ(rma::from_word<nic_cell>(r.of(0)[2].cell).home, 0);
}

/// The events that are dropped of three puts and the start of an acquire, with room for so many.
std::uint64_t dropped_with_room_for(std::size_t room) {
  recording r(1, room);
  traced(r, one_node(1), [](auto& port, auto& me) {
    const auto cell = take<plain_cell>(me);
    for (word i = 0; i < 3; ++i) port.put(cell, i);
    port.mark(trace_kind::acquire);
  });
  EXPECT_EQ(r.of(0).size(), std::min<std::size_t>(room, 4));
  return r.dropped[0];
}

TEST(tracing, a_full_buffer_keeps_what_it_has_and_counts_what_it_drops) {
  EXPECT_EQ(dropped_with_room_for(1), 3);
  EXPECT_EQ(dropped_with_room_for(3), 1);
  EXPECT_EQ(dropped_with_room_for(4), 0) << "a buffer that is exactly full lacks nothing";
}

/// Checks that the spans of each track nest and that nothing happens outside the run.
void expect_well_formed(const json& trace, std::size_t ranks) {
  ASSERT_TRUE(trace.at("traceEvents").is_array());
  std::vector<std::vector<std::string>> open(ranks);
  std::vector<double> now(ranks, 0);
  std::vector<bool> named(ranks);
  for (const json& e : trace.at("traceEvents")) {
    const auto rank = e.at("tid").get<std::size_t>();
    ASSERT_LT(rank, ranks);
    const auto phase = e.at("ph").get<std::string>();
    if (phase == "M") {
      named[rank] = true;
      EXPECT_EQ(e.at("args").at("name"), "rank " + std::to_string(rank));
      continue;
    }
    const double at = e.at("ts").get<double>();
    EXPECT_GE(at, now[rank]) << "time does not go back on a track";
    now[rank] = at;
    if (phase == "B") {
      open[rank].push_back(e.at("name").get<std::string>());
    } else if (phase == "E") {
      ASSERT_FALSE(open[rank].empty()) << "a span ends that has not begun";
      open[rank].pop_back();
    } else {
      EXPECT_EQ(phase, "i");
      EXPECT_FALSE(e.at("name").get<std::string>().empty());
      EXPECT_TRUE(e.at("args").contains("home") && e.at("args").contains("index"));
    }
  }
  for (std::size_t r = 0; r < ranks; ++r) {
    EXPECT_TRUE(named[r]) << "rank " << r << " has a track";
    EXPECT_TRUE(open[r].empty()) << "every span ends, rank " << r;
  }
}

int count_of(const json& trace, const std::string& phase, const std::string& name) {
  int n = 0;
  for (const json& e : trace.at("traceEvents")) n += e.at("ph") == phase && e.at("name") == name;
  return n;
}

TEST(tracing, chrome_trace_is_json_whose_spans_nest) {
  const json trace = json::parse(two_holders().chrome("d-mcs"));
  expect_well_formed(trace, 2);
  for (const char* const name : {"wait", "hold", "wait shared", "hold shared"})
    EXPECT_EQ(count_of(trace, "B", name), 3) << name;
  EXPECT_EQ(count_of(trace, "B", "release"), 6);
  EXPECT_EQ(count_of(trace, "B", "await"), 3);
  EXPECT_EQ(count_of(trace, "B", "poll"), 3);
  EXPECT_EQ(count_of(trace, "i", "swap"), 6);
  EXPECT_EQ(count_of(trace, "i", "put"), 6);
  for (const json& e : trace.at("traceEvents"))
    if (e.at("ph") == "B") {
      EXPECT_EQ(e.at("args").at("lock"), "d-mcs");
    }
}

// An await inside an acquire is a span inside a span.
TEST(tracing, waiting_lies_inside_acquiring) {
  const json trace = json::parse(two_holders().chrome("d-mcs"));
  std::vector<std::string> open;
  int inside = 0;
  for (const json& e : trace.at("traceEvents")) {
    if (e.at("tid") != 1) continue;
    if (e.at("ph") == "B") {
      if (e.at("name") == "await") {
        ASSERT_FALSE(open.empty());
        EXPECT_EQ(open.back(), "wait shared");
        ++inside;
      }
      open.push_back(e.at("name").get<std::string>());
    } else if (e.at("ph") == "E") {
      open.pop_back();
    }
  }
  EXPECT_EQ(inside, 3);
}

// Wherever a buffer happens to be full, the spans that have begun are ended.
TEST(tracing, a_trace_cut_anywhere_is_well_formed) {
  const recording whole = two_holders();
  const std::size_t most = std::max(whole.used[0], whole.used[1]);
  for (std::size_t cut = 0; cut <= most; ++cut) {
    recording part = whole;
    for (auto& used : part.used) used = std::min<std::uint64_t>(used, cut);
    const json trace = json::parse(part.chrome("cut"));
    expect_well_formed(trace, 2);
    if (::testing::Test::HasFailure()) FAIL() << "cut after " << cut << " events";
  }
}

TEST(tracing, nothing_recorded_is_a_valid_trace) {
  const json none = json::parse(recording(0).chrome("none"));
  EXPECT_TRUE(none.at("traceEvents").empty());
  expect_well_formed(json::parse(recording(3).chrome("none")), 3);
}

TEST(tracing, times_are_microseconds_from_the_first_event) {
  recording r(2);
  std::size_t at = 0;
  for (const std::uint64_t ns : {1'000'000'007ull, 1'000'001'010ull, 3'000'000'107ull})
    r.events[1][at++] = {ns, rma::to_word(plain_cell{0, 9}), 0, trace_kind::put};
  r.used[1] = at;
  const json trace = json::parse(r.chrome("x"));
  std::vector<std::string> times;
  for (const json& e : trace.at("traceEvents"))
    if (e.at("ph") == "i") times.push_back(e.at("ts").dump());
  EXPECT_EQ(times, (std::vector<std::string>{"0.0", "1.003", "2000000.1"}));
}

}  // namespace
}  // namespace lockflight::test
