// Two agents' state machines with a real etcd: they come into one epoch, and one takes the other
// off.
#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>
#include <asio/post.hpp>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "lab/cluster/memory.hpp"
#include "names/agent/etcd/store.hpp"
#include "names/cluster/core/agent.hpp"
#include "tests/names/agent/etcd/etcd_server.hpp"

namespace lockflight::cluster {
namespace {

instant now() {
  timespec at{};
  clock_gettime(CLOCK_BOOTTIME, &at);
  return static_cast<instant>(at.tv_sec) * 1'000'000 + at.tv_nsec / 1'000;
}

/// An agent, its words and its store. Links between hosts are the test's event loop.
class host {
 public:
  host(member_id id, const etcd_store_options& options,
       std::map<member_id, std::unique_ptr<host>>& all)
      : all_(all), agent_(id, timing{1'500'000, 150'000, 20'000}, words_) {
    words_.on_change = [](const std::string&) {};
    words_.on_header = [] {};
    words_.on_record = [](const std::string&, const record&) {};
    store_ = std::make_unique<etcd_store>(
        io_, options,
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
    store_->begin_watch();
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
    io_.restart();
    io_.poll();
    run([](host& h, effects& out) {
      for (const auto& [id, each] : h.all_) h.agent_.heard(now(), id, out);
      if (now() >= h.agent_.wake_at()) h.agent_.timer(now(), out);
    });
  }

  [[nodiscard]] epoch_number epoch() const { return agent_.epoch(); }
  [[nodiscard]] instant deadline() const { return words_.deadline(); }
  [[nodiscard]] const std::shared_ptr<const etcd_view>& view() const { return view_; }

 private:
  void later(member_id to, std::function<void(host&, effects&)> what) {
    asio::post(test::loop(), [&all = all_, to, what = std::move(what)] {
      if (const auto found = all.find(to); found != all.end()) found->second->run(what);
    });
  }

  std::map<member_id, std::unique_ptr<host>>& all_;
  sim::memory words_;
  agent agent_;
  std::shared_ptr<const etcd_view> view_;
  asio::io_context io_;  // of the store, which ends with the host
  std::unique_ptr<etcd_store> store_;
};

class EtcdAgents : public test::WithEtcd {
 protected:
  void add(member_id id) {
    const etcd_store_options options{
        server().options(), domain(), id, {"127.0.0.1:" + std::to_string(id), "here"}};
    hosts[id] = std::make_unique<host>(id, options, hosts);
  }
  [[nodiscard]] bool runs_until(const std::function<bool()>& condition) {
    const instant until = now() + 15'000'000;
    while (!condition()) {
      if (now() > until) return false;
      test::run_for(std::chrono::milliseconds(1));
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
