// Says in one line what an older standard of C++ would say in a thousand. The headers that programs
// begin with include this one first.
#pragma once

#if __cplusplus < 202002L
#error "lockflight needs C++20: compile with -std=c++20 or later"
// A compiler goes on after #error, and ends at a file that is missing.
#include <lockflight_needs_a_later_standard>
#endif
