// What a program can do about a wait: end it from elsewhere, and learn that it begins.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/names/support.hpp"

namespace lockflight::test {
namespace {

using clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// A thread that holds a lock until it is told to end.
class holder {
 public:
  holder(const domain& in, const std::string& name, const named_lock_options& what = {})
      : thread_([this, in, name, what] { hold(in, name, what); }) {
    std::unique_lock guard(mutex_);
    changed_.wait(guard, [this] { return holds_; });
  }
  ~holder() { end(); }
  holder(const holder&) = delete;
  holder& operator=(const holder&) = delete;
  void end() {
    {
      const std::lock_guard guard(mutex_);
      ends_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

 private:
  void hold(const domain& in, const std::string& name, const named_lock_options& what) {
    named_lock a(in, name, what);
    a.lock();
    std::unique_lock guard(mutex_);
    holds_ = true;
    changed_.notify_all();
    changed_.wait(guard, [this] { return ends_; });
    a.unlock();
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  bool holds_ = false;
  bool ends_ = false;
  std::thread thread_;
};

class DomainWaits : public ::testing::TestWithParam<const char*> {
 protected:
  own_domain where_;
  domain in_ = domain::open(where_.name());
};

// Also a waiter that does not watch, and has long been asleep.
TEST_P(DomainWaits, AnotherThreadEndsThemAtOnce) {
  const named_lock_options what{.kind = GetParam()};
  const holder other(in_, "a", what);
  struct waiter {
    std::unique_ptr<named_lock> lock;
    std::atomic<bool> interrupted{false};
    std::atomic<int> asked{0};
    std::thread thread;
  };
  std::vector<waiter> waiters(3);
  for (waiter& w : waiters) {
    w.lock = std::make_unique<named_lock>(in_, "a", what);
    named_control(*w.lock).interrupt_with([&w] { return ++w.asked, w.interrupted.load(); });
    w.thread = std::thread([&w] { EXPECT_REFUSED(interrupted, "'a'", w.lock->lock()); });
  }
  await_waiters(in_, waiters.size());
  std::this_thread::sleep_for(milliseconds(50));
  std::vector<int> asked;
  for (const waiter& w : waiters) asked.push_back(w.asked);
  std::this_thread::sleep_for(milliseconds(1450));
  for (std::size_t i = 0; i < waiters.size(); ++i)
    EXPECT_GT(waiters[i].asked, asked[i]) << "each is asked at least once a second";
  for (waiter& w : waiters) {
    const auto start = clock::now();
    w.interrupted = true;
    named_control(*w.lock).ask_now();
    w.thread.join();
    EXPECT_LT(clock::now() - start, milliseconds(300));
  }
}

/// By a thread that has asked to be told.
std::atomic<int> waits_begun{0};

TEST_P(DomainWaits, AreSaidBefore) {
  const named_lock_options what{.kind = GetParam()};
  waits_begun = 0;
  named_lock a(in_, "a", what);
  a.lock();
  a.unlock();
  call_before_waits([] { ++waits_begun; });
  for (int i = 0; i < 100; ++i) {
    a.lock();
    a.unlock();
  }
  EXPECT_EQ(waits_begun, 0);
  holder other(in_, "a", what);
  std::thread ends([&] {
    // The waiter is listed before it begins to wait, so the list would not say that it has begun.
    const auto until = clock::now() + std::chrono::seconds(10);
    while (waits_begun == 0 && clock::now() < until) std::this_thread::yield();
    other.end();
  });
  a.lock();
  a.unlock();
  EXPECT_GT(waits_begun, 0);
  call_before_waits(nullptr);
  ends.join();
}

INSTANTIATE_TEST_SUITE_P(Each, DomainWaits, ::testing::Values("flight", "flight-rw", "d-mcs"));

}  // namespace
}  // namespace lockflight::test
