#include "catalogue/nearest.hpp"

#include <gtest/gtest.h>

namespace lockflight::catalogue {
namespace {

const std::vector<std::string> known{"spin", "spin-backoff", "d-mcs", "rma-mcs", "rma-rw"};

TEST(Nearest, IsWhatWasMeant) {
  EXPECT_EQ(nearest("spn", known), "spin");
  EXPECT_EQ(nearest("sipn", known), "spin");
  EXPECT_EQ(nearest("RMA-RW", known), "rma-rw");
  EXPECT_EQ(nearest("mcs", known), "d-mcs");
  EXPECT_EQ(nearest("spin-back", known), "spin-backoff");
  EXPECT_EQ(nearest("", known), "");
  EXPECT_EQ(nearest("--time", {"--mode", "--timeout"}), "--timeout");
  EXPECT_EQ(nearest("--no", {"--nonblock", "--no-wait-message"}),
            "--nonblock or --no-wait-message");
  EXPECT_EQ(nearest("x", known), "");
  EXPECT_EQ(nearest("quicksort", known), "");
  EXPECT_EQ(nearest(std::string(1'000'000, 'a'), known), "");
}

TEST(Nearest, IsSaidBeforeWhatIsAccepted) {
  EXPECT_EQ(accepted_names("spn", {"spin", "d-mcs"}), "(nearest: spin; accepted: spin, d-mcs)");
  EXPECT_EQ(accepted_names("x", {"spin", "d-mcs"}), "(accepted: spin, d-mcs)");
}

}  // namespace
}  // namespace lockflight::catalogue
