// The sanitizer that this binary is built with.
#pragma once

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define LOCKFLIGHT_TEST_TSAN 1
#elif __has_feature(address_sanitizer)
#define LOCKFLIGHT_TEST_ASAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define LOCKFLIGHT_TEST_TSAN 1
#elif defined(__SANITIZE_ADDRESS__)
#define LOCKFLIGHT_TEST_ASAN 1
#endif

namespace lockflight::test {

#if defined(LOCKFLIGHT_TEST_TSAN)
constexpr bool under_tsan = true;
#else
constexpr bool under_tsan = false;
#endif
#if defined(LOCKFLIGHT_TEST_ASAN)
constexpr bool under_asan = true;
#else
constexpr bool under_asan = false;
#endif
constexpr bool under_sanitizer = under_tsan || under_asan;

}  // namespace lockflight::test
