// The membership of one host (docs/cluster.md, "Epochs" and "Deadlines"): it registers the host in
// etcd, renews, keeps the deadline in the domain file, proposes the next epoch, and evicts a member
// that others cannot hear.
//
// etcd's leases decide nothing, and neither does a watch: every decision is a transaction that
// compares what it follows from.
//
// Invariants:
// - deadline: it is never later than TTL − margin after the sending of a renewal that etcd carried
//   out in this incarnation.
// - expelled once: a host that finds its key gone never uses its incarnation again.
// - promises: no deadline is made void by what etcd loses. A host whose key is gone does not join
//   again before its own deadline is over, and the others keep it among the members for a TTL after
//   they have read that its key is gone.
// - one writer: each renewal compares that the beat is the one that this agent has written last, so
//   of two agents that run on copies of the same words only one renews.
#pragma once

#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "names/cluster/core/agent_events.hpp"
#include "names/cluster/core/words.hpp"

namespace lockflight::cluster {

class membership {
 public:
  membership(member_id self, const timing& times, host_words& words)
      : self_(self), times_(times), words_(words) {}

  void start(instant now, effects& out);
  void answered(instant now, std::uint64_t number, const answer& what, effects& out);
  void timer(instant now, effects& out);
  void hint(instant now, effects& out);
  void heard(instant now, member_id from) { heard_[from] = now; }
  [[nodiscard]] instant wake_at() const;

  /// The agent has begun as home in its epoch. This is passed on with the next renewal, at once.
  void has_begun(instant now, epoch_number in, effects& out);
  /// The others are told that this member is about to leave, and make the next epoch.
  void retire(instant now, effects& out);
  /// Proposes, as soon as an epoch is settled, that the hosts which are lost now, as far as this
  /// agent has read, leave nothing in doubt.
  void end_doubt(instant now, effects& out);
  /// Takes this host off the members. It owns nothing, and is the home of nothing; or it is `last`,
  /// and what it knows as home does not count. Does nothing if another host is about to join then.
  void leave(instant now, bool last, effects& out);

  /// The agent has moved to the epoch.
  void has_moved(instant now, const epoch_value& to);

  /// True if the host has become another incarnation since the last call.
  [[nodiscard]] bool take_new_incarnation() { return std::exchange(is_new_incarnation_, false); }
  /// The time before which the host does not join, if it was evicted again and again.
  [[nodiscard]] instant stays_away_until() const { return may_join_at_; }
  /// The epoch as it was read last, if this agent is a member of it.
  [[nodiscard]] const epoch_value* epoch_of_mine() const;

 private:
  enum class phase : std::uint8_t {
    starting,    // takes up the incarnation of the agent before, if it can
    joining,     // registers another incarnation
    registered,  // renews
    leaving,     // takes its keys away
    ended,
  };
  enum class purpose : std::uint8_t {
    read,
    renewal,
    check,  // compares, and writes nothing: it shows whether what was read is out of date
    change,
  };
  /// A transaction whose answer is awaited.
  struct pending {
    std::uint64_t number = 0;
    instant sent = 0;
    purpose why = purpose::read;
  };
  /// The revision of a key, and the time since which the key has had it, as this agent has read it.
  struct watched {
    revision changed = 0;
    instant since = 0;
    instant steady_since = 0;  ///< since when no two changes were further apart than renewals are
  };
  /// An operator's statement: the data that these hosts may have left half done is put right.
  struct operator_statement {
    std::set<identity> lost;
    epoch_number until;  ///< the last of the epochs that were over then
  };
  struct proposal;

  void submit(instant now, transaction what, purpose why, effects& out);
  void drop_own();
  void read(instant now, effects& out);
  void renew(instant now, effects& out);
  void decide(instant now, purpose asked, effects& out);
  void decide_as_member(instant now, purpose asked, effects& out);
  void take_up(instant now, purpose asked, effects& out);
  void come_back(instant now, effects& out);
  void join(instant now, purpose asked, effects& out);
  void choose_number();
  bool is_copied(instant now, purpose asked, const transaction& with, effects& out);
  void begin_new_incarnation(effects& out);
  void stay_away_if_evicted(instant now);
  void end_after_leaving(effects& out);
  void end_as_copied(effects& out);
  void take_keys_away(instant now, effects& out);
  [[nodiscard]] bool is_alone() const;
  [[nodiscard]] bool is_the_one_registered(const member_keys* mine) const;
  void confirmed(const pending& asked, const snapshot& seen, effects& out);
  void observe(instant now, std::shared_ptr<const snapshot> seen);
  void observe_losses(instant now, const snapshot& seen);
  void find_next_stale(instant now);
  [[nodiscard]] bool is_mine(const stored<member_value>& key) const;
  [[nodiscard]] bool is_stale(instant now, member_id id) const;
  [[nodiscard]] bool is_lost(instant now, member_id id) const;
  [[nodiscard]] bool has_key(member_id id) const;
  [[nodiscard]] std::vector<member_id> unheard_members(instant now) const;
  void say_who_is_unheard(instant now, const std::vector<member_id>& unheard, effects& out);
  [[nodiscard]] std::vector<member_id> missing(instant now) const;
  void put_mine(transaction& into, instant now) const;

  void consider_change(instant now, effects& out);
  [[nodiscard]] epoch_value epoch_of(std::vector<member> members) const;
  void put_cluster_key(transaction& into) const;
  [[nodiscard]] std::optional<transaction> cluster_key_again() const;
  [[nodiscard]] std::optional<transaction> next_epoch(instant now) const;
  [[nodiscard]] proposal successor(instant now) const;
  [[nodiscard]] std::optional<transaction> settlement() const;
  [[nodiscard]] std::optional<transaction> end_of_doubt();
  [[nodiscard]] std::map<member_id, int> complaints(instant now) const;
  [[nodiscard]] int members_that_hear(member_id id) const;
  [[nodiscard]] std::optional<transaction> eviction(instant now);
  [[nodiscard]] instant own_delay() const;

  member_id self_;
  timing times_;
  host_words& words_;
  agent_number agent_ = 0;
  phase phase_ = phase::starting;
  bool is_new_incarnation_ = false;
  revision my_key_ = 0;         // when my key was changed last, while registered
  revision my_beat_ = 0;        // when my beat was changed last; 0 if etcd has lost the beat
  beat_number number_ = 0;      // of the next beat; 0: not yet drawn
  bool is_unanswered_ = false;  // nobody knows whether etcd carried out a renewal of mine
  bool retires_ = false;
  std::optional<operator_statement> ends_doubt_;
  bool leaves_last_ = false;
  bool is_evicted_ = false;  // this incarnation, as far as this agent has read
  int evictions_ = 0;        // that came soon after this host had joined
  instant joined_at_ = 0;
  instant may_join_at_ = 0;
  std::uint64_t numbers_ = 0;
  std::optional<pending> own_;     // about the own keys, or a read
  std::optional<pending> change_;  // of the epoch
  bool read_again_ = false;
  instant next_renewal_ = 0;
  instant next_application_ = 0;
  std::optional<instant> change_due_;
  std::optional<watched> complained_;  // since when there are complaints in that epoch
  std::shared_ptr<const snapshot> latest_;
  std::optional<instant> last_read_;
  std::map<member_id, watched> beats_;
  std::map<member_id, instant> lost_;  ///< since when the key of a member of the epoch is gone
  std::map<member_id, instant> heard_;
  instant moved_at_ = 0;
  instant last_timer_ = 0;
  /// When a beat will have stood still for the TTL, or a key will have been gone for so long, next.
  instant next_stale_ = std::numeric_limits<instant>::max();
  epoch_number epoch_ = 0;
  epoch_number begun_ = 0;
};

}  // namespace lockflight::cluster
