// Pins the costs of a lock's operations: exact counts of the calls on its port.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "lockflight/fabric/counting.hpp"
#include "lockflight/fabric/shm.hpp"
#include "lockflight/fabric/strict.hpp"
#include "lockflight/rma/barrier.hpp"
#include "tests/support/fabrics.hpp"

namespace lockflight::test {

using fabric::operation_counts;

inline const rma::topology two_nodes = rma::topology::balanced({2, 2});  // rank 0's has 0 and 1
inline const rma::topology far_apart = rma::topology::balanced({2, 1});  // a node for each rank

/// A decorator that calls back before a put and before a wait, so that a test can hold a rank back
/// at exactly these points; and that can say that each rank has a core, or that posts take effect
/// in no order.
template <rma::port Inner>
class hooked : public fabric::decorator<Inner> {
  using base = fabric::decorator<Inner>;

 public:
  using base::base;

  std::function<void()> before_put;
  std::function<void()> before_await;
  bool has_cores = false;
  bool has_order = true;

  [[nodiscard]] bool shares_cores() const { return !has_cores && base::shares_cores(); }
  [[nodiscard]] bool orders_posts() const { return has_order && base::orders_posts(); }
  template <class Cell>
  void put(Cell to, rma::word value) {
    if (before_put) before_put();
    base::put(to, value);
  }
  template <class Cell, class Predicate>
  rma::word await(Cell on, Predicate done) {
    if (before_await) before_await();
    return base::await(on, done);
  }
};

using counted_port = fabric::counting<hooked<fabric::strict<shm::port>>>;
using counted_participant = rma::participant<counted_port>;

/// The fabric under the decorators: its operations are not counted.
inline shm::port& uncounted(counted_participant& me) { return me.port().inner().inner().inner(); }
inline auto& hooks(counted_participant& me) { return me.port().inner(); }

/// Waits, uncounted, until a cell of any rank satisfies the predicate.
template <class Cell, class Predicate>
void watch(counted_participant& me, Cell cell, Predicate done) {
  uncounted(me).poll(cell, done, rma::backoff(200, 10'000));
}

/// Runs the body on every rank; what a rank throws is a failure of the test.
template <class Body>
void on_every_rank(const rma::topology& machine, Body body) {
  const shm::config what{.machine = machine};
  EXPECT_NO_THROW(shm::run_ports(what, [&](shm::port& bare) {
    fabric::strict<shm::port> strict(bare);
    hooked<fabric::strict<shm::port>> hooked(strict);
    counted_port p(hooked);
    counted_participant me(p, what.words_per_rank);
    body(me);
  }));
}

inline std::string to_text(const operation_counts& c) {
  std::string text;
  const auto put = [&](const char* name, std::uint64_t n) {
    if (n != 0) text += " " + std::to_string(n) + " " + name;
  };
  put("put", c.put), put("get", c.get), put("add", c.add), put("fetch_add", c.fetch_add);
  put("swap", c.swap), put("cas", c.cas), put("flush", c.flush), put("loopback", c.loopback);
  put("load", c.load), put("store", c.store), put("rmw", c.rmw), put("message", c.messages);
  return text.empty() ? " nothing" : text;
}

/// Requires that the call costs exactly this, operations of the own node's CPU included.
template <class Call>
void costs(counted_participant& me, const std::string& what, const operation_counts& expected,
           Call call) {
  me.port().reset_counts();
  call();
  const operation_counts spent = me.port().counts();
  require(spent == expected, what + " costs" + to_text(spent) + ", not" + to_text(expected));
}

/// Rounds of all ranks against each other, tries among them: with the least budgets every path is
/// taken sooner or later. Returns this rank's costs.
template <class Lock>
[[nodiscard]] operation_counts everybody_at_once(counted_participant& me, Lock& lock) {
  rma::barrier all(me);
  all.arrive_and_wait();
  me.port().reset_counts();
  for (int i = 0; i < 500; ++i) {
    lock.lock();
    lock.unlock();
    if (lock.try_lock()) lock.unlock();
  }
  const operation_counts spent = me.port().counts();
  all.arrive_and_wait();
  return spent;
}

/// Rank 0 has the lock until another rank waits for it.
template <class Lock, class Others>
void while_rank_0_holds(counted_participant& me, Lock& lock, Others others) {
  rma::barrier all(me);
  const auto waits = me.cells().take<rma::plain_cell>(1);
  if (me.rank() == 0) lock.lock();
  all.arrive_and_wait();
  if (me.rank() == 0) {
    watch(me, waits, rma::equals(1));
    lock.unlock();
  } else {
    others([&me, waits] { rma::put_now(uncounted(me), waits, 1); });
  }
  all.arrive_and_wait();
}

/// The names of the locks that some test of this program places.
[[nodiscard]] inline std::set<std::string, std::less<>>& measured_locks() {
  static std::set<std::string, std::less<>> names;
  return names;
}

/// A lock with the cells that the test reads.
template <template <class> class Lock>
struct placed {
  using lock_type = Lock<counted_port>;
  using parameters = typename lock_type::parameters;

  explicit placed(counted_participant& me, const parameters& set = {}, rma::rank_t home = 0)
      : cells(lock_type::cells::place(me.cells(), me.machine(), set, home)), lock(me, cells, set) {
    static_cast<void>(is_measured);
  }

  typename lock_type::cells cells;
  lock_type lock;

 private:
  // Set before main(), whichever tests are run.
  static inline const bool is_measured = measured_locks().emplace(lock_type::about.name).second;
};

struct both_costs {
  operation_counts acquire, release;
  std::optional<operation_counts> attempt = std::nullopt;
};

/// Exclusive acquire and release by every rank in turn: `expected(rank)` are the costs. A try_lock
/// that succeeds costs the same, with a compare-swap for each swap, unless said otherwise.
template <template <class> class Lock, class Expected>
void uncontended(const rma::topology& machine, Expected expected,
                 const typename placed<Lock>::parameters& set = {}, rma::rank_t home = 0) {
  on_every_rank(machine, [&](counted_participant& me) {
    rma::barrier all(me);
    placed<Lock> l(me, set, home);
    for (rma::rank_t turn = 0; turn < machine.ranks(); ++turn, all.arrive_and_wait()) {
      if (turn != me.rank()) continue;
      const std::string who = " by rank " + std::to_string(turn);
      const both_costs cost = expected(turn);
      costs(me, "lock" + who, cost.acquire, [&] { l.lock.lock(); });
      costs(me, "unlock" + who, cost.release, [&] { l.lock.unlock(); });

      operation_counts tried = cost.attempt.value_or(cost.acquire);
      tried.cas += std::exchange(tried.swap, 0);
      costs(me, "try_lock" + who, tried, [&] { require(l.lock.try_lock(), "it is free"); });
      costs(me, "unlock after try_lock" + who, cost.release, [&] { l.lock.unlock(); });
    }
  });
}

}  // namespace lockflight::test
