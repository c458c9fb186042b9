// Work that a test does only in a long run.
#pragma once

#include <cstdlib>

namespace lockflight::test {

/// True if `./dev test --all` asks for all of it. Otherwise a test that takes long does less of the
/// same.
[[nodiscard]] inline bool long_tests() { return std::getenv("LOCKFLIGHT_LONG_TESTS") != nullptr; }

}  // namespace lockflight::test
