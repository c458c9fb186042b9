// Circles of participants that wait for each other.
#include "names/locks/circle.hpp"

#include <chrono>
#include <map>
#include <string>
#include <thread>

#include "tests/names/support.hpp"

namespace lockflight::test {
namespace {

using namespace std::chrono_literals;

lock_user that_waits(int slot) { return {.slot = slot, .pid = 100 + slot}; }
lock_user that_holds(int slot) {
  return {.held = mode::exclusive, .slot = slot, .pid = 100 + slot};
}
lock_user run_of(int slot, int command) {
  return {.held = mode::exclusive, .slot = slot, .pid = 100 + slot, .guarded_pid = command};
}
domain_lock lock_of(const char* name, std::vector<lock_user> users, int units = 0) {
  domain_lock made;
  made.name = name;
  made.units = units;
  made.users = std::move(users);
  return made;
}

int no_parents(int) { return 0; }

/// "1:a>b 2:b>a": the slots, what each holds, and what it waits for; circles apart by commas.
std::string text_of(const std::vector<lock_circle>& circles) {
  std::string text;
  for (const lock_circle& each : circles) {
    if (!text.empty()) text += ", ";
    for (const circle_member& m : each)
      text += (&m == each.data() ? "" : " ") + m.user.host + std::to_string(m.user.slot) + ":" +
              m.holds + ">" + m.waits_for;
  }
  return text;
}

TEST(DomainCircle, TwoThatWaitForEachOther) {
  EXPECT_EQ(text_of(detail::circles_among({lock_of("a", {that_holds(1), that_waits(2)}),
                                           lock_of("b", {that_holds(2), that_waits(1)})},
                                          no_parents)),
            "1:a>b 2:b>a");
}

TEST(DomainCircle, WaitersOutsideOfACircleAreNotInIt) {
  EXPECT_EQ(
      text_of(detail::circles_among({lock_of("a", {that_holds(1), that_waits(2), that_waits(4)}),
                                     lock_of("b", {that_holds(2), that_waits(3)}),
                                     lock_of("c", {that_holds(3), that_waits(1)}),
                                     lock_of("d", {that_holds(5), that_waits(6)})},
                                    no_parents)),
      "1:a>c 3:c>b 2:b>a");
}

TEST(DomainCircle, AChainIsNone) {
  EXPECT_EQ(text_of(detail::circles_among({lock_of("a", {that_holds(1), that_waits(2)}),
                                           lock_of("b", {that_holds(2), that_waits(3)})},
                                          no_parents)),
            "");
}

TEST(DomainCircle, OneOfSeveralReadersIsEnough) {
  lock_user reader = that_holds(3);
  reader.held = mode::shared;
  lock_user other = that_holds(1);
  other.held = mode::shared;
  EXPECT_EQ(text_of(detail::circles_among({lock_of("a", {reader, other, that_waits(2)}),
                                           lock_of("b", {that_holds(2), that_waits(1)})},
                                          no_parents)),
            "1:a>b 2:b>a");
}

TEST(DomainCircle, ASemaphoreIsInOneOnlyIfAllUnitsAre) {
  const auto circles = [](int units) {
    return text_of(
        detail::circles_among({lock_of("s", {that_holds(1), that_holds(3), that_waits(2)}, units),
                               lock_of("b", {that_holds(2), that_waits(1), that_waits(3)})},
                              no_parents));
  };
  EXPECT_EQ(circles(3), "") << "a unit is free";
  EXPECT_EQ(circles(2), "1:s>b 2:b>s");
  EXPECT_EQ(
      text_of(detail::circles_among({lock_of("s", {that_holds(1), that_holds(4), that_waits(2)}, 2),
                                     lock_of("b", {that_holds(2), that_waits(1)})},
                                    no_parents)),
      "")
      << "slot 4 will release a unit";
}

// The runs 1 and 3 hold; their commands 1000 and 3000 have started the runs 2 and 4.
TEST(DomainCircle, RunsThatAreStartedByCommandsOfRuns) {
  const std::map<int, int> parents{{102, 1001}, {1001, 1000}, {104, 3000}};
  const auto parent_of = [&](int pid) {
    const auto found = parents.find(pid);
    return found == parents.end() ? 1 : found->second;
  };
  const std::vector<domain_lock> locks{lock_of("a", {run_of(1, 1000), that_waits(4)}),
                                       lock_of("b", {run_of(3, 3000), that_waits(2)})};
  EXPECT_EQ(text_of(detail::circles_among(locks, parent_of)), "2:a>b 4:b>a");
  EXPECT_EQ(
      text_of(detail::circles_among({lock_of("a", {run_of(1, 1000), that_waits(2)})}, parent_of)),
      "2:a>a")
      << "a run inside of a run of the same name";
  EXPECT_EQ(text_of(detail::circles_among(locks, no_parents)), "") << "nobody descends from a run";
}

TEST(DomainCircle, HostsAreToldApart) {
  lock_user there = that_waits(-1);
  there.host = "h2";
  lock_user holds_there = that_holds(-1);
  holds_there.host = "h2";
  holds_there.pid = there.pid = 7;
  EXPECT_EQ(text_of(detail::circles_among(
                {lock_of("a", {that_holds(1), there}), lock_of("b", {holds_there, that_waits(1)})},
                no_parents)),
            "1:a>b h2-1:b>a");
  holds_there.host = "h3";
  EXPECT_EQ(text_of(detail::circles_among(
                {lock_of("a", {that_holds(1), there}), lock_of("b", {holds_there, that_waits(1)})},
                no_parents)),
            "");
}

TEST(DomainCircle, OneOfProcessesIsFoundAndEndsWhenAWaiterGivesUp) {
  const own_domain own;
  const domain in = domain::open(own.name());
  const auto takes = [&](const char* first, const char* second) {
    named_mutex one(domain::attach(own.name()), first);
    named_mutex two(domain::attach(own.name()), second);
    one.lock();
    while (true) {
      const auto all = in.locks();
      if (all.size() == 2 && !all[0].users.empty() && !all[1].users.empty()) break;
      std::this_thread::sleep_for(1ms);
    }
    two.lock();
    return 0;
  };
  child a([&] { return takes("a", "b"); });
  child b([&] { return takes("b", "a"); });
  std::vector<lock_circle> found;
  while (found.empty()) found = in.circles();
  ASSERT_EQ(found.size(), 1u);
  ASSERT_EQ(found[0].size(), 2u);
  for (const circle_member& each : found[0]) {
    EXPECT_EQ(each.holds, each.user.pid == a.pid() ? "a" : "b");
    EXPECT_EQ(each.waits_for, each.user.pid == a.pid() ? "b" : "a");
  }
  a.kill();
  EXPECT_EQ(b.wait(), 0);
  EXPECT_TRUE(in.circles().empty());
}

}  // namespace
}  // namespace lockflight::test
