// The words of a host's domain file, in memory.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "names/cluster/core/words.hpp"

namespace lockflight::cluster::sim {

/// The agent dies before a write to the words.
struct agent_crash {};

class memory final : public host_words {
 public:
  /// Called after a word of the name has changed.
  std::function<void(const std::string& name)> on_change;
  /// Called after the deadline or the incarnation has changed.
  std::function<void()> on_header;
  /// Called after a record has been stored.
  std::function<void(const std::string& name, const record& what)> on_record;
  /// True if no client has the host lock of the name or waits for it.
  std::function<bool(const std::string& name)> is_lock_free = [](const std::string&) {
    return true;
  };
  /// Takes over the words of another host, or those that the same host had some time ago.
  void copy(const memory& of);

  /// Draws a number that no other agent of the cluster has.
  std::function<beat_number()> draw_number = [drawn = beat_number{0}]() mutable { return ++drawn; };
  /// 0: no crash; else the agent dies before the write that counts this to 0.
  int crash_in = 0;
  bool is_agent_running = false;

  [[nodiscard]] incarnation_number incarnation() const override { return header_.incarnation; }
  void set_incarnation(incarnation_number now) override;
  [[nodiscard]] instant deadline() const override { return header_.deadline; }
  void set_deadline(instant at) override;
  [[nodiscard]] revision registered() const override { return header_.registered; }
  void set_registered(revision at) override;
  [[nodiscard]] agent_number next_agent() override { return ++header_.agents; }
  [[nodiscard]] agent_number last_agent() const override { return header_.agents; }
  [[nodiscard]] beat_number confirmed_beat() const override { return header_.confirmed_beat; }
  [[nodiscard]] beat_number last_beat() const override { return header_.last_beat; }
  [[nodiscard]] beat_number next_beat(beat_number confirmed) override;

  [[nodiscard]] cluster_value cluster() const override { return header_.cluster; }
  void set_cluster(const cluster_value& what) override;

  [[nodiscard]] ownership ownership_of(const std::string& name) const override;
  bool swap_ownership(const std::string& name, ownership before, ownership after) override;
  [[nodiscard]] state state_of(const std::string& name) const override;
  bool swap_state(const std::string& name, state before, state after) override;
  [[nodiscard]] bool has_name(const std::string& name) const override {
    return words_.contains(name);
  }
  [[nodiscard]] std::vector<std::string> names() const override;
  void if_unused(const std::string& name, const std::function<void()>& what) override;
  bool forget_unused() override;

  [[nodiscard]] std::optional<record> record_of(const std::string& name) const override;
  void store_record(const std::string& name, const record& what) override;
  void erase_record(const std::string& name) override;
  [[nodiscard]] std::vector<std::string> recorded_names() const override;

  [[nodiscard]] std::optional<witness_note> witness_note_of(const std::string& name) const override;
  void store_witness_note(const std::string& name, const witness_note& what) override;
  void erase_witness_note(const std::string& name) override;
  [[nodiscard]] std::vector<std::string> witnessed_names() const override;

 private:
  struct words {
    ownership owned;
    state is;
  };
  void count_write();

  struct header {
    incarnation_number incarnation = 0;
    instant deadline = 0;
    revision registered = 0;
    agent_number agents = 0;
    beat_number confirmed_beat = 0;
    beat_number last_beat = 0;
    cluster_value cluster{};
  };
  header header_;
  std::map<std::string, words> words_;
  std::map<std::string, record> records_;
  std::map<std::string, witness_note> witness_notes_;
};

}  // namespace lockflight::cluster::sim
