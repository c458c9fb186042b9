// Says when a key of a domain has changed, from a thread of its own. It is a hint: it may be late,
// or come without a change.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "agent/etcd/gateway.hpp"
#include "agent/etcd/text.hpp"

namespace lockflight::cluster {

class etcd_watch {
 public:
  /// `hint` is called on the thread: when etcd has begun to watch, since a key may have changed
  /// before that, and for changes. A key that is written with the value that it had has not
  /// changed, so the beats of members that have nothing to say cost the others nothing.
  etcd_watch(const etcd_options& options, const domain_keys& names, std::function<void()> hint);
  etcd_watch(const etcd_watch&) = delete;
  etcd_watch& operator=(const etcd_watch&) = delete;
  /// Stops at once, unless in a call of `hint`.
  ~etcd_watch();

 private:
  void run();
  void read(std::string_view part);
  void wait(std::chrono::milliseconds most);

  etcd_gateway gateway_;
  domain_keys names_;
  std::function<void()> hint_;
  std::string line_;         // the last one, as far as it has come
  bool has_begun_ = false;   // since the last request
  bool is_refused_ = false;  // the same
  std::mutex mutex_;         // of is_over_
  std::condition_variable ends_;
  bool is_over_ = false;
  std::thread thread_;  // the last member: it uses the others
};

}  // namespace lockflight::cluster
