// A client's acquire, one access at a time, while the host becomes another incarnation.
#include <gtest/gtest.h>

#include <string>

#include "lab/cluster/core_under_test.hpp"
#include "lab/cluster/memory.hpp"
#include "names/cluster/core/acquire.hpp"

namespace lockflight::cluster {
namespace {

using next = acquire_events::next;

class AcquireInSteps : public testing::Test {
 protected:
  AcquireInSteps() {
    words_.on_change = [](const std::string&) {};
    words_.on_header = [] {};
    become(1);
  }
  void become(incarnation_number now) {
    words_.set_incarnation(now);
    words_.set_deadline(deadline);
  }
  void own(mode as) {
    const ownership before = words_.ownership_of(name_);
    ASSERT_TRUE(words_.swap_ownership(name_, before, {as, mode::none, words_.incarnation()}));
  }

  static constexpr instant in_time = 1, deadline = 2;
  std::string name_ = "name";
  sim::memory words_;
  acquire<sim::words_in_host> shared_{mode::shared, {&name_, &words_}};
};

// (!) The word that sufficed is that of an incarnation that is over, and the deadline that of the
// next one. A shared acquire swaps no word at its entry that would show it.
TEST_F(AcquireInSteps, DoesNotEnterByAWordOfAnEarlierIncarnation) {
  own(mode::shared);
  ASSERT_EQ(shared_.step(in_time), next::step);  // the ownership
  become(2);
  own(mode::none);
  ASSERT_EQ(shared_.step(in_time), next::step);  // the state
  ASSERT_EQ(shared_.step(in_time), next::step);  // the deadline
  ASSERT_EQ(shared_.step(in_time), next::rings);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(shared_.step(in_time), next::waits);
  own(mode::shared);
  next now = next::step;
  for (int i = 0; i < 5; ++i) now = shared_.step(in_time);
  EXPECT_EQ(now, next::holds);
}

}  // namespace
}  // namespace lockflight::cluster
