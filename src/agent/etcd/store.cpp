#include "agent/etcd/store.hpp"

#include <exception>
#include <utility>

#include "base/signals_held.hpp"

namespace lockflight::cluster {
namespace {

etcd_store_options checked(const etcd_store_options& options) {
  check_place(options.place);
  if (options.self == 0) throw std::invalid_argument("a member's number is not 0");
  return options;
}

}  // namespace

etcd_store::etcd_store(const etcd_store_options& options, etcd_events events)
    : options_(checked(options)),
      events_(std::move(events)),
      client_(options.etcd, options.domain),
      blocking_client_(options.etcd, options.domain),
      watch_(options.etcd, domain_keys(options.domain), events_.hint) {
  const signals_held of_the_thread;  // a thread begins with this one's mask
  thread_ = std::thread([this] { run(); });
}

etcd_store::~etcd_store() {
  {
    const std::lock_guard guard(mutex_);
    is_over_ = true;
  }
  has_work_.notify_all();
  client_.stop();
  blocking_client_.stop();
  thread_.join();
}

domain_secret etcd_store::secret() {
  const borrowed by = blocking();
  const domain_secret secret = by->secret();
  client_.require(by->secret_text());
  return secret;
}

void etcd_store::submit(submitted what) {
  {
    const std::lock_guard guard(mutex_);
    waiting_.push_back(std::move(what));
    if (waiting_.size() > most_waiting) waiting_.pop_front();
  }
  has_work_.notify_one();
}

void etcd_store::run() {
  std::unique_lock guard(mutex_);
  while (true) {
    has_work_.wait(guard, [&] { return is_over_ || !waiting_.empty(); });
    if (is_over_) return;
    const submitted next = std::move(waiting_.front());
    waiting_.pop_front();
    guard.unlock();
    carry_out(next);
    guard.lock();
  }
}

void etcd_store::carry_out(const submitted& what) {
  const auto got = answer_to(what);
  if (!got) return;
  if (std::exchange(is_in_trouble_, false)) events_.recovered();
  events_.answered(what.number, got->what, got->view);
}

/// The answer of etcd; nothing if there is none, or if the state machine has given up waiting for
/// it.
std::optional<etcd_answer> etcd_store::answer_to(const submitted& what) {
  // A 48th of the TTL lies between two tries, which an outage of etcd may cost a holder beside the
  // outage itself. More tries would be load on an etcd that is about to come back.
  constexpr int tries = 8;
  const auto until = std::chrono::steady_clock::now() + patience_;
  for (;;) {
    try {
      return client_.carry_out(what.what, options_.self, options_.place);
    } catch (const etcd_error& e) {
      has_failed(e.what());
      if (e.request() != fate::unreached) return std::nullopt;
    } catch (const std::exception& e) {
      has_failed(e.what());
      return std::nullopt;
    }
    std::unique_lock guard(mutex_);
    const auto next = std::chrono::steady_clock::now() + patience_ / tries;
    if (next >= until || has_work_.wait_until(guard, next, [&] { return is_over_; }))
      return std::nullopt;
  }
}

void etcd_store::has_failed(const std::string& why) {
  {
    const std::lock_guard guard(mutex_);
    if (is_over_) return;  // the store itself has ended the request
  }
  if (!std::exchange(is_in_trouble_, true)) events_.trouble(why);
}

}  // namespace lockflight::cluster
