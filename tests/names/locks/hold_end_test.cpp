// The end of a hold that is set before its holder releases: named_handle::end_after(), and the
// orders of other processes.
#include <gtest/gtest.h>

#include <atomic>
#include <bit>
#include <chrono>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "lockflight/hold_orders.hpp"
#include "names/cluster/client/elsewhere.hpp"
#include "names/cluster/client/order_lines.hpp"
#include "names/life/hold_end.hpp"
#include "tests/names/support.hpp"

namespace lockflight::test {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;
using clock = std::chrono::steady_clock;

bool comes(const std::function<bool()>& what, std::chrono::milliseconds within = 5s) {
  for (const auto until = clock::now() + within; clock::now() < until;) {
    if (what()) return true;
    std::this_thread::sleep_for(1ms);
  }
  return what();
}

// ---- the word ----

/// A page by itself: the word needs no domain.
struct page : detail::domain_slot_page {};
page& empty_page() { return shared_words<page>(); }

TEST(HoldEnd, TheWordNamesTheHold) {
  page& p = empty_page();
  p.holds_since[3] = 1'000;
  const detail::hold_name first = detail::name_of_hold(p, 3);
  EXPECT_EQ(detail::end_of(p, first).why, end_reason::none);
  const std::uint64_t at = detail::boot_time_ns();
  detail::set_end(p, first, {at, end_reason::broken});
  EXPECT_EQ(detail::end_of(p, first).why, end_reason::broken);
  EXPECT_LE(detail::end_of(p, first).at_ns, at);
  EXPECT_GE(detail::end_of(p, first).at_ns + 1'000'000, at);
  p.holds_since[3] = 1'001;  // the next hold, in the same tick of the coarse clock
  const detail::hold_name next = detail::name_of_hold(p, 3);
  EXPECT_NE(first, next);
  EXPECT_EQ(detail::end_of(p, next).why, end_reason::none) << "the last hold's word is not cleared";
}

TEST(HoldEnd, AnOrderThatComesLateDoesNotReachTheNextHold) {
  page& p = empty_page();
  p.holds_since[0] = 7;
  const detail::hold_name ordered = detail::name_of_hold(p, 0);  // and then the orderer is stopped
  p.holds_since[0] = 8;
  const detail::hold_name present = detail::name_of_hold(p, 0);
  const std::uint64_t later = detail::boot_time_ns() + 3'600'000'000'000;
  detail::set_end(p, ordered, {detail::boot_time_ns(), end_reason::broken});
  EXPECT_EQ(detail::end_of(p, present).why, end_reason::none);
  detail::set_end(p, present, {later, end_reason::limit});
  EXPECT_EQ(detail::end_of(p, present).why, end_reason::limit)
      << "an earlier moment of another hold is in the way";
}

/// Runs the steps of a holder and those of a process that gives an order in one of the orders in
/// which they may follow each other: bit i says who makes step i.
void interleave(unsigned long who, std::size_t steps,
                const std::vector<std::function<void()>>& holder,
                const std::vector<std::function<void()>>& orderer) {
  std::size_t of_holder = 0;
  std::size_t of_orderer = 0;
  for (std::size_t i = 0; i < steps; ++i)
    (who >> i & 1) != 0 ? holder[of_holder++]() : orderer[of_orderer++]();
}

/// What the order is about, and what it hits. Lock 1 is the one that is to be broken.
struct order_run {
  page& p = empty_page();
  int seen_lock = 0;
  int lock_again = 0;
  std::uint64_t number = 0, number_again = 0, before_name = 0, after_name = 0;
  detail::hold_name name;
  bool hits = false;  // the hold of lock 2
};

/// In each order of the steps. `checks` leaves out one of the checks of the orderer: 0: none.
/// Returns in how many orders the hold of another lock was hit.
int hits_of_another_hold(int left_out) {
  constexpr unsigned record = 0;
  int hits = 0;
  order_run now;
  auto& lock = now.p.words[detail::first_record + record];
  // As acquire and release do: the record, then the moment.
  const std::vector<std::function<void()>> holder{
      [&] { lock = 0; },
      [&] { lock = 2; },
      [&] { now.p.holds_since[record] = 2'000; },
      [&] {
        const auto present = detail::name_of_hold(now.p, record);
        now.hits |= detail::end_of(now.p, present).why == end_reason::broken;
      },
  };
  const auto number = [&] { return detail::number_of_hold(now.p, 0, record); };
  const std::vector<std::function<void()>> orderer{
      [&] { now.seen_lock = static_cast<int>(lock.load()); },  // users.cpp
      [&] { now.number = number(); },
      [&] { now.lock_again = static_cast<int>(lock.load()); },
      [&] { now.number_again = number(); },
      [&] { now.before_name = number(); },  // orders.cpp
      [&] { now.name = detail::name_of_hold(now.p, record); },
      [&] { now.after_name = number(); },
      [&] {
        const bool is_of_lock = now.seen_lock == 1;
        const bool is_same =
            left_out == 1 || (now.lock_again == now.seen_lock && now.number_again == now.number);
        const bool is_there = left_out == 2 || now.before_name == now.number;
        const bool is_named = left_out == 3 || now.after_name == now.number;
        if (is_of_lock && is_same && is_there && is_named)
          detail::set_end(now.p, now.name, {detail::boot_time_ns(), end_reason::broken});
      },
  };
  const std::size_t steps = holder.size() + orderer.size();
  for (unsigned long who = 0; who < 1ul << steps; ++who) {
    if (static_cast<std::size_t>(std::popcount(who)) != holder.size()) continue;
    lock = 1;
    now.p.holds_since[record] = 1'000;
    now.p.ends[record] = 0;
    now.hits = false;
    interleave(who, steps, holder, orderer);
    const auto present = detail::name_of_hold(now.p, record);
    now.hits |= lock == 2 && detail::end_of(now.p, present).why == end_reason::broken;
    hits += now.hits ? 1 : 0;
  }
  return hits;
}

TEST(HoldEnd, InNoOrderOfTheStepsIsAnotherHoldHit) {
  EXPECT_EQ(hits_of_another_hold(0), 0);
  EXPECT_GT(hits_of_another_hold(1), 0) << "the number may be that of the next hold";
  EXPECT_GT(hits_of_another_hold(3), 0) << "the name may be that of the next hold";
}

TEST(HoldEnd, AnotherParticipantOfThePageHasOtherNames) {
  page& p = empty_page();
  p.holds_since[0] = 7;
  const detail::hold_name first = detail::name_of_hold(p, 0);
  p.life = detail::slot_life{detail::slot_state::living, 1}.bits();
  EXPECT_NE(first, detail::name_of_hold(p, 0));
}

TEST(HoldEnd, OfTwoEndsTheEarlierOneStays) {
  page& p = empty_page();
  p.holds_since[0] = 7;
  const detail::hold_name hold = detail::name_of_hold(p, 0);
  const std::uint64_t now = detail::boot_time_ns();
  constexpr std::uint64_t second = 1'000'000'000;
  detail::set_end(p, hold, {now + 9 * second, end_reason::limit});
  detail::set_end(p, hold, {now + 5 * second, end_reason::broken});
  detail::set_end(p, hold, {now + 8 * second, end_reason::limit});
  EXPECT_EQ(detail::end_of(p, hold).why, end_reason::broken);
  EXPECT_LT(detail::end_of(p, hold).at_ns, now + 6 * second);
}

TEST(HoldEnd, HoldsOfOneTickHaveDifferentNames) {
  const own_domain own;
  const auto d = domain::open(own.name());
  named_mutex a(d, "a");
  std::uint64_t last = 0;
  for (int i = 0; i < 1'000; ++i) {
    a.lock();
    const std::uint64_t now = d.locks().front().users.front().hold;
    EXPECT_NE(now, 0u);
    EXPECT_NE(now, last);
    last = now;
    a.unlock();
  }
}

// ---- a time limit ----

TEST(HoldEnd, ATimeLimitIsALoss) {
  const own_domain own;
  const auto d = domain::open(own.name());
  named_mutex a(d, "a");
  a.lock();
  EXPECT_EQ(a.valid_for(), nanoseconds::max());
  EXPECT_EQ(a.ending().why, end_reason::none);
  const auto before = clock::now();
  a.end_after(200ms);
  EXPECT_EQ(a.ending().why, end_reason::limit);
  EXPECT_GT(a.valid_for(), 0ns);
  EXPECT_LE(a.valid_for(), 200ms);
  const std::stop_token loss = a.loss();
  EXPECT_FALSE(loss.stop_requested());
  EXPECT_TRUE(comes([&] { return loss.stop_requested(); }));
  EXPECT_GE(clock::now() - before, 198ms) << "the word counts whole milliseconds";
  EXPECT_TRUE(a.is_lost());
  named_mutex b(d, "a");
  std::thread([&] { EXPECT_FALSE(b.try_lock()) << "a time limit makes no two holders"; }).join();
  EXPECT_THROW(a.release(if_lost::throws), lost_error);
  a.lock();
  EXPECT_TRUE(a.owner_died()) << "the holder was told, and may have stopped in the middle";
  EXPECT_FALSE(a.is_lost()) << "the end was the last hold's";
  a.mark_consistent();
  a.unlock();
}

TEST(HoldEnd, ALimitThatIsSetAfterTheWatchBeganIsTold) {
  const own_domain own;
  const auto d = domain::open(own.name());
  named_mutex a(d, "a");
  a.lock();
  const std::stop_token loss = a.loss();
  a.end_after(30ms);
  EXPECT_TRUE(comes([&] { return loss.stop_requested(); }, 2s));
  a.unlock();
}

TEST(HoldEnd, AHolderThatDoesNotWatchSeesIt) {
  const own_domain own;
  const auto d = domain::open(own.name());
  named_mutex a(d, "a");
  a.lock();
  a.end_after(0ms);
  EXPECT_TRUE(a.is_lost());
  EXPECT_TRUE(a.state().is_lost);
  a.end_after(1h);
  EXPECT_TRUE(a.is_lost()) << "an end is not put off";
  EXPECT_EQ(a.loss().stop_requested(), true) << "a loss that is there is told at once";
  EXPECT_THROW(a.release(if_lost::throws), lost_error);
}

TEST(HoldEnd, ALimitThatEndsWithTheReleaseDoesNotReachTheNextHold) {
  const own_domain own;
  const auto d = domain::open(own.name());
  named_mutex a(d, "a");
  for (int i = 0; i < 200; ++i) {
    a.lock();
    a.end_after(std::chrono::microseconds(500 + i));
    while (!a.is_lost() && i % 2 == 0) {
    }
    a.unlock();
    a.lock();
    EXPECT_EQ(a.valid_for(), nanoseconds::max());
    a.unlock();
  }
}

TEST(HoldEnd, SeveralLocksAndUnitsHaveEndsAsWell) {
  const own_domain own;
  const auto d = domain::open(own.name());
  named_locks both(d, {"a", "b"});
  named_semaphore units(d, "units", 3);
  both.lock();
  units.acquire();
  both.end_after(20ms);
  units.end_after(20ms);
  const std::stop_token of_both = both.loss();
  const std::stop_token of_units = units.loss();
  EXPECT_TRUE(comes([&] { return of_both.stop_requested() && of_units.stop_requested(); }));
  EXPECT_THROW(both.release(if_lost::throws), lost_error);
  EXPECT_THROW(units.release(if_lost::throws), lost_error);
}

TEST(HoldEnd, RefusesWhatMakesNoSense) {
  const own_domain own;
  const auto d = domain::open(own.name());
  named_mutex a(d, "a");
  EXPECT_REFUSED(not_held, "does not hold", a.end_after(1s));
  a.lock();
  EXPECT_REFUSED(invalid, "accepted: 0 or more", a.end_after(-1s));
  a.end_after(nanoseconds::max());
  EXPECT_GT(a.valid_for(), 24h * 365);
  a.unlock();
}

TEST(HoldEnd, AChildOfAForkSeesTheEndOfItsParentsHold) {
  const own_domain own;
  const auto d = domain::open(own.name());
  named_mutex a(d, "a");
  a.lock();
  a.end_after(50ms);
  child sees([&] {
    while (a.valid_for() > 0ns) std::this_thread::sleep_for(1ms);
    CHECK_OR_RETURN(a.ending().why == end_reason::limit);
    return 0;
  });
  EXPECT_EQ(sees.wait(), 0);
  a.unlock();
}

// ---- orders ----

using result = ordered_hold::result;

std::vector<ordered_hold> order(const domain& d, hold_order what) {
  return domain_operator(d).order(what);
}
hold_order breaks(const std::string& name) {
  return {.what = hold_order::kind::ends, .name = name, .by = "a test"};
}

/// A child that holds `name`, and ends with 0 when its loss is told, with 1 if that takes too long.
child holder_of(const std::string& domain_name, const std::string& name, mode as,
                std::atomic<int>& holders) {
  return child([&, as] {
    named_lock a(domain::open(domain_name), name);
    a.acquire(as);
    const std::stop_token loss = a.loss();
    ++holders;
    const bool was_told = comes([&] { return loss.stop_requested(); }, 20s);
    CHECK_OR_RETURN(a.ending().why == end_reason::broken);
    a.release();
    return was_told ? 0 : 1;
  });
}

TEST(HoldOrder, TellsEachHolder) {
  const own_domain own;
  const auto d = domain::open(own.name());
  auto& holders = shared_words<std::atomic<int>>();
  child first = holder_of(own.name(), "a", mode::shared, holders);
  child second = holder_of(own.name(), "a", mode::shared, holders);
  child other = holder_of(own.name(), "b", mode::exclusive, holders);
  ASSERT_TRUE(comes([&] { return holders == 3; }));
  const auto told = order(d, breaks("a"));
  ASSERT_EQ(told.size(), 2u);
  EXPECT_EQ(told[0].how, result::told);
  EXPECT_EQ(told[1].how, result::told);
  EXPECT_EQ(first.wait(), 0);
  EXPECT_EQ(second.wait(), 0);
  const auto locks = d.locks();
  EXPECT_EQ(locks.back().name, "b");
  EXPECT_EQ(locks.back().users.front().ending.why, end_reason::none) << "of another name";
  EXPECT_EQ(order(d, breaks("b")).size(), 1u);
  EXPECT_EQ(other.wait(), 0);
  EXPECT_TRUE(order(d, breaks("a")).empty()) << "nobody holds it any more";
}

TEST(HoldOrder, TheNextHolderIsTold) {
  const own_domain own;
  const auto d = domain::open(own.name());
  auto& holders = shared_words<std::atomic<int>>();
  child first = holder_of(own.name(), "a", mode::exclusive, holders);
  ASSERT_TRUE(comes([&] { return holders == 1; }));
  const std::uint64_t before = d.locks().front().token;
  order(d, breaks("a"));
  named_mutex a(d, "a");
  a.lock();
  EXPECT_TRUE(a.owner_died());
  EXPECT_GT(a.token(), before);
  EXPECT_EQ(first.wait(), 0);
  a.mark_consistent();
  a.unlock();
}

TEST(HoldOrder, TwoAtOnceAreOne) {
  const own_domain own;
  const auto d = domain::open(own.name());
  auto& holders = shared_words<std::atomic<int>>();
  child first = holder_of(own.name(), "a", mode::exclusive, holders);
  ASSERT_TRUE(comes([&] { return holders == 1; }));
  std::vector<std::thread> operators;
  for (int i = 0; i < 4; ++i)
    operators.emplace_back([&] { static_cast<void>(order(d, breaks("a"))); });
  for (auto& each : operators) each.join();
  EXPECT_EQ(first.wait(), 0);
  named_mutex a(d, "a");
  a.lock();
  EXPECT_FALSE(a.is_lost());
  a.mark_consistent();
  a.unlock();
}

TEST(HoldOrder, OrdersBesideReleasesReachNoOtherHold) {
  const own_domain own;
  const auto d = domain::open(own.name());
  named_mutex a(d, "a");
  named_mutex b(d, "b");
  std::atomic<bool> is_over = false;
  std::thread operates([&] {
    while (!is_over) static_cast<void>(order(d, breaks("a")));
  });
  int lost = 0;
  for (const auto until = clock::now() + 300ms; clock::now() < until;) {
    a.lock();
    lost += a.is_lost() ? 1 : 0;
    a.unlock();
    b.lock();  // has the record that a had
    EXPECT_FALSE(b.is_lost());
    EXPECT_EQ(b.ending().why, end_reason::none);
    b.unlock();
  }
  is_over = true;
  operates.join();
  RecordProperty("lost", lost);
}

TEST(HoldOrder, KillsAStoppedHolder) {
  const own_domain own;
  const auto d = domain::open(own.name());
  auto& holders = shared_words<std::atomic<int>>();
  child first = holder_of(own.name(), "a", mode::exclusive, holders);
  ASSERT_TRUE(comes([&] { return holders == 1; }));
  kill(first.pid(), SIGSTOP);
  const auto told = order(d, breaks("a"));
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told.front().user.pid, first.pid());
  hold_order kills{.what = hold_order::kind::kills, .name = "a", .holds = {1}, .by = "a test"};
  EXPECT_TRUE(order(d, kills).empty()) << "a hold of another number is left";
  kills.holds = {told.front().user.hold};
  EXPECT_EQ(order(d, kills).at(0).how, result::killed);
  EXPECT_EQ(first.wait(), 1000 + SIGKILL);
  named_mutex a(d, "a");
  a.lock();
  EXPECT_TRUE(a.owner_died());
  a.unlock();
  EXPECT_TRUE(order(d, kills).empty());
}

TEST(HoldOrder, DoesNotKillItself) {
  const own_domain own;
  const auto d = domain::open(own.name());
  named_mutex a(d, "a");
  a.lock();
  const auto told = order(d, breaks("a"));
  EXPECT_TRUE(a.is_lost());
  const auto killed =
      order(d, {.what = hold_order::kind::kills, .name = "a", .holds = {told.front().user.hold}});
  EXPECT_EQ(killed.at(0).how, result::not_permitted);
  a.unlock();
}

TEST(HoldOrder, AnotherUsersProcessIsNotKilled) {
  if (!is_root()) GTEST_SKIP() << "needs root, to be two users";
  constexpr gid_t group = 61'001;
  const std::string name = "test.group." + std::to_string(getpid());
  const domain_options shared{.mode = 0660, .group = std::to_string(group)};
  const auto d = domain::open(name, shared);
  auto& is_held = shared_words<std::atomic<bool>>();
  child holder([&] {
    become(61'002, group, {group});
    named_mutex a(domain::open(name, shared), "a");
    a.lock();
    is_held = true;
    return comes([&] { return a.is_lost(); }, 20s) ? 0 : 1;
  });
  ASSERT_TRUE(comes([&] { return is_held.load(); }));
  child operates([&] {
    become(61'003, group, {group});
    const auto in = domain::attach(name, shared.mode, shared.group);
    const std::uint64_t number = in.users_of("a").front().hold;
    const auto how =
        order(in, {.what = hold_order::kind::kills, .name = "a", .holds = {number}}).at(0).how;
    CHECK_OR_RETURN(how == result::not_permitted);
    CHECK_OR_RETURN(order(in, breaks("a")).at(0).how == result::told);
    return 0;
  });
  EXPECT_EQ(operates.wait(), 0);
  EXPECT_EQ(holder.wait(), 0) << "a user that may not kill can still tell";
  domain::remove(name, true, shared.mode, shared.group);
}

// ---- keepers ----

TEST(HoldOrder, AReleaseNeedsTheTokenOfAKeeper) {
  const own_domain own;
  const auto d = domain::open(own.name());
  named_mutex a(d, "a");
  a.lock();
  const hold_order releases{.what = hold_order::kind::releases, .name = "a", .token = 7};
  EXPECT_EQ(order(d, releases).at(0).how, result::not_kept);
  EXPECT_FALSE(a.is_lost());
  named_control(a).keep(8, "kernel upgrade");
  const auto wrong = order(d, releases);
  EXPECT_EQ(wrong.at(0).how, result::other_token);
  EXPECT_EQ(wrong.at(0).user.kept_token, 8u);
  EXPECT_EQ(wrong.at(0).user.note, "kernel upgrade");
  EXPECT_FALSE(a.is_lost());
  EXPECT_EQ(order(d, {.what = hold_order::kind::releases, .name = "a", .token = 8}).at(0).how,
            result::told);
  EXPECT_EQ(a.ending().why, end_reason::released);
  a.unlock();
}

TEST(HoldOrder, ANoteIsCutAndMayBeAnyBytes) {
  const own_domain own;
  const auto d = domain::open(own.name());
  named_mutex a(d, "a");
  a.lock();
  named_control(a).keep(1, std::string(500, 'n'));
  EXPECT_EQ(d.locks().front().users.front().note, std::string(128, 'n'));
  named_control(a).keep(1, "\n\x1b[1m\xff");
  EXPECT_EQ(d.locks().front().users.front().note, "\n\x1b[1m\xff");
  a.unlock();
}

TEST(HoldOrder, AsLinesItIsTheSame) {
  const hold_order what{.what = hold_order::kind::kills,
                        .name = "a\tb",
                        .token = 5,
                        .holds = {1, 9'007'199'254'740'991},
                        .by = "root"};
  const auto back = detail::order_from(detail::question_of(what));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->what, what.what);
  EXPECT_EQ(back->name, what.name);
  EXPECT_EQ(back->token, what.token);
  EXPECT_EQ(back->holds, what.holds);
  EXPECT_FALSE(detail::order_from({"order", "explodes", "a", "1", "x"}));
  EXPECT_FALSE(detail::order_from({"order", "ends"}));
  const lock_user user{.host = "h1",
                       .held = mode::exclusive,
                       .pid = 4711,
                       .command = "rsync",
                       .hold = 12,
                       .ending = {3s, end_reason::broken},
                       .kept_token = 8,
                       .note = "tab\tnote"};
  const auto again = detail::ordered_from(detail::fields_of(
      detail::lines_of("a", {{user, result::other_token}, {user, result::gone}})));
  ASSERT_EQ(again.size(), 2u);
  EXPECT_EQ(again[0].how, result::other_token);
  EXPECT_EQ(again[1].user.pid, 4711);
  EXPECT_EQ(again[1].user.note, user.note);
  EXPECT_EQ(again[1].user.ending.in, 3s);
  EXPECT_EQ(again[1].user.kept_token, 8u);
}

}  // namespace
}  // namespace lockflight::test
