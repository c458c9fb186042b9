#include "tests/names/deaths/locks.hpp"

#include "lockflight/rma/assert.hpp"
#include "names/locks/kinds.hpp"

namespace lockflight::test {

const std::vector<std::string>& kinds() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> names;
    for (const auto& kind : detail::domain_kinds()) names.emplace_back(kind.about.name);
    rma::ensure(names.size() <= most_locks, "there is room for all kinds");
    return names;
  }();
  return all;
}

const std::string& kind_of(int lock) { return kinds()[static_cast<std::size_t>(lock)]; }

int lock_count() { return static_cast<int>(kinds().size()); }

named_lock open_lock(const domain& in, int lock) {
  return {in, "a " + kind_of(lock), named_lock_options{.kind = kind_of(lock)}};
}

}  // namespace lockflight::test
