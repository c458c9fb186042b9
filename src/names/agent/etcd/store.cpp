#include "names/agent/etcd/store.hpp"

#include <asio/use_awaitable.hpp>
#include <chrono>
#include <exception>
#include <stdexcept>
#include <utility>

namespace lockflight::cluster {
namespace {

etcd_store_options checked(const etcd_store_options& options) {
  check_place(options.place);
  if (options.self == 0) throw std::invalid_argument("a member's number is not 0");
  return options;
}

}  // namespace

etcd_store::etcd_store(asio::io_context& io, const etcd_store_options& options, etcd_events events)
    : io_(io),
      options_(checked(options)),
      events_(std::move(events)),
      transactions_(io, options.etcd, options.domain),
      others_(io, options.etcd, options.domain) {}

asio::awaitable<domain_secret> etcd_store::secret() {
  const domain_secret secret = co_await others_.secret();
  transactions_.require(others_.secret_text());
  co_return secret;
}

void etcd_store::submit(submitted what) {
  turns_.add([this, what = std::move(what), count = ++submitted_]() -> asio::awaitable<void> {
    if (submitted_ - count < most_waiting) co_await carry_out(what);
  });
}

asio::awaitable<void> etcd_store::carry_out(const submitted& what) {
  const std::optional<etcd_answer> got = co_await answer_to(what);
  if (!got) co_return;
  if (std::exchange(is_in_trouble_, false)) events_.recovered();
  events_.answered(what.number, got->what, got->view);
}

/// The answer of etcd; nothing if there is none, or if the state machine has given up waiting for
/// it.
asio::awaitable<std::optional<etcd_answer>> etcd_store::answer_to(const submitted& what) {
  // A 48th of the TTL lies between two tries, which an outage of etcd may cost a holder beside the
  // outage itself. More tries would be load on an etcd that is about to come back.
  constexpr int tries = 8;
  const auto until = std::chrono::steady_clock::now() + patience_;
  for (;;) {
    try {
      co_return co_await transactions_.carry_out(what.what, options_.self, options_.place);
    } catch (const etcd_error& e) {
      has_failed(e.what());
      if (e.request() != fate::unreached) co_return std::nullopt;
    } catch (const std::exception& e) {
      has_failed(e.what());
      co_return std::nullopt;
    }
    asio::steady_timer next(io_, patience_ / tries);
    if (next.expiry() >= until) co_return std::nullopt;
    co_await next.async_wait(asio::use_awaitable);
  }
}

void etcd_store::has_failed(const std::string& why) {
  if (!std::exchange(is_in_trouble_, true)) events_.trouble(why);
}

}  // namespace lockflight::cluster
