// The home of one name in one epoch (docs/cluster.md, "The home" and "Epochs").
//
// The home collects claims and records until all members have sent theirs. Then it begins: it knows
// who owns the name, and grants the requests in its queue.
//
// If the home is lost, its record is as well. Then the owner of the name says what it owns. A home
// that is about to own a name itself, or that is alone to know of a death, first tells a *witness*,
// another member. So if one host is lost, nothing is in doubt. docs/cluster.md has a table of who
// knows of a death until which message.
//
// Invariants, once it has begun:
// - exclusive: if a host owns the name exclusively, no other host owns it.
// - recorded: a grant, a revocation and a `taken` leave when the record is in the domain file.
// - witnessed: the home's own host owns the name exclusively, or the home sends `taken` for a
//   give_back that tells of a death, only when the witness knows.
#pragma once

#include <deque>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "names/cluster/core/outbox.hpp"
#include "names/cluster/core/words.hpp"

namespace lockflight::cluster {

class home {
 public:
  /// `forgotten` is the greatest token of all names that this member has forgotten in the epoch:
  /// the name may be one of them.
  explicit home(std::string name, token forgotten = {})
      : name_(std::move(name)), forgotten_(forgotten) {}

  // ---- before it begins ----
  void collect(member_id from, const claim& what);
  void collect(const record& what);
  void collect(const witness_report& what) {
    reported_by_witness_ = std::max(reported_by_witness_, what.epoch);
  }
  void begin(const epoch_value& now, std::optional<member_id> witness, host_words& words,
             outbox& out);

  // ---- at any time ----
  void requested(member_id from, mode wanted, const epoch_value& now, host_words& words,
                 outbox& out);
  void given_back(member_id from, const give_back& what, const epoch_value& now, host_words& words,
                  outbox& out);
  /// The witness has noted it.
  void witnessed(const epoch_value& now, host_words& words, outbox& out);
  [[nodiscard]] bool awaits_witness() const { return witness_knows_ == witness_state::asked; }

  // ---- the end ----
  /// True if the name means nothing any more: no host owns it or wants it, and no holder died in
  /// it.
  [[nodiscard]] bool is_unused(const epoch_value& now) const;
  /// (!) A host that has not got the `taken` yet would claim in the next epoch what it gave back in
  /// this one. So an unused name is forgotten when no host remembers it.
  [[nodiscard]] bool is_remembered() const { return !may_remember_.empty(); }
  void ask_hosts_to_forget(outbox& out) const;
  /// Before it is forgotten.
  void end(outbox& out) const;
  void forgotten_by(member_id who) { may_remember_.erase(who); }
  [[nodiscard]] token last() const { return last_; }

 private:
  struct waiting {
    member_id from;
    mode wanted;
    bool operator==(const waiting&) const = default;
  };

  void serve(const epoch_value& now, host_words& words, outbox& out);
  [[nodiscard]] bool has_enough(const waiting& head) const;
  [[nodiscard]] std::vector<member_id> in_the_way(const waiting& head) const;
  void grant_head(const epoch_value& now, host_words& words, outbox& out);
  /// True if the witness knows, or there is no witness. Else the witness is told.
  [[nodiscard]] bool is_witnessed(outbox& out);
  void confirm(member_id giver, outbox& out);
  void revoke_for(mode wanted, const std::vector<member_id>& owners, outbox& out);
  void store(const epoch_value& now, host_words& words) const;
  [[nodiscard]] bool is_in_doubt(const epoch_value& now) const;
  /// True if the home of the name in some epoch after `since` is gone, and what it knew with it.
  [[nodiscard]] bool former_home_is_gone(const epoch_value& now, epoch_number since) const;

  std::string name_;
  bool begun_ = false;
  std::deque<waiting> queue_;
  std::optional<member_id> exclusive_;
  std::set<member_id> shared_;
  std::set<member_id> may_remember_;  // the hosts that have given it back
  token forgotten_;
  token last_;
  bool died_ = false;
  std::optional<record> former_record_;   // the record of the greatest epoch
  epoch_number reported_by_witness_ = 0;  // the last epoch in which a witness noted it
  enum class witness_state : std::uint8_t { no, asked, yes };
  std::optional<member_id> witness_;
  witness_state witness_knows_ = witness_state::no;
  std::vector<member_id> unconfirmed_;  // hosts that have given back, and told of a death
  // The owners that were sent a revoke(shared), and those that were sent a revoke(exclusive).
  std::set<member_id> revoked_for_shared_;
  std::set<member_id> revoked_for_exclusive_;
};

}  // namespace lockflight::cluster
