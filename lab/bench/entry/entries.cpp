#include "lab/bench/entry/entry.hpp"

#include <utility>
#include <vector>

#include "lab/bench/entry/measured.hpp"

namespace lockflight::bench {

std::span<const lock_entry> entries() {
  static const std::vector<lock_entry> all = [] {
    std::vector<lock_entry> made(measured::size);
    [&]<std::size_t... Part>(std::index_sequence<Part...>) {
      (make_entries<Part, LOCKFLIGHT_PARTS>(made), ...);
      (make_all_anywhere<Part, LOCKFLIGHT_PARTS>(made), ...);
    }(std::make_index_sequence<LOCKFLIGHT_PARTS>{});
    return made;
  }();
  return all;
}

}  // namespace lockflight::bench
