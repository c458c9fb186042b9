// Judges the history of a cluster (docs/cluster.md, "What is promised"). It sees all hosts in true
// time.
//
// The rules, for each name:
// - mutual exclusion: of two holders that are valid at one moment, both are shared. A holder is
//   valid if its own check says so, by the clock of its host.
// - token: the token of a valid exclusive entry is greater than those of all entries before. An
//   entry that is not valid has a smaller one than a valid holder.
// - died: while an exclusive section is open that its holder, valid at the time, did not leave,
//   each valid holder is told. An exclusive holder that leaves completes it.
// - loss: when a valid holder enters, each other one that is inside, unless both share, was told of
//   its loss a tenth of a time to live before, by the clock of its host.
// - false alarm: a holder is told only if that is so, or if a host was taken off the members that
//   owned the name exclusively or was its home.
//
// When an operator ends doubt, sections of holders that are lost count as put right: the next
// holder may be told, and may not. Where nothing is in doubt the statement changes nothing.
//
// The world judges more: expelled, progress, leaving, and consistent (world.hpp).
#pragma once

#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "lab/cluster/host_clock.hpp"
#include "names/cluster/core/acquire_events.hpp"
#include "names/cluster/core/terms.hpp"

namespace lockflight::cluster::sim {

struct violation : std::runtime_error {
  violation(std::string rule, const std::string& what)
      : std::runtime_error(rule + ": " + what), property(std::move(rule)) {}
  std::string property;
};

class observer {
 public:
  struct holder {
    int client;
    mode as;
    const acquire_events* what;
    const host_clock* clock;
    identity of{};                     ///< the holder's host
    instant loss_time = 0;             ///< as the header was last
    std::optional<instant> told = {};  ///< when it was told

    [[nodiscard]] bool is_valid(true_time now) const { return what->is_valid(clock->at(now)); }
  };

  explicit observer(instant ttl) : ttl_(ttl) {}

  void entered(const std::string& name, holder who, true_time now);
  /// The holder leaves as it should. `calm`: no change of membership is under way.
  void leaves(const std::string& name, int client, true_time now, bool calm);
  void dies_inside(const std::string& name, int client);
  /// A false alarm is allowed until an exclusive section is completed in calm.
  void allow_alarm(const std::string& name) { of_name_[name].may_be_told = true; }
  /// An operator ends doubt, while these are the members.
  void end_doubt(const epoch_value& now);
  /// Deadlines have moved: holders that were not valid may be again.
  void check_all(true_time now);

  [[nodiscard]] std::uint64_t entries() const { return entries_; }

 private:
  struct history {
    std::vector<holder> inside;
    token greatest;           // of all entries
    std::optional<int> open;  // the client whose exclusive section is not completed
    bool may_be_told = false;
  };

  static void check_exclusion(const std::string& name, const history& of, true_time now);
  void tell_losses(history& of, true_time now) const;
  void check_told(const std::string& name, const history& of, const holder& who,
                  true_time now) const;
  void enter_exclusively(const std::string& name, history& of, const holder& who, bool valid,
                         true_time now);

  instant ttl_;
  std::map<std::string, history> of_name_;
  std::uint64_t entries_ = 0;
};

}  // namespace lockflight::cluster::sim
