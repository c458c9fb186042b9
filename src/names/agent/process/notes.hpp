// The notes of names, which the agent keeps in etcd for the programs of its host, so that they
// survive all hosts: until when the work of a name is done, or the units of a semaphore; and the
// value that a holder has published (names/cluster/client/name_notes.hpp). etcd's revision of a
// note is compared at each write, and the token decides which of two holders is the later one.
//
// The domain file of this host has the units that an operator has set for its semaphores, and the
// values that its programs observe or publish; a watch tells the agent of the notes that others
// write. A value that
// lasts with its hold is withdrawn in etcd by the agent of the holder's host, once the holder is
// gone; if that host is gone, the other agents leave the value out of their files.
#pragma once

#include <asio/io_context.hpp>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "names/agent/etcd/client.hpp"
#include "names/agent/etcd/event_loop.hpp"
#include "names/agent/etcd/watch.hpp"
#include "names/agent/host/domain_words.hpp"
#include "names/agent/process/journal.hpp"
#include "names/agent/process/known_members.hpp"
#include "names/agent/process/questions.hpp"

namespace lockflight::cluster {

/// The value of a name, as etcd has it.
struct value_note {
  detail::stored_value what;
  identity host;  ///< on which the holder was that has published it
};

struct note_sources {
  const detail::domain_file& file;
  domain_words& words;
  const known_members& members;
  etcd_client& etcd;
  const etcd_options& watched;  ///< the etcd whose values are watched
  std::string domain;
  const journal& log;
};

/// The loop must not run after this object is destroyed.
class notes {
 public:
  notes(asio::io_context& io, note_sources from);

  /// From now on the domain file has what others note.
  void begin_watch();
  /// True if this object has answered the question, or will do so.
  [[nodiscard]] bool answer(const std::vector<std::string>& question, questions::reply to);
  /// Withdraws the values whose holders are gone.
  void each_second();

 private:
  void answer_in_turn(const std::vector<std::string>& question, questions::reply to);
  [[nodiscard]] asio::awaitable<std::string> answer_to(std::vector<std::string> question);
  [[nodiscard]] asio::awaitable<std::optional<value_note>> read_value(std::string name);
  [[nodiscard]] asio::awaitable<std::vector<std::string>> ask_value(
      const std::vector<std::string>& question);
  [[nodiscard]] asio::awaitable<std::string> put_value(std::string name, value_note what);
  void changed(const etcd_changes& what);
  void read_again(const std::string& note);
  [[nodiscard]] asio::awaitable<void> read_and_keep(std::string note);
  [[nodiscard]] asio::awaitable<void> learn_units_of(std::string name);
  void keep(const std::string& name, const std::optional<value_note>& there);
  void make_room(const std::string& name);
  void store(const std::string& name, const detail::stored_value& what);
  [[nodiscard]] bool is_over_here(const value_note& value, std::uint64_t token) const;
  [[nodiscard]] bool is_over(const std::string& name, const value_note& value) const;
  [[nodiscard]] asio::awaitable<void> withdraw_if_over(std::string name);
  [[nodiscard]] bool has_host(const value_note& what) const;
  [[nodiscard]] bool is_own(const value_note& what) const {
    return what.host.id == from_.words.self();
  }

  asio::io_context& io_;
  note_sources from_;
  in_turn requests_{io_};
  std::map<std::string, value_note> kept_;  // the values that the domain file is to have
  std::set<std::string> unread_;            // notes that have changed, and could not be read
  std::set<std::string> read_again_;        // notes that are about to be read
  std::set<std::string> withdrawn_;         // names whose values are about to be withdrawn
  std::optional<etcd_watch> watch_;
};

}  // namespace lockflight::cluster
