#include "catalogue/parameters.hpp"

#include <gtest/gtest.h>

#include "lockflight/fabric/shm.hpp"
#include "lockflight/lock/all.hpp"

namespace lockflight::catalogue {
namespace {

using rw = lock::rma_rw_parameters;

TEST(Assignment, IsANameAndAWholeNumber) {
  using read = std::pair<std::string, std::int64_t>;
  EXPECT_EQ(parse_assignment("T_R=100"), read("T_R", 100));
  EXPECT_EQ(parse_assignment("overtaking=-1"), read("overtaking", -1));
  EXPECT_EQ(parse_assignment("T_R:100", ':'), read("T_R", 100));
  for (const char* other : {"", "T_R", "=3", "T_R=", "T_R=x", "T_R=3x", "T_R= 3", "T_R=1=2",
                            "T_R=0.5", "T_R:100", "T_R=99999999999999999999"})
    EXPECT_EQ(parse_assignment(other), std::nullopt) << other;
}

TEST(Rows, HaveTheDefaultsAndTheRanges) {
  ASSERT_EQ(rows_of<rw>.size(), rw::all().size());
  const parameter_row* const row = find(rows_of<rw>, "T_R");
  ASSERT_NE(row, nullptr);
  EXPECT_EQ(row->default_value, rw{}.t_r);
  EXPECT_TRUE(row->takes(row->min));
  EXPECT_TRUE(row->takes(row->max));
  EXPECT_FALSE(row->takes(row->min - 1));
  EXPECT_FALSE(row->takes(row->max + 1));
  EXPECT_EQ(row->range(), std::to_string(row->min) + " to " + std::to_string(row->max));
  EXPECT_EQ(find(rows_of<rw>, "T_X"), nullptr);
}

TEST(Values, AreSetByName) {
  rw base;
  base.t_l[0] = 5;
  const rw set = checked(base, {{"T_R", 7}, {"T_L2", 3}});
  EXPECT_EQ(set.t_r, 7);
  EXPECT_EQ(set.t_l[1], 3);
  EXPECT_EQ(set.t_l[0], 5);
  EXPECT_EQ(set.t_dc, rw{}.t_dc);
}

TEST(Values, OfOtherLocksAreIgnoredWhereNothingIsChecked) {
  EXPECT_EQ(lock::with_values(rw{}, {{"T_R", 7}, {"other", 1}}).t_r, 7);
}

struct refused {
  std::string what, given, why;
  bool is_known = false;
};
template <class Parameters>
refused refusal_of(const parameter_values& values) {
  try {
    static_cast<void>(checked(Parameters{}, values));
  } catch (const bad_parameter& e) {
    return {e.what(), e.given, e.why, e.is_known};
  }
  return {};
}

TEST(Values, OutOfRangeAreRefused) {
  const std::string range = find(rows_of<rw>, "T_R")->range();
  const refused no = refusal_of<rw>({{"T_R", 0}});
  EXPECT_EQ(no.what, "'T_R=0' (accepted: " + range + ")");
  EXPECT_EQ(no.given, "T_R=0");
  EXPECT_EQ(no.why, "(accepted: " + range + ")");
  EXPECT_TRUE(no.is_known);
}

TEST(Values, OfOtherLocksAreRefused) {
  const refused no = refusal_of<rw>({{"T_X", 1}});
  EXPECT_EQ(no.given, "T_X");
  EXPECT_TRUE(no.why.starts_with("(nearest: T_R; accepted: T_DC, T_R")) << no.why;
  EXPECT_FALSE(no.is_known);
  EXPECT_EQ(refusal_of<lock::d_mcs_parameters>({{"T_R", 1}}).what,
            "'T_R' (accepted: none, there are no parameters)");
}

}  // namespace
}  // namespace lockflight::catalogue
