#include "tests/names/deaths/worker.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <random>

#include "tests/names/deaths/worker_orders.hpp"

namespace lockflight::test {
namespace {

/// A measurement of one wait, which ends with the object.
class measured_wait {
 public:
  measured_wait(const worker& me, int number)
      : stopped_ns_(me.mine.stopped_ns),
        stopped_before_(stopped_ns_),
        longest_(me.all.longest_wait_ns[number]) {}
  ~measured_wait() {
    const auto took = static_cast<std::uint64_t>((clock::now() - since_).count());
    const std::uint64_t stopped = stopped_ns_ - stopped_before_;
    const std::uint64_t ns = took - std::min(took, stopped);
    std::uint64_t most = longest_.load();
    while (ns > most && !longest_.compare_exchange_weak(most, ns)) {
    }
  }
  measured_wait(const measured_wait&) = delete;
  measured_wait& operator=(const measured_wait&) = delete;

 private:
  const std::atomic<std::uint64_t>& stopped_ns_;
  std::uint64_t stopped_before_;
  std::atomic<std::uint64_t>& longest_;
  clock::time_point since_ = clock::now();
};

// An order may end the worker between the two halves of the update.
void write(worker& me, int number, named_lock& lock) {
  shared_state& all = me.all;
  guarded& data = all.data[number];
  if (lock.owner_died()) {
    ++data.told;
    data.second = data.first;
    lock.mark_consistent();
  } else if (data.first != data.second && data.removals != all.removals) {
    data.second = data.first;
  } else if (data.first != data.second) {
    report(all, fmt::format("{}: torn, and its holder was not told of a death", kind_of(number)));
    data.second = data.first;
  }
  if (lock.token() <= data.token)
    report(all, fmt::format("{}: token {} after {}", kind_of(number), lock.token(), data.token));
  data.token = lock.token();
  data.removals = all.removals;
  ++data.first;
  const std::uint64_t count = data.count;
  obey(me);
  data.count = count + 1;
  me.mine.updates[number].fetch_add(1);
  data.second = data.first;
}

void read(worker& me, int number, named_lock& lock) {
  const guarded& data = me.all.data[number];
  const std::uint64_t first = data.first;
  obey(me);
  if (first != data.second && !lock.owner_died() && data.removals == me.all.removals)
    report(me.all, fmt::format("{}: a reader sees a torn state", kind_of(number)));
}

// One acquire by a random call, and the release.
void use(worker& me, int number, std::mt19937_64& random) {
  named_lock& lock = me.handles[static_cast<std::size_t>(number)];
  worker_state& mine = me.mine;
  const bool shared = lock.can_share() && random() % 4 != 0;
  const std::uint64_t way = random() % 4;
  const bool can_time = kind_of(number).starts_with("flight");
  constexpr std::uint64_t patience_ns = 200'000;
  mine.lock = number;
  mine.exclusive = !shared;
  mine.is = where::on_the_way;
  bool had = true;
  {
    const measured_wait wait(me, number);
    if (can_time && way == 0)
      had = shared ? lock.try_lock_shared_within(patience_ns) : lock.try_lock_within(patience_ns);
    else if (can_time && way == 1)
      had = shared ? lock.try_lock_shared() : lock.try_lock();
    else
      shared ? lock.lock_shared() : lock.lock();
  }
  if (had) {
    mine.is = where::inside;
    shared ? read(me, number, lock) : write(me, number, lock);
    mine.is = where::on_the_way;
    shared ? lock.unlock_shared() : lock.unlock();
    me.all.acquires.fetch_add(1, std::memory_order_relaxed);
  }
  mine.is = where::outside;
}

}  // namespace

void work(shared_state& all, const worker_start& start) {
  try {
    std::mt19937_64 random(start.seed);
    const domain in = domain::open(start.name, start.as);
    worker me{.all = all,
              .start = start,
              .mine = all.worker[start.worker],
              .handles = {},
              .next_way_to_fork = static_cast<std::size_t>(start.worker)};
    for (int number = 0; number < lock_count(); ++number)
      me.handles.push_back(open_lock(in, number));
    while (!all.stop) {
      obey(me);
      use(me, start.numbers[random() % start.numbers.size()], random);
    }
    me.handles.clear();
    std::exit(0);
  } catch (const std::exception& e) {
    report(all, fmt::format("a worker failed: {}", e.what()));
    _exit(1);
  }
}

}  // namespace lockflight::test
