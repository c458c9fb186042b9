// The answers of an agent to programs of its host, and to other agents: who uses a name, whether
// the work of a name is done, and the agent's own status.
#pragma once

#include <asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "names/agent/etcd/client.hpp"
#include "names/agent/etcd/event_loop.hpp"
#include "names/agent/link/links.hpp"
#include "names/agent/process/journal.hpp"
#include "names/agent/process/known_members.hpp"
#include "names/agent/process/questions.hpp"

namespace lockflight::cluster {

/// The sources of an agent's answers.
struct answer_sources {
  const detail::domain_file& file;
  const std::string& host;  ///< this one's name
  const known_members& members;
  links& others;
  etcd_client& etcd;
  const journal& log;
  std::function<std::string()> status;  ///< as JSON
  std::function<void()> end_doubt;
  std::function<bool()> is_cut_off;  ///< `members` may lack hosts that have come since
};

class answers {
 public:
  /// Listens to programs of this host. Throws domain_error.
  answers(asio::io_context& io, answer_sources from);

  /// The answer to another agent.
  [[nodiscard]] std::string asked(const std::string& line);
  /// Another agent has answered a question of this one's.
  void told(member_id by, std::uint64_t number, const std::string& lines);
  /// Reads the notes of this host's semaphores, whose units somebody may have set, unless that was
  /// done since the key `changes` was written in that revision. It is done again at the next call
  /// if etcd does not answer.
  void learn_units(revision changes);
  /// See questions.
  void listen_again() { questions_.listen_again(); }

 private:
  /// Answers of other agents to one question.
  struct gathering {
    questions::reply to;
    std::set<member_id> awaited;
    std::vector<std::string> silent;  // hosts
    std::string lines;
    std::optional<asio::steady_timer> timer;
  };

  void answer(const std::vector<std::string>& question, questions::reply to);
  void gather_uses(const std::vector<std::string>& question, questions::reply to);
  void finish_gathering(std::uint64_t number);
  void answer_about_work(const std::vector<std::string>& question, questions::reply to);
  [[nodiscard]] asio::awaitable<void> learn_units_of(std::string name);

  asio::io_context& io_;
  answer_sources from_;
  std::map<std::uint64_t, gathering> gatherings_;  // by the number of the question
  std::uint64_t asked_ = 0;                        // the number of the last question
  revision units_learned_ = 0;  // in which `changes` was, when units were learned
  in_turn notes_{io_};          // requests to etcd about the notes of names
  questions questions_;
};

}  // namespace lockflight::cluster
