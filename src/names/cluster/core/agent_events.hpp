// The events of an agent. Code around the state machine calls them, one call after the other.
//
// `now` is the host's clock. The simulation knows an agent by this interface alone, so that it can
// run broken ones.
#pragma once

#include "names/cluster/core/effects.hpp"
#include "names/cluster/core/terms.hpp"

namespace lockflight::cluster {

struct timing {
  instant ttl = 10'000'000;
  /// By how much the deadline is earlier than the TTL. It covers the difference in the rates of two
  /// clocks, of five percent.
  instant margin = 500'000;
  /// The delay between two members that would propose the same change.
  instant stagger = 100'000;
  /// A name that no client of the host has used for that long is given back; 0: never.
  instant keep = 0;
  /// The agent goes through its names to find those, some at a time; this is between two times.
  instant scan_every = 1'000'000;
  /// How long the agent leaves it to clients to give a name back that another host wants. A client
  /// that does not leave in that time keeps the name for longer, so an agent that waits for the
  /// host lock then comes soon enough.
  instant clients_give_within = 500;
  /// The most that a host waits before it joins again, if it was evicted again and again.
  instant longest_absence = 16 * 10'000'000;

  /// The time between two renewals. An outage of etcd may begin just before a renewal, so a long
  /// period would leave holders little of the TTL.
  [[nodiscard]] instant period() const { return ttl / 12; }
  /// How long the agent waits for an answer of etcd.
  [[nodiscard]] instant patience() const { return ttl / 6; }
  /// An agent that etcd answers reads at least so often, also if etcd leaves two renewals without
  /// an answer: that takes a period and twice the patience, 5/12 of the TTL.
  [[nodiscard]] instant reads_within() const { return ttl / 2; }
  /// The longest time between two changes that an agent sees of the beat of a member that renews.
  /// (!) If both renew at about the same moments, the agent reads the member's renewal in one
  /// period just before its own and in another just after it, so two periods may lie between the
  /// changes. The rest is for renewals without an answer, and an eighth of the patience for answers
  /// that come late. The time is not longer, because a host that was stopped for less than this
  /// time counts as one that has renewed all along, and its complaints count.
  [[nodiscard]] instant sees_beats_within() const { return 2 * ttl / 3 + patience() / 8; }
  /// The time after which a complaint counts: half of the TTL in which each member finds out whom
  /// it hears, a period until it says so with a renewal, and another until the others have read
  /// that.
  [[nodiscard]] instant complains_within() const { return 2 * ttl / 3; }
  /// A host that has been a member for that long is one that the others hear.
  [[nodiscard]] instant proves_itself_within() const { return 8 * ttl; }
};

class agent_events {
 public:
  agent_events() = default;
  agent_events(const agent_events&) = delete;
  agent_events& operator=(const agent_events&) = delete;
  virtual ~agent_events() = default;

  virtual void start(instant now, effects& out) = 0;
  virtual void receive(instant now, const message& what, effects& out) = 0;
  /// The answer to a transaction. None comes if it was refused, or if nobody knows.
  virtual void answered(instant now, std::uint64_t number, const answer& what, effects& out) = 0;
  /// The moment of wake_at() has come.
  virtual void timer(instant now, effects& out) = 0;
  [[nodiscard]] virtual instant wake_at() const = 0;
  /// A watch of etcd says that a key has changed. This is a hint: it may be late, or never come.
  virtual void hint(instant now, effects& out) = 0;
  /// The agent of host `from` has answered: the link works both ways. A host that hears the others
  /// but is not heard must not take part, so an answer counts, and a message that comes unasked
  /// does not.
  virtual void heard(instant now, member_id from, effects& out) = 0;
  /// A client has set `wanted` in the ownership word.
  virtual void rung(instant now, const std::string& name, effects& out) = 0;
  virtual void host_lock_taken(instant now, const std::string& name, effects& out) = 0;
  /// A lock that is wanted if it is free is not, and other clients wait for it.
  virtual void host_lock_awaited(instant now, const std::string& name, effects& out) = 0;
  /// The host is to leave: the agent gives back all names, and has_left follows, unless a client
  /// stays inside one.
  virtual void retire(instant now, effects& out) = 0;

  /// An operator says that what the hosts which are lost now may have left half done is put right.
  virtual void end_doubt(instant now, effects& out) = 0;

  /// The epoch that the agent is in; 0 for none.
  [[nodiscard]] virtual epoch_number epoch() const = 0;
};

}  // namespace lockflight::cluster
