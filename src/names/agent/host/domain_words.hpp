// The words of a host in its domain file, as the agent's state machines see them.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "names/agent/host/records.hpp"
#include "names/cluster/client/words.hpp"
#include "names/cluster/core/words.hpp"
#include "names/locks/attachment.hpp"
#include "names/locks/value.hpp"

namespace lockflight::cluster {

class domain_words final : public host_words {
 public:
  /// For one thread, which uses a slot of the domain. Throws domain_error, std::runtime_error.
  explicit domain_words(std::shared_ptr<detail::domain_file> file);

  /// The host's number among all, made at random with the file.
  [[nodiscard]] member_id self() const { return header().member; }
  /// How many names this host owns. Goes through all.
  [[nodiscard]] std::size_t names_owned() const;
  [[nodiscard]] std::size_t names_at_home() const { return records_.count(); }
  /// True if the deadline that is there is one of another clock than this process's. `ttl` is how
  /// far a deadline is ahead at most.
  [[nodiscard]] bool has_deadline_of_other_clock(instant ttl) const;
  /// True if the deadline is ahead, by this process's clock.
  [[nodiscard]] bool has_deadline_ahead() const;
  /// From now on the deadline is a moment of this process's clock. If the deadline that is there is
  /// one of another clock, no holder is valid any more, and the host becomes a new member. To be
  /// called before the agent reads the keys.
  void begin_with_own_clock(instant ttl);
  /// True if a client could not ring since this was asked last.
  [[nodiscard]] bool take_missed_rings() { return header().missed_rings.exchange(0) != 0; }
  /// Clients that wait read the deadline again.
  void wake_clients();

  [[nodiscard]] incarnation_number incarnation() const override { return header().incarnation; }
  void set_incarnation(incarnation_number now) override { header().incarnation = now; }
  [[nodiscard]] instant deadline() const override { return header().deadline; }
  /// Watchers of losses sleep until the deadline that they know; an earlier one wakes them.
  void set_deadline(instant at) override {
    if (header().deadline.exchange(at) > at) file_->tell_of_change();
  }
  [[nodiscard]] revision registered() const override { return header().registered; }
  void set_registered(revision at) override { header().registered = at; }
  [[nodiscard]] agent_number next_agent() override { return ++header().agents; }
  [[nodiscard]] agent_number last_agent() const override { return header().agents; }
  [[nodiscard]] beat_number confirmed_beat() const override { return header().confirmed_beat; }
  [[nodiscard]] beat_number last_beat() const override { return header().last_beat; }
  [[nodiscard]] beat_number next_beat(beat_number confirmed) override;
  [[nodiscard]] cluster_value cluster() const override {
    return {header().cluster, header().recoveries};
  }
  void set_cluster(const cluster_value& what) override {
    header().recoveries = what.recoveries;
    header().cluster = what.id;
  }

  [[nodiscard]] ownership ownership_of(const std::string& name) const override;
  bool swap_ownership(const std::string& name, ownership before, ownership after) override;
  [[nodiscard]] state state_of(const std::string& name) const override;
  bool swap_state(const std::string& name, state before, state after) override;
  [[nodiscard]] bool has_name(const std::string& name) const override {
    return find(name) != nullptr;
  }
  [[nodiscard]] std::vector<std::string> names() const override;
  void if_unused(const std::string& name, const std::function<void()>& what) override;
  bool forget_unused() override;

  [[nodiscard]] std::optional<record> record_of(const std::string& name) const override {
    return records_.find(name);
  }
  void store_record(const std::string& name, const record& what) override {
    records_.store(name, what);
  }
  void erase_record(const std::string& name) override { records_.erase(name); }
  [[nodiscard]] std::vector<std::string> recorded_names() const override {
    return records_.names();
  }

  [[nodiscard]] std::optional<witness_note> witness_note_of(
      const std::string& name) const override {
    return records_.find_witness_note(name);
  }
  void store_witness_note(const std::string& name, const witness_note& what) override {
    records_.store_witness_note(name, what);
  }
  void erase_witness_note(const std::string& name) override { records_.erase_witness_note(name); }
  [[nodiscard]] std::vector<std::string> witnessed_names() const override {
    return records_.witnessed_names();
  }

  // ---- values that holders have published (names/locks/value.hpp) ----

  /// The names whose values this host's file has.
  [[nodiscard]] std::vector<std::string> names_with_values() const;
  [[nodiscard]] bool has_value(const std::string& name) const;
  /// From now on the file has the value of that name.
  void make_room_for_value(const std::string& name);
  /// Stores the value, and wakes the clients that wait for it, if the file is to have it. Throws
  /// domain_error.
  void store_value(const std::string& name, const detail::stored_value& what);
  /// True if a client of this host holds the name alone, with that token.
  [[nodiscard]] bool is_held_with(const std::string& name, std::uint64_t token) const;

 private:
  struct place {
    std::uint32_t line = 0;
    std::uint64_t serial = 0;
    const std::atomic<rma::word>* serial_now = nullptr;
  };

  [[nodiscard]] detail::cluster_header& header() const { return file_->cluster(); }
  /// Null if the domain has no lock of that name: then its words are as if they were empty.
  [[nodiscard]] const place* find(const std::string& name) const;
  /// The same; the lock is made if there is none, as a client that asks for nothing else makes it.
  [[nodiscard]] const place& make(const std::string& name);
  [[nodiscard]] detail::words_in_file words_at(const place& where) const {
    return {*file_, where.line};
  }

  std::shared_ptr<detail::domain_file> file_;
  std::shared_ptr<detail::attachment> me_;
  records records_;
  mutable std::unordered_map<std::string, place> places_;  // the names that were found before
};

}  // namespace lockflight::cluster
