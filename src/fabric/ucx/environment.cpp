#include "fabric/ucx/worker.hpp"
#include "lockflight/fabric/ucx.hpp"

namespace lockflight::ucx {
namespace {

wired::detail::library library() {
  return {.nodes_variable = "LOCKFLIGHT_UCX_NODES",
          .variables = "UCX_ATOMIC_MODE",
          .check_variables = [] {},
          .open = [](bool wakes) { return std::make_unique<detail::worker>(wakes); }};
}

}  // namespace

environment::environment() : wired::environment(library(), nullptr) {}
environment::environment(const introduction& by) : wired::environment(library(), &by) {}

}  // namespace lockflight::ucx
