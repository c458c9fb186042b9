// dlm-server: clients that come and go, and clients that give up.
#include "lockflight/lock/dlm_server.hpp"

#include <gtest/gtest.h>

#include "counts.hpp"
#include "guarded.hpp"
#include "lockflight/lock/msg.hpp"

namespace lockflight::test {
namespace {

using rma::topology;
using dlm_server = placed<lock::dlm_server>;

// Each handle is dropped while it holds; every third client may give up.
TEST(dlm_server, clients_join_and_leave) {
  on_every_rank(topology::balanced({2, 2}), [](counted_participant& me) {
    rma::barrier all(me);
    const auto count = me.cells().template take<rma::nic_cell>(1);
    dlm_server first(me);
    guarded data(me, 0);
    rma::word got_it = 0;
    for (int i = 0; i < 60; ++i) {
      lock::dlm_server<counted_port> client(me, first.cells);
      if (i % 3 != 0)
        client.lock();
      else if (!client.try_lock_within(static_cast<std::uint64_t>(i % 4) * 1'000))
        continue;
      data.write([] {});
      ++got_it;
    }
    static_cast<void>(rma::fetch_add_now(me.port(), count.at(0), got_it));
    all.arrive_and_wait();
    require(data.look([] {}) == rma::get_now(me.port(), count.at(0)), "nobody was lost");
    if (me.rank() == 0) require(first.lock.try_lock(), "and the lock is free");
  });
}

// A client that gives up has left the queue: the next release finds it empty.
TEST(dlm_server, who_gives_up_is_off_the_queue) {
  on_every_rank(topology::balanced({2, 1}), [](counted_participant& me) {
    rma::barrier both(me);
    dlm_server l(me);
    if (me.rank() == 0) l.lock.lock();
    both.arrive_and_wait();
    if (me.rank() == 1)
      for (int i = 0; i < 3; ++i)
        require(!l.lock.try_lock_within(static_cast<std::uint64_t>(i) * 1'000), "rank 0 has it");
    both.arrive_and_wait();  // where rank 0 serves
    if (me.rank() == 0) {
      l.lock.unlock();
      require(l.lock.try_lock(), "free");
      l.lock.unlock();
    }
    both.arrive_and_wait();
    me.port().reset_counts();
    if (me.rank() == 1) {
      costs(me, "lock", {.messages = 1}, [&] { l.lock.lock(); });
      costs(me, "unlock", {.messages = 1}, [&] { l.lock.unlock(); });
    }
    both.arrive_and_wait();
  });
}

TEST(dlm_server, an_attempt_of_the_holder_takes_nothing_from_it) {
  on_every_rank(topology::balanced({2, 1}), [](counted_participant& me) {
    rma::barrier both(me);
    dlm_server l(me);
    if (me.rank() == 1) {
      l.lock.lock();
      require(!l.lock.try_lock() && !l.lock.try_lock_within(1'000), "it is not free");
      l.lock.unlock();
    }
    both.arrive_and_wait();  // where rank 0 serves
    if (me.rank() == 0) require(l.lock.try_lock(), "it was released");
  });
}

/// A client's request is at the home before the home has made the lock, and while it serves another
/// one.
template <template <class> class Lock>
void a_request_comes_early() {
  on_every_rank(topology::balanced({2, 1}), [](counted_participant& me) {
    using lock_type = Lock<counted_port>;
    const typename lock_type::parameters set;
    const auto cells = lock_type::cells::place(me.cells(), me.machine(), set, 0);
    rma::barrier both(me);
    placed<Lock> other(me);
    both.arrive_and_wait();
    if (me.rank() == 0)
      for (int i = 0; i < 50; ++i) me.port().pause(1'000'000);
    lock_type here(me, cells, set);
    if (me.rank() == 1) {
      here.lock();
      here.unlock();
    }
    both.arrive_and_wait();  // where rank 0 serves
  });
}

TEST(dlm_server, a_request_may_come_before_the_server) {
  a_request_comes_early<lock::dlm_server>();
}
TEST(msg, a_request_may_come_before_the_server) { a_request_comes_early<lock::msg>(); }

}  // namespace
}  // namespace lockflight::test
