// The words in a host's domain file that its agent and its clients share. The agent implements this
// interface over the domain file, and the simulation implements it in memory.
//
// Each call is one atomic access. The words outlive the agent and all clients.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "names/cluster/core/keys.hpp"
#include "names/cluster/core/message.hpp"
#include "names/cluster/core/terms.hpp"

namespace lockflight::cluster {

/// The first word of a name. The agent writes `owned` and `revoked`, and the clients that wait
/// write `wanted`. A client that leaves a name which is revoked writes `owned` as well.
struct ownership {
  mode owned = mode::none;
  mode wanted = mode::none;
  /// A word of an older incarnation than the header's owns nothing.
  incarnation_number incarnation = 0;
  /// Another host wants the name in that mode, and this host owns it exclusively.
  mode revoked = mode::none;
  bool operator==(const ownership&) const = default;

  [[nodiscard]] ownership wanting(mode what) const { return {owned, what, incarnation, revoked}; }
  [[nodiscard]] ownership revoked_for(mode what) const {
    return {owned, wanted, incarnation, what};
  }
};

/// The second word of a name. An exclusive holder and the agent write it.
struct state {
  token last;
  bool inside = false;  ///< an exclusive holder is inside, or has died there
  bool died = false;    ///< a holder died inside, and no exclusive holder has left since
  bool operator==(const state&) const = default;
};

/// The note that a witness stores for the home of a name.
struct witness_note {
  epoch_number epoch = 0;
  identity home;
  bool operator==(const witness_note&) const = default;
};

class host_words {
 public:
  host_words() = default;
  host_words(const host_words&) = delete;
  host_words& operator=(const host_words&) = delete;
  virtual ~host_words() = default;

  // ---- the header ----
  [[nodiscard]] virtual incarnation_number incarnation() const = 0;
  virtual void set_incarnation(incarnation_number now) = 0;
  /// Until when this host is certainly a member.
  [[nodiscard]] virtual instant deadline() const = 0;
  virtual void set_deadline(instant at) = 0;
  /// The revision in which the key of this incarnation was created in etcd.
  [[nodiscard]] virtual revision registered() const = 0;
  virtual void set_registered(revision at) = 0;
  /// A number that no earlier agent of this host had.
  [[nodiscard]] virtual agent_number next_agent() = 0;
  /// The number that next_agent() has returned last. If a key of this host in etcd has a greater
  /// one, its agent uses other words: a copy of these.
  [[nodiscard]] virtual agent_number last_agent() const = 0;
  /// The numbers of this host's beats: of the last one that etcd is known to have had, and of the
  /// one that may have reached etcd since.
  [[nodiscard]] virtual beat_number confirmed_beat() const = 0;
  [[nodiscard]] virtual beat_number last_beat() const = 0;
  /// Stores `confirmed` as confirmed_beat(), and then draws the next last_beat() at random.
  [[nodiscard]] virtual beat_number next_beat(beat_number confirmed) = 0;
  /// The cluster that this host is or was a member of, as its agents have read it.
  [[nodiscard]] virtual cluster_value cluster() const = 0;
  virtual void set_cluster(const cluster_value& what) = 0;

  // ---- the words of a name ----
  [[nodiscard]] virtual ownership ownership_of(const std::string& name) const = 0;
  /// Compares and swaps. Wakes the clients that wait for a change.
  virtual bool swap_ownership(const std::string& name, ownership before, ownership after) = 0;
  [[nodiscard]] virtual state state_of(const std::string& name) const = 0;
  virtual bool swap_state(const std::string& name, state before, state after) = 0;
  /// True if the name has words. Those of another name are as if they were empty, and are made when
  /// something else is written there.
  [[nodiscard]] virtual bool has_name(const std::string& name) const = 0;
  /// All names that have words.
  [[nodiscard]] virtual std::vector<std::string> names() const = 0;
  /// Calls it with the host lock of the name, taken exclusively, if no client has that lock or
  /// waits for it. Else does nothing.
  virtual void if_unused(const std::string& name, const std::function<void()>& what) = 0;
  /// Takes the words away from names that this host has nothing to do with any more. That may take
  /// several calls. Returns whether it was done.
  virtual bool forget_unused() = 0;

  // ---- the records of names whose home this host is or was ----
  [[nodiscard]] virtual std::optional<record> record_of(const std::string& name) const = 0;
  virtual void store_record(const std::string& name, const record& what) = 0;
  virtual void erase_record(const std::string& name) = 0;
  [[nodiscard]] virtual std::vector<std::string> recorded_names() const = 0;

  // ---- the notes about names whose home's witness this host is or was ----
  [[nodiscard]] virtual std::optional<witness_note> witness_note_of(
      const std::string& name) const = 0;
  virtual void store_witness_note(const std::string& name, const witness_note& what) = 0;
  virtual void erase_witness_note(const std::string& name) = 0;
  [[nodiscard]] virtual std::vector<std::string> witnessed_names() const = 0;
};

}  // namespace lockflight::cluster
