// Assertions: nothing while they hold, one line and the end of the process when one does not, in
// every build.
#include "lockflight/rma/assert.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

namespace lockflight::test {
namespace {

constexpr int checked_at_compile_time(int n) {
  rma::ensure(n > 0, "a number above zero");
  return n;
}
static_assert(checked_at_compile_time(1) == 1);

struct listener : rma::assertion_listener {
  virtual ~listener() = default;
  void violated(const char* what, const std::source_location& where) override {
    throw std::logic_error(std::string(rma::file_name_of(where)) + ": " + what);
  }
  template <class F>
  void during(F f) {
    const listening here(*this);
    f();
  }
};

TEST(assertion, that_holds_does_nothing) { rma::ensure(checked_at_compile_time(2) == 2, "two"); }

TEST(assertion_death_test, that_is_violated_says_where_and_what_and_ends_the_process) {
  EXPECT_EXIT(rma::ensure(checked_at_compile_time(2) == 3, "two is three"),
              testing::KilledBySignal(SIGABRT),
              "^lockflight: assert_test.cpp:[0-9]+: violated: two is three\n");
}

TEST(assertion, is_told_to_the_listener_of_its_thread) {
  std::string heard;
  listener().during([&] {
    try {
      rma::ensure(false, "never");
    } catch (const std::logic_error& e) {
      heard = e.what();
    }
  });
  EXPECT_EQ(heard, "assert_test.cpp: never");
  EXPECT_EQ(rma::assertion_listener::here(), nullptr) << "and to nobody afterwards";
}

TEST(assertion_death_test, does_not_go_on_when_its_listener_returns) {
  struct deaf : listener {
    void violated(const char*, const std::source_location&) override {}
  };
  EXPECT_EXIT(deaf().during([] { rma::ensure(false, "never"); }), testing::KilledBySignal(SIGABRT),
              "violated: never");
}

}  // namespace
}  // namespace lockflight::test
