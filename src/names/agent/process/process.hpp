// The agent of one host in one cluster's domain: the state machine of core/ with a network, a
// clock, etcd and the domain file around it.
//
// A single thread runs the state machine, the links and etcd's client. The locks of this host have
// a thread of their own, which only passes events to it.
#pragma once

#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/signal_set.hpp>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "lockflight/domain.hpp"
#include "names/agent/etcd/store.hpp"
#include "names/agent/host/domain_words.hpp"
#include "names/agent/host/host_locks.hpp"
#include "names/agent/link/links.hpp"
#include "names/agent/process/answers.hpp"
#include "names/agent/process/clock_watch.hpp"
#include "names/agent/process/journal.hpp"
#include "names/agent/process/known_members.hpp"
#include "names/agent/process/notes.hpp"
#include "names/agent/process/reports.hpp"
#include "names/agent/process/start_signals.hpp"
#include "names/agent/process/store_identity.hpp"
#include "names/agent/process/ttl_note.hpp"
#include "names/cluster/core/agent.hpp"

namespace lockflight::cluster {

struct agent_options {
  std::string domain;
  etcd_options etcd;
  std::string listen = "0.0.0.0:7411";  ///< HOST:PORT
  std::string advertise;                ///< how others reach it; empty: this host's name
  std::string host;                     ///< the host's name in messages; empty: that of the system
  std::chrono::milliseconds ttl{0};     ///< 0: what the cluster has, or 10 s
  std::chrono::milliseconds keep{600'000};  ///< names that nobody uses; 0: for ever
  domain_options file;                      ///< slots, names, mode and group of the domain file
  std::string state_folder;                 ///< where it keeps what must survive the machine's end
  std::string metrics_file;                 ///< empty: none
};

/// Thrown if the agent cannot begin, or cannot go on, for a reason outside it.
struct agent_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The domain file of this host, which is made if there is none. Throws agent_error if another
/// agent runs, and domain_error.
[[nodiscard]] std::shared_ptr<detail::domain_file> open_file_as_agent(const agent_options& options);

class agent_process {
 public:
  /// Finds out whether the agent may start. Waits for an etcd that does not answer, or that refuses
  /// the password of a file. Throws told_to_end, agent_error, domain_error, etcd_error, bad_entry,
  /// std::invalid_argument or std::runtime_error.
  agent_process(const agent_options& options, const journal& log);
  agent_process(const agent_process&) = delete;
  agent_process& operator=(const agent_process&) = delete;
  ~agent_process();

  /// Returns after SIGTERM or SIGINT, at which the host leaves the cluster, or after SIGHUP, at
  /// which it does not. Throws agent_error for an error that ends the agent.
  void run();

 private:
  // ---- start (process_start.cpp) ----
  void await_etcd(const std::function<void()>& what);
  void start_store();
  void agree_on_ttl();
  [[nodiscard]] std::chrono::milliseconds ttl_of_holders() const;
  void require_ttl_of_holders(std::chrono::milliseconds agreed) const;
  void await_other_clock();
  void start_links();
  void start_answers();
  void start_bell();
  void check_endpoints();
  void check_identity(const etcd_view& view);
  void note_ttl(std::chrono::milliseconds agreed);
  void note_identity(bool is_needed);

  // ---- events (process.cpp) ----
  void handle(const std::function<void(agent& of, instant now, effects& out)>& event);
  void carry_out(const effects& out);
  void lock_taken(const std::string& name);
  void answered(std::uint64_t number, const answer& what,
                const std::shared_ptr<const etcd_view>& view);
  void warn_of_last_epochs();
  void set_timer();
  void await_rings();
  void read_rings();
  void rung(const std::string& name);
  void ring_if_missed();
  void each_second();
  void make_sockets_again();
  void await_signals();
  void make_way();
  void retire();
  void distrust_clock(const std::string& why);
  void end_with(const std::string& why);
  void end();

  const agent_options options_;
  const journal& log_;
  asio::io_context io_;
  std::optional<start_signals> start_signals_;  // until the agent runs
  store_identity_file identity_file_;
  std::optional<store_identity> identity_;  // as it was seen last
  bool was_checked_ = false;                // since this agent started
  bool is_noted_ = false;                   // identity_file_ has identity_
  bool has_warned_of_note_ = false;         // the log says that identity_file_ cannot be written
  std::shared_ptr<detail::domain_file> file_;
  domain_words words_;
  domain_secret secret_{};
  timing times_;
  member_place place_;
  std::optional<agent> core_;
  known_members members_;
  std::string etcd_trouble_;
  agent_counts counts_;
  clock_watch clock_;
  std::optional<std::string> failure_;
  bool retires_ = false;

  // The callbacks of the objects below use the objects above.
  asio::steady_timer timer_{io_};
  std::optional<instant> timer_at_;  // the moment that the timer was set for
  epoch_number warned_of_epoch_ = 0;
  bool has_lost_key_ = false;  // the log says that this host's key was deleted
  asio::steady_timer status_timer_{io_};
  asio::steady_timer retires_until_{io_};
  asio::signal_set signals_{io_};
  asio::posix::stream_descriptor bell_{io_};
  std::optional<links> links_;
  std::optional<host_locks> locks_;
  std::optional<etcd_store> store_;
  std::optional<reports> reports_;
  std::optional<notes> notes_;
  std::optional<answers> answers_;
};

}  // namespace lockflight::cluster
