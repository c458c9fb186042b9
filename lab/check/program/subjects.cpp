// The list of locks.
#include <utility>

#include "lab/check/check.hpp"
#include "lab/check/program/checked.hpp"

namespace lockflight::check {

const std::vector<subject>& subjects() {
  static const std::vector<subject> all = [] {
    std::vector<subject> made(checked::size);
    [&]<std::size_t... Part>(std::index_sequence<Part...>) {
      (make_subjects<Part, LOCKFLIGHT_PARTS>(made), ...);
    }(std::make_index_sequence<LOCKFLIGHT_PARTS>{});
    return made;
  }();
  return all;
}

}  // namespace lockflight::check
