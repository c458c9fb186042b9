// The place that a window gets in a group, and the first rank's offer of one.
#pragma once

#include <cstdint>
#include <memory>

#include "mpi_preload/settings.hpp"
#include "mpi_preload/window_group.hpp"

namespace lockflight::mpi_preload {

class window;

/// The locks of a window, and their place: the same on all ranks.
struct window_grant {
  std::shared_ptr<window_group> group;
  window_place at;
  scheme_message scheme;  ///< bytes: a name takes memory, which one rank alone may lack
};

/// The first rank's offer for a window, made before it knows whether all ranks want the drop-in: a
/// place in a group that is there, so that a window needs no other collective call to find it.
struct window_offer {
  [[nodiscard]] bool is_one() const { return at.serial != 0; }

  window_group::name called{};
  window_place at{};
  scheme_message scheme{};
};
// An offer is sent as numbers of 64 bits.
static_assert(sizeof(window_offer) % sizeof(std::uint64_t) == 0);

/// Deletes a window, whose type is complete in window.hpp only: the groups keep windows that have
/// ended, and know nothing else of them.
struct delete_window {
  void operator()(window* one) const;
};
using owned_window = std::unique_ptr<window, delete_window>;

/// How many words of each rank's segment a window with these locks takes.
[[nodiscard]] std::uint32_t words_of_window(const scheme_name& scheme, const window_group& group);

}  // namespace lockflight::mpi_preload
