// The same random transactions on the simulated etcd and on a real one: both have the same keys
// after each. The revisions differ, but in the same order.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "lab/cluster/etcd.hpp"
#include "lab/cluster/random.hpp"
#include "names/agent/etcd/client.hpp"
#include "tests/names/agent/etcd/etcd_server.hpp"

namespace lockflight::cluster {
namespace {

constexpr member_id own_id = 0x5e1f;
constexpr member_id all_ids[] = {1, 2, own_id, 0xfedcba9876543210};
const member_place own_place{"127.0.0.1:9", "here"};

class EtcdTransactions : public test::WithEtcd {
 protected:
  member_id any_id() { return all_ids[random.below(4)]; }
  key any_key() {
    const auto kind = static_cast<key_kind>(random.below(4));
    return {kind, kind == key_kind::epoch ? 0 : any_id()};
  }

  value any_value(key_kind of) {
    const auto small = [&] { return static_cast<std::uint32_t>(random.below(3)); };
    switch (of) {
      case key_kind::epoch: {
        epoch_value epoch;
        epoch.number = 1 + small();
        epoch.settled = random.one_in(2);
        for (const member_id id : all_ids)
          if (random.one_in(2)) epoch.members.push_back({{id, small()}, small()});
        if (random.one_in(2)) epoch.past.push_back({small(), {{1, 1}, {2, 1}}, true, {{2, 1}}});
        return epoch;
      }
      case key_kind::member:
        return member_value{small(), small()};
      case key_kind::beat: {
        beat_value beat{small(), {}};
        if (random.one_in(2)) beat.missing.push_back(any_id());
        return beat;
      }
      default:
        return evicted_value{};
    }
  }

  [[nodiscard]] revision changed_at(const key& which) const {
    const snapshot& keys = *simulated.now();
    if (which.kind == key_kind::epoch) return keys.epoch ? keys.epoch->changed : 0;
    const member_keys* const at = keys.find(which.id);
    if (at == nullptr) return 0;
    if (which.kind == key_kind::member) return at->member ? at->member->changed : 0;
    if (which.kind == key_kind::beat) return at->beat ? at->beat->changed : 0;
    return at->evicted ? 1 : 0;
  }

  /// Adds a comparison to both. Of an evicted key both know only whether it is there.
  void compare(const key& of, transaction& for_simulated, transaction& for_real) {
    constexpr revision never = 1'000'000'000;
    const revision changed = changed_at(of);
    const bool is_right = !random.one_in(8);
    revision wanted = 0;
    if (of.kind != key_kind::evicted) {
      if (is_right) wanted = changed;
      if (!is_right && (changed == 0 || random.one_in(2))) wanted = never;
    }
    for_simulated.when.push_back({of, wanted});
    for_real.when.push_back({of, wanted == 0 || wanted == never ? wanted : real_of.at(wanted)});
  }

  template <class Value>
  void expect_same(const std::optional<stored<Value>>& in_simulated,
                   const std::optional<stored<Value>>& in_real) {
    ASSERT_EQ(in_simulated.has_value(), in_real.has_value());
    if (!in_real) return;
    EXPECT_EQ(in_simulated->what, in_real->what);
    EXPECT_EQ(real_of.at(in_simulated->created), in_real->created);
    EXPECT_EQ(real_of.at(in_simulated->changed), in_real->changed);
  }

  void expect_same(const snapshot& in_simulated, const snapshot& in_real) {
    expect_same(in_simulated.epoch, in_real.epoch);
    ASSERT_EQ(in_simulated.members.size(), in_real.members.size());
    for (const auto& [id, keys] : in_simulated.members) {
      const auto* const other = in_real.find(id);
      ASSERT_NE(other, nullptr);
      expect_same(keys.member, other->member);
      expect_same(keys.beat, other->beat);
      EXPECT_EQ(keys.evicted, other->evicted);
    }
    EXPECT_EQ(real_of.at(in_simulated.at), in_real.at);
  }

  sim::random_numbers random{7};
  sim::etcd simulated;
  std::map<revision, revision> real_of;  // of a revision of the simulated etcd
};

TEST_F(EtcdTransactions, MeanTheSameAsInTheSimulation) {
  simulated.on_epoch = [](const epoch_value&, const epoch_value&) {};
  etcd_client real(test::loop(), server().options(), domain());
  real_of[0] = test::now(real.read_view())->keys.at;
  int failed = 0;
  for (int i = 0; i < 300; ++i) {
    transaction for_simulated;
    transaction for_real;
    for (std::int64_t many = random.below(4); many > 0; --many)
      compare(any_key(), for_simulated, for_real);
    std::set<key> touched;
    for (std::int64_t many = random.below(5); many > 0; --many) {
      const key at = any_key();
      if (!touched.insert(at).second) continue;            // etcd refuses two changes of a key
      if (at.kind != key_kind::epoch && random.one_in(3))  // no one deletes the epoch
        for_simulated.erased.push_back(at);
      else
        for_simulated.puts.push_back({at, any_value(at.kind)});
    }
    for_real.puts = for_simulated.puts;
    for_real.erased = for_simulated.erased;

    const answer expected = simulated.carry_out(for_simulated);
    const etcd_answer got = test::now(real.carry_out(for_real, own_id, own_place));
    ASSERT_EQ(expected.succeeded, got.what.succeeded) << i;
    if (!got.what.succeeded) ++failed;
    real_of.emplace(expected.seen->at, got.what.seen->at);
    expect_same(*expected.seen, *got.what.seen);
    if (HasFailure()) FAIL() << "transaction " << i;
    // The own member's own_place is written with its key, the others' not.
    const auto* const own = got.view->keys.find(own_id);
    EXPECT_EQ(got.view->addresses.size(), own != nullptr && own->member ? 1u : 0u);
  }
  EXPECT_GT(failed, 20);
  EXPECT_LT(failed, 200);
  expect_same(*simulated.now(), test::now(real.read_view())->keys);
}

}  // namespace
}  // namespace lockflight::cluster
