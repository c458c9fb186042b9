// A client's acquire of one name, from the moment at which it has the host lock, and its release
// (design, section 12, "A client's acquire").
//
// Each step() is at most one access to the words that others see. Between two steps anything may
// happen: the client may be stopped, the deadline may pass, the host may become another
// incarnation.
#pragma once

#include <optional>
#include <string>

#include "cluster/core/words.hpp"

namespace lockflight::cluster {

class acquire_events {
 public:
  enum class next : std::uint8_t {
    step,   ///< step() again
    rings,  ///< the same, and the agent has to be rung
    waits,  ///< step() again when a word of the name, the header or the deadline has changed
    holds,
  };

  acquire_events() = default;
  acquire_events(const acquire_events&) = delete;
  acquire_events& operator=(const acquire_events&) = delete;
  virtual ~acquire_events() = default;

  /// The client has the host lock, in the mode that it wants.
  virtual next step(instant now) = 0;
  /// Before the client that gives up releases the host lock.
  virtual void give_up() = 0;
  /// Before a holder releases the host lock.
  virtual void leave() = 0;

  // ---- of a holder ----
  /// Whether this holder is certainly alone, by the host's clock.
  [[nodiscard]] virtual bool is_valid(instant now) const = 0;
  [[nodiscard]] virtual token fence() const = 0;  ///< of an exclusive holder
  [[nodiscard]] virtual bool died() const = 0;    ///< the last exclusive holder died inside
};

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
