#include "fabric/libfabric/endpoint.hpp"
#include "lockflight/fabric/libfabric.hpp"

namespace lockflight::libfabric {
namespace {

wired::detail::library library() {
  return {.nodes_variable = "LOCKFLIGHT_LIBFABRIC_NODES",
          .variables = "FI_PROVIDER, LOCKFLIGHT_LIBFABRIC_OPERATIONS",
          .check_variables = [] { static_cast<void>(detail::wanted_operations()); },
          .open =
              [](bool wakes) {
                return std::make_unique<detail::endpoint>(detail::wanted_operations(), wakes);
              }};
}

}  // namespace

environment::environment() : wired::environment(library(), nullptr) {}
environment::environment(const introduction& by) : wired::environment(library(), &by) {}

}  // namespace lockflight::libfabric
