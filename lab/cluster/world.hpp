// A simulated cluster: hosts with clocks, words, agents and clients, the links between them, and
// etcd. One queue of events, one source of random numbers: a plan always makes the same history.
//
// world.cpp has the events, the hosts and the faults, world_agents.cpp what agents ask for, and
// world_clients.cpp what clients do.
#pragma once

#include <fmt/format.h>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "lab/cluster/core_under_test.hpp"
#include "lab/cluster/etcd.hpp"
#include "lab/cluster/host_clock.hpp"
#include "lab/cluster/host_lock.hpp"
#include "lab/cluster/memory.hpp"
#include "lab/cluster/observer.hpp"
#include "lab/cluster/plan.hpp"
#include "lab/cluster/random.hpp"

namespace lockflight::cluster::sim {

/// The rules that it judges, besides those of the observer:
/// - expelled: no host is taken off the members as long as all hosts and links are well.
/// - progress: when the faults are over, all hosts are members, and all clients get what they wait
///   for. If one cut stays, all but one host.
/// - leaving: a host that is to leave, when the faults have been over for a while, does so within
///   leaves_within. The last member stays if it knows of a death, or of a doubt about one.
/// - copied: of a host and its copy, the first that renews twice, or with a number that it has
/// drawn
///   since the copying, is the only one that renews from then on. The other one ends when it finds
///   that out, and no other agent ends because of a copy.
/// - cluster: the cluster keeps its number, also if its key is deleted, while a host is up that
///   knows the number.
/// - consistent: what an operator says after the faults ends all doubt.
class world {
 public:
  /// With `trace`, each event that a reader may want is written there as a line.
  world(const plan& what, const core_under_test& core, std::vector<std::string>* trace);
  world(const world&) = delete;
  world& operator=(const world&) = delete;

  /// The work that etcd and the links have had so far.
  struct load {
    std::uint64_t requests = 0;    ///< that etcd has got
    std::uint64_t writes = 0;      ///< of them those that it has carried out, and that write
    std::uint64_t bytes_read = 0;  ///< in its answers, by `size_of`
    std::uint64_t messages = 0;    ///< between two agents, without pings
  };

  /// Throws violation.
  void run();
  /// Runs to that moment. Throws violation, but judges no progress.
  void run_until(true_time end);
  /// How long an answer of etcd with these keys is. Asked after each change of the epoch.
  std::function<std::uint64_t(const snapshot& keys)> size_of = [](const snapshot&) { return 0; };
  [[nodiscard]] const load& done() const { return load_; }
  /// The present epoch; null before the first.
  [[nodiscard]] const epoch_value* epoch() const {
    return etcd_.now()->epoch ? &etcd_.now()->epoch->what : nullptr;
  }
  [[nodiscard]] std::uint64_t entries() const { return observer_.entries(); }
  [[nodiscard]] std::uint64_t events() const { return events_; }
  /// When the last epoch was made, and when the last host moved to it.
  [[nodiscard]] true_time epoch_made_at() const { return epoch_made_at_; }
  [[nodiscard]] true_time last_move_at() const { return last_move_at_; }

 private:
  using action = std::function<void()>;
  struct event {
    true_time at;
    std::uint64_t order;
    action what;
  };
  enum class doing : std::uint8_t { idle, queued, stepping, waiting, inside, leaving };
  struct client {
    int number = 0;          // no other client has it, not a dead one either
    std::uint64_t life = 0;  // changes when what is scheduled for it is void
    doing now = doing::idle;
    std::string name{};
    mode wanted = mode::none;
    std::unique_ptr<acquire_events> acquiring{};
    true_time since = 0;  // has waited
    true_time stopped_until = 0;
    int dies_after = -1;  // steps
    int stops_after = -1;
    true_time stops_for = 0;
  };
  struct host {
    int number = 0;
    member_id id = 0;
    host_clock clock{};
    bool is_up = false;
    std::uint64_t life = 0;
    std::unique_ptr<memory> words{};
    std::unique_ptr<agent_events> agent{};
    std::uint64_t agent_life = 0;
    true_time agent_down_for = 0;
    true_time wakes_at = -1;
    int stops = 0;         // faults that stop the host
    int agent_stops = 0;   // faults that stop the agent
    bool retires = false;  // the agent
    std::deque<action> agent_inbox{};
    std::map<std::string, host_lock> locks{};
    std::vector<client> clients{};
    int etcd_cuts = 0;
    int etcd_silences = 0;
    int late_requests = 0;
    int stale_reads = 0;
    bool was_copied = false;      // since it started
    host* original = nullptr;     // of a copy
    beat_number last_common = 0;  // that this host and its copy know
    int renewals = 0;             // since the copying, with that number
    // Of this host and its copy the one that was the first to renew twice, or with a number of its
    // own.
    const host* renewing = nullptr;
  };
  struct link {
    int cuts = 0;
    true_time last_delivery = 0;
    std::deque<action> held{};
  };

  [[nodiscard]] true_time leaves_within() const { return 3 * plan_.times.ttl; }

  // ---- events ----
  void at(true_time when, action what);
  void after(true_time delay, action what) { at(now_ + delay, std::move(what)); }
  template <class... Args>
  void say(fmt::format_string<Args...> how, Args&&... args) {
    if (trace_ != nullptr) write_line(fmt::format(how, std::forward<Args>(args)...));
  }
  void write_line(const std::string& text);

  // ---- hosts ----
  void start_host(host& h);
  void kill_host(host& h);
  void set_stopped(host& h, int by);
  [[nodiscard]] bool is_calm() const;
  void check_progress() const;
  [[nodiscard]] bool has_left(const host& h) const { return h.retires && !h.agent; }
  void check_leaving(const host& h) const;
  void check_doubt() const;
  void epoch_written(const epoch_value& before, const epoch_value& after);
  void check_reason_to_take_off(const identity& who) const;

  // ---- faults ----
  void apply(const fault& what, int by);
  void lose_key(const host& h, int which);
  void apply_cut(const fault& what, int by);
  void strike_client(const fault& what);
  void cut(int from, int to, int by);
  void copy_host(host& h);
  void end_copies(const host& h);
  void ends_as_copied(host& h);
  void check_copies(host& h, const transaction& done);
  void leader_returns();

  // ---- agents ----
  void start_agent(host& h);
  void kill_agent(host& h);
  void retire_agent(host& h);
  void set_agent_stopped(host& h, int by);
  void end_doubt(host& h);
  void drain(host& h);
  void with_agent(host& h, std::uint64_t life, action what);
  void run_agent(host& h, const std::function<void(agent_events&, instant, effects&)>& what);
  void carry_out(host& h, effects& out);
  void take_if_free(host& h, const wanted_host_lock& what);
  void send(host& from, const message& what);
  void deliver(int from, int to, action what);
  void after_hint(host& h);
  void submit(host& h, const submitted& what);
  void arrive_at_etcd(host& h, std::uint64_t life, const submitted& what);
  void answer_from_etcd(host& h, std::uint64_t life, std::uint64_t number, const answer& what);
  void schedule_wake(host& h);
  void keep_alive(int number);

  // ---- clients ----
  void new_client(host& h, int index);
  void think(host& h, int index);
  void begin(host& h, int index, mode wanted);
  void later(host& h, int index, true_time delay, void (world::*what)(host&, int));
  void admit(host& h, const std::string& name);
  void release_lock(host& h, const std::string& name, host_lock::user who);
  void step(host& h, int index);
  void wake(host& h, const std::string& name);
  void wake_all(host& h);
  void hold(host& h, int index);
  void leave(host& h, int index);
  void give_back(host& h, int index);
  void ring_and_release(host& h, int index);
  void release(host& h, int index);
  [[nodiscard]] bool is_struck(host& h, int index, void (world::*what)(host&, int));
  void ring(host& h, const std::string& name);
  void time_out(host& h, int index);
  void kill_client(host& h, int index);
  [[nodiscard]] true_time length_of_section();

  plan plan_;
  core_under_test core_;
  std::vector<std::string>* trace_;
  random_numbers random_;
  true_time now_ = 0;
  true_time epoch_made_at_ = 0;
  true_time last_move_at_ = 0;
  std::uint64_t events_ = 0;
  std::uint64_t order_ = 0;
  std::vector<event> queue_;  // a heap
  std::vector<std::unique_ptr<host>> hosts_;
  std::vector<std::unique_ptr<host>> copies_;  // of hosts; no copy has clients
  std::vector<std::vector<link>> links_;
  etcd etcd_;
  observer observer_;
  std::vector<std::string> names_;
  std::set<identity> left_;  // the hosts that have taken their own keys away
  int numbers_of_clients_ = 0;
  int generations_ = 0;
  beat_number numbers_of_beats_ = 0;
  std::uint64_t cluster_ = 0;
  load load_;
  std::uint64_t size_ = 0;  // of an answer with the present keys
  int faults_now_ = 0;
  bool doubt_was_ended_ = false;  // after the faults
  bool all_were_well_ = true;     // no host and no link has failed until now
  int no_leader_ = 0;
  int no_hints_ = 0;
  int slow_ = 0;
  std::deque<action> etcd_backlog_;
};

}  // namespace lockflight::cluster::sim
