// The agent of one host: its membership, the names that the host owns or wants, and the names whose
// home it is (docs/cluster.md, "Epochs").
//
// An agent is a state machine. An event goes in; changes of the host's words, messages,
// transactions and a moment to be woken at come out.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "names/cluster/core/agent_events.hpp"
#include "names/cluster/core/home.hpp"
#include "names/cluster/core/membership.hpp"
#include "names/cluster/core/owner.hpp"
#include "names/cluster/core/unused_names.hpp"

namespace lockflight::cluster {

class agent final : public agent_events {
 public:
  agent(member_id self, const timing& times, host_words& words)
      : self_(self),
        words_(words),
        membership_(self, times, words),
        unused_(times),
        clients_give_within_(times.clients_give_within) {}

  void start(instant now, effects& out) override;
  void receive(instant now, const message& what, effects& out) override;
  void answered(instant now, std::uint64_t number, const answer& what, effects& out) override;
  void timer(instant now, effects& out) override;
  [[nodiscard]] instant wake_at() const override;
  void hint(instant now, effects& out) override;
  void heard(instant now, member_id from, effects& out) override;
  void rung(instant now, const std::string& name, effects& out) override;
  void host_lock_taken(instant now, const std::string& name, effects& out) override;
  void host_lock_awaited(instant now, const std::string& name, effects& out) override;
  void retire(instant now, effects& out) override;
  void end_doubt(instant now, effects& out) override { membership_.end_doubt(now, out); }
  [[nodiscard]] epoch_number epoch() const override { return epoch_.number; }
  [[nodiscard]] instant stays_away_until() const { return membership_.stays_away_until(); }

 private:
  // ---- epochs ----
  void follow_membership(instant now, effects& out);
  void start_again();
  void move(instant now, const epoch_value& to, effects& out);
  void send_claims(outbox& out);
  void send_records(outbox& out);
  void send_witness_reports(outbox& out);
  void begin_if_all_are_done(instant now, effects& out);
  void tell_when_homes_have_begun(instant now, effects& out);
  void forget_records();

  // ---- the end ----
  void give_all_back(instant now, effects& out);
  void leave_if_all_is_taken(instant now, effects& out);

  // ---- names that nobody uses (agent_unused.cpp) ----
  void scan_for_unused_names(instant now, effects& out);
  void give_back_unused_names(instant now, effects& out);
  void forget_names_as_home(instant now, effects& out);

  // ---- revocations that are left to clients ----
  void take_back(instant now, const std::string& name, mode wanted, effects& out);
  [[nodiscard]] bool is_left_to_clients(const std::pair<instant, std::string>& revoked) const;
  void wait_for_clients_no_more(instant now, effects& out);

  // ---- messages ----
  void handle(instant now, const message& what, effects& out);
  void handle_as_home(const message& what, effects& out);
  void handle_as_owner(instant now, const message& what, effects& out);
  void handle_as_witness(const message& what, effects& out);
  void finish(instant now, effects& out);

  [[nodiscard]] member_id home_for(const std::string& name) const;
  [[nodiscard]] owner& owner_of(const std::string& name);
  [[nodiscard]] home& home_here(const std::string& name, effects& out);
  [[nodiscard]] outbox outbox_of(effects& out) { return {self_, epoch_.number, out.messages}; }

  member_id self_;
  host_words& words_;
  membership membership_;
  epoch_value epoch_;                // number 0: in none
  std::vector<identity> homes_now_;  // of the epoch
  std::map<std::string, owner> owners_;
  std::map<std::string, home> homes_;
  bool begun_ = false;
  std::set<std::string> unwitnessed_;  // of the homes, when they began
  bool retires_ = false;
  bool gives_back_ = false;        // in this epoch, as it retires
  std::set<std::string> untaken_;  // of that: what its home has not taken yet
  std::set<member_id> done_;       // the members that have sent claims_done in this epoch
  std::deque<message> of_later_;   // messages of epochs that this agent has not read
  unused_names unused_;
  token forgotten_;             // the greatest one of the names that this home has forgotten
  std::string scanned_until_;   // the last of the homes that were scanned in this pass
  bool forgets_words_ = false;  // the rest of the pass
  instant clients_give_within_;
  // Until when clients have time to give the names back. The first moment comes first.
  std::deque<std::pair<instant, std::string>> left_to_clients_;
};

}  // namespace lockflight::cluster
