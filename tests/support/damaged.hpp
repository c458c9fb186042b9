// Broken input, made of good input, for tests of parsers.
#pragma once

#include <random>
#include <string>

namespace lockflight::test {

/// `good` with one to four letters changed, left out, or doubled a dozen at a time.
inline std::string damaged(std::string good, std::minstd_rand& random) {
  for (unsigned edits = 1 + random() % 4; edits > 0; --edits) {
    if (good.empty()) good = "x";
    const std::size_t at = random() % good.size();
    switch (random() % 3) {
      case 0:
        good[at] = static_cast<char>(random() % 256);
        break;
      case 1:
        good.erase(at, random() % 8);
        break;
      default:
        good.insert(at, good.substr(random() % good.size(), random() % 12));
    }
  }
  return good;
}

}  // namespace lockflight::test
