// Two agents' state machines with a real etcd: they come into one epoch, and one takes the other
// off.
#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "agent/etcd/store.hpp"
#include "cluster/core/agent.hpp"
#include "cluster/etcd/etcd_server.hpp"
#include "cluster/sim/memory.hpp"

namespace lockflight::cluster {
namespace {

instant now() {
  timespec at{};
  clock_gettime(CLOCK_BOOTTIME, &at);
  return static_cast<instant>(at.tv_sec) * 1'000'000 + at.tv_nsec / 1'000;
}

/// What threads have for the one thread that runs the agents.
class work_queue {
 public:
  void add(std::function<void()> what) {
    const std::lock_guard guard(mutex_);
    all_.push_back(std::move(what));
    has_some_.notify_one();
  }
  void run_one_until(instant at) {
    std::unique_lock guard(mutex_);
    has_some_.wait_for(guard, std::chrono::microseconds(std::max<instant>(at - now(), 0)),
                       [&] { return !all_.empty(); });
    if (all_.empty()) return;
    const std::function<void()> what = std::move(all_.front());
    all_.pop_front();
    guard.unlock();
    what();
  }

 private:
  std::mutex mutex_;
  std::condition_variable has_some_;
  std::deque<std::function<void()>> all_;
};

/// An agent, its words and its store. Links between hosts are the queue.
class host {
 public:
  host(member_id id, const etcd_store_options& options, work_queue& queue,
       std::map<member_id, std::unique_ptr<host>>& all)
      : queue_(queue), all_(all), agent_(id, timing{1'500'000, 150'000, 20'000}, words_) {
    words_.on_change = [](const std::string&) {};
    words_.on_header = [] {};
    words_.on_record = [](const std::string&, const record&) {};
    store_ = std::make_unique<etcd_store>(
        options,
        etcd_events{
            .answered =
                [this, id](std::uint64_t number, const answer& what,
                           const std::shared_ptr<const etcd_view>& view) {
                  later(id, [number, what, view](host& h, effects& out) {
                    h.view_ = view;
                    h.agent_.answered(now(), number, what, out);
                  });
                },
            .hint = [this,
                     id] { later(id, [](host& h, effects& out) { h.agent_.hint(now(), out); }); },
            .trouble = [](const std::string& what) { ADD_FAILURE() << what; },
            .recovered = [] {}});
    later(id, [](host& h, effects& out) { h.agent_.start(now(), out); });
  }

  void run(const std::function<void(host&, effects&)>& what) {
    effects out;
    what(*this, out);
    for (const submitted& each : out.transactions) store_->submit(each);
    for (const message& each : out.messages)
      later(each.to, [each](host& h, effects& more) { h.agent_.receive(now(), each, more); });
  }
  void run_timer() {
    run([](host& h, effects& out) {
      for (const auto& [id, each] : h.all_) h.agent_.heard(now(), id, out);
      if (now() >= h.agent_.wake_at()) h.agent_.timer(now(), out);
    });
  }

  [[nodiscard]] epoch_number epoch() const { return agent_.epoch(); }
  [[nodiscard]] instant deadline() const { return words_.deadline(); }
  [[nodiscard]] instant wake_at() const { return agent_.wake_at(); }
  [[nodiscard]] const std::shared_ptr<const etcd_view>& view() const { return view_; }

 private:
  void later(member_id to, std::function<void(host&, effects&)> what) {
    queue_.add([&all = all_, to, what = std::move(what)] {
      if (const auto found = all.find(to); found != all.end()) found->second->run(what);
    });
  }

  work_queue& queue_;
  std::map<member_id, std::unique_ptr<host>>& all_;
  sim::memory words_;
  agent agent_;
  std::shared_ptr<const etcd_view> view_;
  std::unique_ptr<etcd_store> store_;  // the last member: its threads use the others
};

class EtcdAgents : public test::WithEtcd {
 protected:
  void add(member_id id) {
    const etcd_store_options options{
        server().options(), domain(), id, {"127.0.0.1:" + std::to_string(id), "here"}};
    hosts[id] = std::make_unique<host>(id, options, queue, hosts);
  }
  [[nodiscard]] bool runs_until(const std::function<bool()>& condition) {
    const instant until = now() + 15'000'000;
    while (!condition()) {
      if (now() > until) return false;
      instant wake_at = now() + 100'000;
      for (const auto& [id, each] : hosts) wake_at = std::min(wake_at, each->wake_at());
      queue.run_one_until(wake_at);
      for (const auto& [id, each] : hosts) each->run_timer();
    }
    return true;
  }
  /// All are in one epoch, which has so many members and is settled.
  [[nodiscard]] bool are_settled(std::size_t members) const {
    return std::all_of(hosts.begin(), hosts.end(), [&](const auto& each) {
      const auto& view = each.second->view();
      if (!view || !view->keys.epoch) return false;
      const epoch_value& epoch = view->keys.epoch->what;
      return epoch.members.size() == members && epoch.settled &&
             each.second->epoch() == epoch.number && each.second->deadline() > now();
    });
  }

  work_queue queue;
  std::map<member_id, std::unique_ptr<host>> hosts;
};

TEST_F(EtcdAgents, ComeIntoOneEpoch) {
  add(1);
  add(2);
  ASSERT_TRUE(runs_until([&] { return are_settled(2); }));
  EXPECT_EQ(hosts[1]->epoch(), hosts[2]->epoch());
  EXPECT_EQ(hosts[1]->view()->addresses.at(2), "127.0.0.1:2");
  const epoch_number both = hosts[1]->epoch();

  hosts.erase(2);  // it dies
  ASSERT_TRUE(runs_until([&] { return are_settled(1); }));
  EXPECT_GT(hosts[1]->epoch(), both);
  EXPECT_FALSE(hosts[1]->view()->addresses.contains(2));
}

}  // namespace
}  // namespace lockflight::cluster
