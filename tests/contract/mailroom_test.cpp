// The mailroom: what it serves, and what opening and closing may meet.
#include <stdexcept>
#include <vector>

#include "tests/contract/support.hpp"

namespace lockflight::test {
namespace {

using shm_participant = rma::participant<shm::port>;

struct notebook : rma::request_handler {
  std::vector<word> served;
  void serve(const rma::message& request) override { served.push_back(request.body[1]); }
};

void one_rank(const std::function<void(shm_participant&)>& body) {
  shm::run({.machine = one_node(1)}, body);
}

/// Sends itself a request and serves what is there.
void request(shm_participant& me, word name, word what) {
  me.port().send(0, {name, what, 0});
  static_cast<void>(me.mail().has_reply());
}

TEST(mailroom, closing_what_was_never_opened_does_nothing) {
  one_rank([](shm_participant& me) {
    notebook open;
    notebook never;
    me.mail().close(never);
    me.mail().open(open, 7);
    me.mail().close(never);
    request(me, 7, 1);
    require(open.served == std::vector<word>{1}, "the other serves as before");
    me.mail().close(open);
  });
}

TEST(mailroom, closing_twice_does_nothing_more) {
  one_rank([](shm_participant& me) {
    notebook first;
    notebook second;
    me.mail().open(first, 7);
    me.mail().open(second, 8);
    me.mail().close(first);
    me.mail().close(first);
    request(me, 8, 1);
    require(second.served == std::vector<word>{1}, "the other serves as before");
    me.mail().close(second);
  });
}

TEST(mailroom, what_was_closed_may_be_opened_again_and_serves_what_came_meanwhile) {
  one_rank([](shm_participant& me) {
    notebook one;
    me.mail().open(one, 7);
    me.mail().close(one);
    request(me, 7, 1);
    require(one.served.empty(), "nobody serves it");
    me.mail().open(one, 7);
    request(me, 7, 2);
    require(one.served == std::vector<word>{1, 2}, "what has come early included");
    me.mail().close(one);
  });
}

TEST(mailroom, opening_twice_is_a_violated_assertion) {
  try {
    one_rank([](shm_participant& me) {
      notebook one;
      me.mail().open(one, 7);
      me.mail().open(one, 7);
    });
    FAIL() << "it was opened twice";
  } catch (const shm::rank_failed& e) {
    EXPECT_NE(std::string(e.what()).find("Aborted"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace lockflight::test
