// The agent's part for one name on its own host: it asks the home for ownership that a client
// wants, and gives it back when the home revokes it (docs/cluster.md, "A client's acquire" and
// "Revocation").
//
// The ownership itself is in the host's words, where the clients read it. An agent that restarts
// begins with an empty owner.
//
// A name that the host owns exclusively is given back by the agent if the host lock is free. If
// not, the word says that the name is revoked, and the client that leaves gives it back
// (acquire.hpp) and rings. That saves the two wake-ups of a thread that waits for the host lock.
// The agent waits for the host lock if no client gives the name back in time, and if other clients
// wait for that lock: they came before the revocation, so they go first.
#pragma once

#include <optional>
#include <string>

#include "names/cluster/core/effects.hpp"
#include "names/cluster/core/outbox.hpp"
#include "names/cluster/core/words.hpp"

namespace lockflight::cluster {

class owner {
 public:
  explicit owner(std::string name) : name_(std::move(name)) {}

  /// Asks for what a client wants, if that was not asked for already; and lets a revocation pass
  /// that a waiting client would keep from passing.
  void consider(member_id home, host_words& words, outbox& out);
  void granted(member_id home, const grant& what, host_words& words, outbox& out);
  /// `clients_until` is how long a client has time to give the name back.
  void revoked(member_id home, mode wanted, instant clients_until, host_words& words, effects& asks,
               outbox& out);
  /// Tells the home if a client has given the name back.
  void pass_on_what_a_client_gave(member_id home, host_words& words, outbox& out);
  /// Until when the revocation is left to the clients; 0: it is not.
  [[nodiscard]] instant clients_until() const { return clients_until_; }
  /// The moment of clients_until() has come, or the revocation must not be left to clients.
  void clients_are_late(member_id home, host_words& words, effects& asks, outbox& out);
  /// A thread of the agent has acquired the host lock. There may be no home: no epoch.
  void host_lock_taken(std::optional<member_id> home, host_words& words, effects& asks,
                       outbox& out);
  void taken_by_home(host_words& words);
  /// The host lock is free, and no client has used the name for a while.
  void give_back_unused(member_id home, host_words& words, outbox& out);
  /// The home is about to forget the name. Nothing of it is left here then, unless it is wanted.
  void forget(member_id home, host_words& words, outbox& out);
  /// Nothing is under way.
  [[nodiscard]] bool is_quiet() const {
    return asked_ == mode::none && revoking_ == mode::none && takes_lock_ == mode::none;
  }
  /// True if this owner has given the name back in this epoch, and the home has not confirmed that.
  [[nodiscard]] bool awaits_taken() const { return awaits_taken_; }
  /// Drops everything that the ended epoch has left unfinished.
  void epoch_ended();
  /// From now on clients wait, as the host leaves.
  void ask_no_more() { asks_ = false; }

  /// Withdraws the revocation that an epoch or an agent has left in the word.
  static void withdraw_revocation(const std::string& name, host_words& words);
  /// The ownership that this host has, or gave back without the home's `taken`.
  [[nodiscard]] static std::optional<claim> claim_of(const std::string& name,
                                                     const host_words& words);

 private:
  [[nodiscard]] mode lock_for_revocation(const host_words& words) const;
  void take_lock(effects& asks, const host_words& words, bool again = false);
  [[nodiscard]] bool mark_revoked(const ownership& before, mode wanted, host_words& words) const;
  void give(member_id home, ownership before, mode kept, host_words& words, outbox& out);
  [[nodiscard]] bool settle_state(host_words& words) const;
  void tell_home(member_id home, mode kept, host_words& words, outbox& out);
  void give_back_despite_waiter(member_id home, host_words& words, outbox& out);

  std::string name_;
  bool asks_ = true;
  mode asked_ = mode::none;
  mode revoking_ = mode::none;
  instant clients_until_ = 0;
  mode takes_lock_ = mode::none;  // a thread waits for the host lock in that mode
  bool awaits_taken_ = false;
};

}  // namespace lockflight::cluster
