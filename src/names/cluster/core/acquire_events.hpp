// The steps of a client while it acquires, holds and releases a name. The simulation knows an
// acquire by this interface alone, so that it can run broken ones.
#pragma once

#include "names/cluster/core/terms.hpp"

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
  /// Before a holder releases the host lock. A holder that is still valid says that things are
  /// right.
  virtual void leave(instant now) = 0;
  /// After leave(): gives the name back if another host wants it. True: the agent has to be rung.
  [[nodiscard]] virtual bool give_back() = 0;

  // ---- of a holder ----
  /// True if this holder is certainly alone, by the host's clock.
  [[nodiscard]] virtual bool is_valid(instant now) const = 0;
  /// When it is told that its hold is lost, unless the agent renews before.
  [[nodiscard]] virtual instant loss_time() const = 0;
  [[nodiscard]] virtual token fence() const = 0;  ///< of an exclusive holder
  [[nodiscard]] virtual bool died() const = 0;    ///< the last exclusive holder died inside
};

}  // namespace lockflight::cluster
