// A client's acquire of one name, from the moment at which it has the host lock, and its release
// (design, section 12, "A client's acquire").
//
// Each step() is at most one access to the words that others see. Between two steps anything may
// happen: the client may be stopped, the deadline may pass, the host may become another
// incarnation.
#pragma once

#include <string>
#include <utility>

#include "cluster/core/acquire_events.hpp"
#include "cluster/core/words.hpp"

namespace lockflight::cluster {

class acquire final : public acquire_events {
 public:
  acquire(std::string name, mode wanted, host_words& words)
      : name_(std::move(name)), wanted_(wanted), words_(words) {}

  next step(instant now) override;
  void give_up() override;
  void leave() override;
  [[nodiscard]] bool is_valid(instant now) const override;
  [[nodiscard]] token fence() const override { return held_.last; }
  [[nodiscard]] bool died() const override { return died_; }

 private:
  enum class at : std::uint8_t { ownership, state, deadline, incarnation, entry, inside };

  next read_ownership();
  next wait(const ownership& seen);
  next enter();

  std::string name_;
  mode wanted_;
  host_words& words_;
  at at_ = at::ownership;
  incarnation_number incarnation_ = 0;  // of the word that suffices
  state before_;                        // as it was read
  state held_;                          // as an exclusive holder has written it
  bool died_ = false;
};

}  // namespace lockflight::cluster
