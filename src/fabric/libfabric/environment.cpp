#include "fabric/libfabric/endpoint.hpp"
#include "lockflight/fabric/libfabric.hpp"

namespace lockflight::libfabric {
namespace {

wired::detail::library library() {
  return {.nodes_variable = "LOCKFLIGHT_LIBFABRIC_NODES",
          .open = [by = detail::wanted_operations()](bool wakes) {
            return std::make_unique<detail::endpoint>(by, wakes);
          }};
}

}  // namespace

environment::environment() : wired::environment(library(), nullptr) {}
environment::environment(const introduction& by) : wired::environment(library(), &by) {}

}  // namespace lockflight::libfabric
