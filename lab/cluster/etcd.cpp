#include "lab/cluster/etcd.hpp"

#include <algorithm>

namespace lockflight::cluster::sim {
namespace {

revision changed_at(const snapshot& keys, const key& which) {
  if (which.kind == key_kind::epoch) return keys.epoch ? keys.epoch->changed : 0;
  if (which.kind == key_kind::cluster) return keys.cluster ? keys.cluster->changed : 0;
  const member_keys* const at = keys.find(which.id);
  if (at == nullptr) return 0;
  switch (which.kind) {
    case key_kind::member:
      return at->member ? at->member->changed : 0;
    case key_kind::beat:
      return at->beat ? at->beat->changed : 0;
    default:
      return at->evicted ? 1 : 0;
  }
}

template <class Value>
void write(std::optional<stored<Value>>& to, const Value& what, revision at) {
  to = stored<Value>{what, to ? to->created : at, at};
}

void write(snapshot& keys, const put& each) {
  if (each.at.kind == key_kind::epoch) {
    write(keys.epoch, std::get<epoch_value>(each.what), keys.at);
    return;
  }
  if (each.at.kind == key_kind::cluster) {
    write(keys.cluster, std::get<cluster_value>(each.what), keys.at);
    return;
  }
  member_keys& to = keys.members[each.at.id];
  if (each.at.kind == key_kind::member)
    write(to.member, std::get<member_value>(each.what), keys.at);
  else if (each.at.kind == key_kind::beat)
    write(to.beat, std::get<beat_value>(each.what), keys.at);
  else
    to.evicted = true;
}

void erase(snapshot& keys, const key& which) {
  if (which.kind == key_kind::cluster) keys.cluster.reset();
  const auto at = keys.members.find(which.id);
  if (at == keys.members.end()) return;
  member_keys& of = at->second;
  if (which.kind == key_kind::member) of.member.reset();
  if (which.kind == key_kind::beat) of.beat.reset();
  if (which.kind == key_kind::evicted) of.evicted = false;
  if (!of.member && !of.beat && !of.evicted) keys.members.erase(at);
}

}  // namespace

answer etcd::carry_out(const transaction& what) {
  const bool holds = std::all_of(what.when.begin(), what.when.end(), [&](const comparison& each) {
    return changed_at(*now(), each.of) == each.changed;
  });
  if (!holds || (what.puts.empty() && what.erased.empty())) return {holds, now()};
  auto next = std::make_shared<snapshot>(*now());
  ++next->at;
  for (const key& each : what.erased) erase(*next, each);
  for (const put& each : what.puts) write(*next, each);
  const std::shared_ptr<const snapshot> before = now();
  history_.push_back(std::move(next));
  if (history_.size() > most_history) history_.pop_front();
  if (now()->epoch && (!before->epoch || before->epoch->what != now()->epoch->what))
    on_epoch(before->epoch ? before->epoch->what : epoch_value{}, now()->epoch->what);
  return {true, now()};
}

answer etcd::read_stale(std::size_t transactions_ago) const {
  return {true, history_[history_.size() - 1 - std::min(transactions_ago, history_.size() - 1)]};
}

}  // namespace lockflight::cluster::sim
