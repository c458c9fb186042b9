// The base of the decorators of ports.
#pragma once

#include "lockflight/rma/forwarding.hpp"

namespace lockflight::fabric {

/// A decorator derives from it and hides the operations that it changes.
template <rma::port Inner>
class decorator : public rma::forwarding<Inner> {
 public:
  explicit decorator(Inner& inner)
      : rma::forwarding<Inner>(inner),
        node_of_(inner.machine().nodes_of_ranks().data()),
        my_node_(node_of_[inner.rank()]) {}

 protected:
  [[nodiscard]] bool on_my_node(rma::rank_t other) const { return node_of_[other] == my_node_; }

 private:
  const int* node_of_;  // [rank]; one load, since every posted operation asks
  int my_node_;
};

}  // namespace lockflight::fabric
