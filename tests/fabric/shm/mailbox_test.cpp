// A sender dies between taking a slot of a mailbox and filling it: the messages behind it are
// received all the same, and no message of a living sender is skipped. The test takes the senders'
// steps one by one, on a segment without processes.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "fabric/shm/segment.hpp"
#include "lockflight/fabric/shm.hpp"

namespace lockflight::test {
namespace {

/// Three ranks; rank 0 receives.
class mailbox : public testing::Test {
 protected:
  [[nodiscard]] shm::detail::message_slot& slot(std::uint64_t n) const {
    return memory.view().slots[n % memory.view().slots_each];
  }

  /// A sender's steps, as port::send takes them.
  void announces(rma::rank_t sender, rma::rank_t to = 0) {
    ends(sender).fills_at = static_cast<std::uint32_t>(to) + 1;
  }
  std::uint64_t takes_a_slot() { return ends(0).tail.fetch_add(1); }
  void fills(std::uint64_t n, rma::rank_t sender, rma::word what) {
    slot(n).content = {sender, {what, 0, 0}};
    slot(n).turn = 2 * (n / memory.view().slots_each) + 1;
  }
  void is_done(rma::rank_t sender) { ends(sender).fills_at = 0; }

  std::uint64_t begins_to_send(rma::rank_t sender) {
    announces(sender);
    return takes_a_slot();
  }

  void expect_message(rma::rank_t from, rma::word what) {
    rma::message got;
    ASSERT_TRUE(receiver.try_receive(got)) << "of rank " << from << ": " << what;
    EXPECT_EQ(got, (rma::message{from, {what, 0, 0}}));
  }
  void expect_none() {
    rma::message got;
    EXPECT_FALSE(receiver.try_receive(got)) << "rank " << got.from << ": " << got.body[0];
  }

  shm::detail::segment memory{3, 64};
  rma::topology machine = rma::topology::flat(3);
  shm::port receiver{0, machine, memory.view(), {}, true};
  shm::port second{2, machine, memory.view(), {}, true};

 private:
  [[nodiscard]] shm::detail::mailbox_ends& ends(rma::rank_t of) const {
    return memory.view().mailboxes[of];
  }
};

TEST_F(mailbox, a_slot_that_a_lost_rank_took_is_passed_over) {
  begins_to_send(1);
  second.send(0, {7, 0, 0});
  expect_none();  // it may still come
  memory.lose(1);
  expect_message(2, 7);
  expect_none();
}

TEST_F(mailbox, so_is_one_that_is_the_last_for_the_time_being) {
  begins_to_send(1);
  memory.lose(1);
  expect_none();
  second.send(0, {7, 0, 0});
  expect_message(2, 7);
}

TEST_F(mailbox, what_a_lost_rank_has_filled_is_received) {
  fills(begins_to_send(1), 1, 5);
  memory.lose(1);
  expect_message(1, 5);
  expect_none();
}

TEST_F(mailbox, who_died_before_it_took_a_slot_has_taken_none) {
  announces(1);
  memory.lose(1);
  second.send(0, {7, 0, 0});
  expect_message(2, 7);
  expect_none();
}

// The sender of a slot is unknown: as long as a living rank is about to fill one, no slot is
// skipped.
TEST_F(mailbox, a_living_sender_before_a_lost_one_is_waited_for) {
  const std::uint64_t of_the_living = begins_to_send(2);
  begins_to_send(1);
  memory.lose(1);
  expect_none();
  fills(of_the_living, 2, 7);
  expect_message(2, 7);
  expect_none();
  is_done(2);
  expect_none();
  second.send(0, {8, 0, 0});
  expect_message(2, 8);
}

TEST_F(mailbox, a_living_sender_behind_a_lost_one_is_waited_for) {
  begins_to_send(1);
  const std::uint64_t of_the_living = begins_to_send(2);
  memory.lose(1);
  expect_none();
  fills(of_the_living, 2, 7);
  expect_none();  // still: it has not announced that it is done
  is_done(2);
  expect_message(2, 7);
  expect_none();
}

TEST_F(mailbox, a_living_sender_to_another_rank_is_not_waited_for) {
  begins_to_send(1);
  announces(2, 1);
  memory.lose(1);
  receiver.send(0, {3, 0, 0});
  expect_message(0, 3);
}

TEST_F(mailbox, nothing_is_passed_over_where_nobody_is_lost) {
  const std::uint64_t slow = begins_to_send(1);
  is_done(1);  // never so: it is done when the slot is full
  second.send(0, {7, 0, 0});
  expect_none();
  fills(slow, 1, 5);
  expect_message(1, 5);
  expect_message(2, 7);
}

/// The events of its rank, in order: the first word of a message, or minus the lost rank.
struct listener final : rma::message_handler {
  void handle(const rma::message& m) override { heard.push_back(static_cast<int>(m.body[0])); }
  void lost(rma::rank_t rank) override { heard.push_back(-rank); }
  std::vector<int> heard;
};

// C39: the last message of the lost rank is behind one that is still being sent.
TEST_F(mailbox, a_loss_is_told_after_the_last_message) {
  listener ears;
  receiver.serve_with(&ears);
  const std::uint64_t slow = begins_to_send(2);
  fills(begins_to_send(1), 1, 5);
  memory.lose(1);
  receiver.pause(0);
  EXPECT_EQ(ears.heard, std::vector<int>{});
  EXPECT_FALSE(receiver.is_lost(1)) << "nobody has been told";
  fills(slow, 2, 7);
  is_done(2);
  receiver.pause(0);
  EXPECT_EQ(ears.heard, (std::vector{7, 5, -1}));
  EXPECT_TRUE(receiver.is_lost(1));
  receiver.pause(0);
  EXPECT_EQ(ears.heard.size(), 3u) << "a loss is told once";
}

// Slots are used again and again: a skipped slot is free for the next lap.
TEST_F(mailbox, of_a_slot_that_was_used_before_it_is_the_same) {
  const auto laps = 3 * static_cast<rma::word>(memory.view().slots_each);
  for (rma::word i = 0; i < laps + 5; ++i) {
    second.send(0, {i, 0, 0});
    expect_message(2, i);
  }
  begins_to_send(1);
  memory.lose(1);
  for (rma::word i = 0; i < laps; ++i) {
    second.send(0, {i, 0, 0});
    expect_message(2, i);
  }
  expect_none();
}

}  // namespace
}  // namespace lockflight::test
