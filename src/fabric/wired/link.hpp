// The common part of the links of all transports: messages that have come, waiting, and noticing
// that a rank is gone.
#pragma once

#include <cstdint>

#include "fabric/wired/world.hpp"

namespace lockflight::wired::detail {

class link : public fabric::network {
 public:
  [[nodiscard]] bool try_receive(rma::message& got) override;
  /// Throws run_failed if a rank is gone.
  void progress() override;

 protected:
  link(world& in, bool patient);

  /// Serves other ranks until `is_done()`, so that two ranks that wait for each other's answers
  /// both proceed.
  template <class F>
  void wait_until(F is_done) {
    for (unsigned steps = 0; !is_done(); ++steps) step_while_waiting(steps);
  }
  [[nodiscard]] envelope sealed(const rma::message& m) const { return {run_, m.from, m.body}; }

  world& in_;

 private:
  void step_while_waiting(unsigned steps);

  bool patient_;
  std::int64_t run_;
  std::uint32_t steps_until_check_ = 1;
  std::uint64_t checked_at_ = 0;  // ns
};

}  // namespace lockflight::wired::detail
