// Compiled as C++17, where it must not compile, and as C++20.
#include <lockflight/lockflight.hpp>
