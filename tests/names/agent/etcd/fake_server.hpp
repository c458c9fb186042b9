// An HTTP server on a free port of this machine that answers each request as the test says, or
// not at all.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/descriptor.hpp"

namespace lockflight::cluster::test {

class fake_server {
 public:
  enum class way : std::uint8_t { answers, closes, hangs };
  struct response {
    way how = way::answers;
    int status = 200;
    std::string body = "{}";
  };
  /// Called on the server's thread; `number` counts requests from 1.
  using handler = std::function<response(int number, const std::string& head_and_body)>;

  explicit fake_server(handler handle);
  fake_server(const fake_server&) = delete;
  fake_server& operator=(const fake_server&) = delete;
  ~fake_server();

  [[nodiscard]] const std::string& url() const { return url_; }
  [[nodiscard]] int requests() const { return requests_; }
  [[nodiscard]] int connections() const { return connections_; }

 private:
  void run();
  /// False: the connection ends.
  [[nodiscard]] bool serve(int connection, std::string& received);

  handler handle_;
  descriptor listener_;
  descriptor stop_read_;
  descriptor stop_write_;
  std::string url_;
  std::atomic<int> requests_{0};
  std::atomic<int> connections_{0};
  std::thread thread_;
};

}  // namespace lockflight::cluster::test
