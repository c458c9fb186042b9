// The state machines that a simulation runs: those of src/names/cluster/core, or broken copies of
// them.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "names/cluster/core/acquire.hpp"
#include "names/cluster/core/acquire_events.hpp"
#include "names/cluster/core/agent_events.hpp"
#include "names/cluster/core/words.hpp"

namespace lockflight::cluster::sim {

/// The words of one name among those of a host.
struct words_in_host {
  const std::string* name;
  host_words* all;
  instant ttl = 0;

  [[nodiscard]] instant time_to_live() const { return ttl; }
  [[nodiscard]] incarnation_number incarnation() const { return all->incarnation(); }
  [[nodiscard]] instant deadline() const { return all->deadline(); }
  [[nodiscard]] ownership get_ownership() const { return all->ownership_of(*name); }
  [[nodiscard]] bool swap_ownership(ownership before, ownership after) const {
    return all->swap_ownership(*name, before, after);
  }
  [[nodiscard]] state get_state() const { return all->state_of(*name); }
  [[nodiscard]] bool swap_state(state before, state after) const {
    return all->swap_state(*name, before, after);
  }
};

/// An acquire as the simulation knows it. Each holder that is told of a death puts things right.
template <class Acquire>
class simulated_acquire final : public acquire_events {
 public:
  simulated_acquire(std::string name, mode wanted, host_words& words, instant ttl)
      : name_(std::move(name)), what_(wanted, {&name_, &words, ttl}) {}

  next step(instant now) override { return what_.step(now); }
  void give_up() override { what_.give_up(); }
  void leave(instant now) override {
    // A holder that is not valid may have been stopped since it read the deadline.
    if (what_.is_valid(now)) what_.mark_consistent();
    what_.leave();
  }
  [[nodiscard]] bool give_back() override { return what_.give_back(); }
  [[nodiscard]] bool is_valid(instant now) const override { return what_.is_valid(now); }
  [[nodiscard]] instant loss_time() const override { return what_.loss_time(); }
  [[nodiscard]] token fence() const override { return what_.fence(); }
  [[nodiscard]] bool died() const override { return what_.died(); }

 private:
  std::string name_;
  Acquire what_;
};

struct core_under_test {
  std::unique_ptr<agent_events> (*make_agent)(member_id self, const timing& times,
                                              host_words& words);
  std::unique_ptr<acquire_events> (*make_acquire)(const std::string& name, mode wanted,
                                                  host_words& words, instant ttl);
};

/// The core as it is.
[[nodiscard]] core_under_test intact_core();

}  // namespace lockflight::cluster::sim
