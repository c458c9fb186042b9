#include "mpi_preload/window_grant.hpp"

#include "base/round_up.hpp"
#include "mpi_preload/scheme.hpp"

namespace lockflight::mpi_preload {

std::uint32_t words_of_window(const scheme_name& scheme, const window_group& group) {
  return static_cast<std::uint32_t>(
      round_up(memory_of(scheme, group.machine()).words + words_of_observers + words_of_meeting,
               rma::line_words));
}

}  // namespace lockflight::mpi_preload
