// An etcd for tests: one process on free ports of this machine, with its files in a temporary
// folder. Neither outlives the object, and the process does not outlive the thread that has made
// it.
#pragma once

#include <gtest/gtest.h>
#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "names/agent/etcd/client.hpp"
#include "names/agent/etcd/event_loop.hpp"

/// That a text has a part.
#define EXPECT_SAYS(text, part) EXPECT_NE(std::string(text).find(part), std::string::npos) << (text)

namespace lockflight::cluster::test {

/// A folder that goes with the object.
class temporary_folder {
 public:
  temporary_folder();
  temporary_folder(const temporary_folder&) = delete;
  temporary_folder& operator=(const temporary_folder&) = delete;
  ~temporary_folder();
  [[nodiscard]] std::string file(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

/// A port of 127.0.0.1 that nobody listened on a moment ago.
[[nodiscard]] int free_port();

class etcd_server {
 public:
  /// PEM files for TLS; without, HTTP.
  struct tls_server {
    std::string authority;
    std::string certificate;
    std::string key;
  };

  [[nodiscard]] static bool is_installed();
  /// Returns when it answers. Throws std::runtime_error with the end of its log.
  explicit etcd_server(const std::optional<tls_server>& tls = std::nullopt);
  /// One member of a cluster. Returns at once.
  struct membership {
    std::string name;
    std::string peer_url;
    std::string all_peers;  ///< NAME=URL, with commas between them
  };
  explicit etcd_server(const membership& in);
  etcd_server(const etcd_server&) = delete;
  etcd_server& operator=(const etcd_server&) = delete;
  ~etcd_server();

  [[nodiscard]] const std::string& url() const { return url_; }
  [[nodiscard]] etcd_options options() const;
  [[nodiscard]] bool answers() const;
  /// The end of it.
  [[nodiscard]] std::string log() const;
  /// As SIGSTOP and SIGCONT.
  void halt() const;
  void go_on() const;
  /// As SIGKILL.
  void end();
  /// Sends a request past the code under test. `token` is that of a user.
  std::string post(const std::string& path, const std::string& json,
                   const std::string& token = "") const;
  void put(const std::string& key, const std::string& text) const;

 private:
  /// True if it has ended by itself.
  [[nodiscard]] bool has_ended();
  void start(const membership& in, const std::optional<tls_server>& tls);

  temporary_folder folder_;
  tls_files files_;
  std::string url_;
  pid_t process_ = -1;
};

/// Several that are one etcd. Returns when all answer.
[[nodiscard]] std::vector<std::unique_ptr<etcd_server>> make_etcd_cluster(int many);

/// Tests that share an etcd. Each has a domain of its own.
class WithEtcd : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (etcd_server::is_installed()) server_ = std::make_unique<etcd_server>();
  }
  static void TearDownTestSuite() { server_.reset(); }
  void SetUp() override {
    if (!server_) GTEST_SKIP() << "there is no /usr/bin/etcd (Debian: package etcd-server)";
  }
  void TearDown() override {
    if (HasFailure() && server_) std::cerr << "the end of etcd's log:\n" << server_->log();
  }

  [[nodiscard]] static etcd_server& server() { return *server_; }
  [[nodiscard]] static std::string domain() {
    return testing::UnitTest::GetInstance()->current_test_info()->name();
  }
  [[nodiscard]] static std::string key_text(const std::string& rest) {
    return "lockflight/" + domain() + "/" + rest;
  }

 private:
  inline static std::unique_ptr<etcd_server> server_;
};

/// The event loop of the current test, with SIGPIPE ignored. The next test has another one, so that
/// no loop runs when its stores and watches are gone.
[[nodiscard]] asio::io_context& loop();
/// The result of requests of clients of loop().
template <class T>
T now(asio::awaitable<T> what) {
  return wait_for(loop(), std::move(what));
}

/// True if it is true within some seconds, in which loop() runs.
[[nodiscard]] bool comes_true(const std::function<bool()>& condition,
                              std::chrono::milliseconds most = std::chrono::seconds(10));
/// Runs loop() for that time.
void run_for(std::chrono::milliseconds time);

}  // namespace lockflight::cluster::test
