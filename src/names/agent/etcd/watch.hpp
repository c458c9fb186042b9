// Says when a key of a domain has changed, and which one. It is a hint: it may be late, or come
// without a change.
#pragma once

#include <asio/awaitable.hpp>
#include <asio/io_context.hpp>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "names/agent/etcd/gateway.hpp"
#include "names/agent/etcd/text.hpp"

namespace lockflight::cluster {

/// Keys that have changed.
struct etcd_changes {
  std::vector<std::string> keys;
  /// Other keys may have changed, too.
  bool are_unknown = false;
};

/// The loop must not run after the watch is destroyed.
class etcd_watch {
 public:
  enum class again : std::uint8_t { from_now, from_where_it_was };

  /// The loop calls `hint`: when etcd has begun to watch, since a key may have changed before that,
  /// and for changes. A watch that ends is begun again; one that goes on from where it was then
  /// misses nothing, and gives no hint. A key that is written with the value that it had has not
  /// changed, so the beats of members that have nothing to say cost the others nothing.
  etcd_watch(asio::io_context& io, const etcd_options& options, key_range watched,
             std::function<void(const etcd_changes&)> hint, again how = again::from_now);
  etcd_watch(const etcd_watch&) = delete;
  etcd_watch& operator=(const etcd_watch&) = delete;

 private:
  [[nodiscard]] asio::awaitable<void> run();
  void read(std::string_view part);

  asio::io_context& io_;
  etcd_gateway gateway_;
  key_range watched_;
  std::function<void(const etcd_changes&)> hint_;
  std::string line_;  // the last one, as far as it has come
  again how_;
  std::int64_t next_ = 0;    // the revision from which on it goes on; 0: from now
  bool has_begun_ = false;   // since the last request
  bool is_refused_ = false;  // since the last request
};

}  // namespace lockflight::cluster
