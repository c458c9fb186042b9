#include "agent/etcd/transfer.hpp"

#include <curl/curl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <stdexcept>

#include "base/descriptor.hpp"

namespace lockflight::cluster {
namespace {

using steady = std::chrono::steady_clock;
constexpr std::size_t most_reply = std::size_t{64} << 20;

/// A request in progress, as libcurl's callbacks see it.
struct exchange {
  const http_request& what;
  http_reply& reply;
  CURL* easy;
  std::size_t sent = 0;
  bool was_to_be_sent_again = false;
  bool has_begun = false;  // the stream
};

std::size_t give_body(char* to, std::size_t size, std::size_t many, void* data) {
  exchange& of = *static_cast<exchange*>(data);
  const std::size_t part = std::min(size * many, of.what.body.size() - of.sent);
  std::memcpy(to, of.what.body.data() + of.sent, part);
  of.sent += part;
  of.reply.was_sent = true;
  return part;
}

/// libcurl rewinds the body in order to send it again, as a connection that it has used before was
/// closed. Nobody knows whether etcd has carried out what was sent.
int refuse_rewind(void* data, curl_off_t, int) {
  exchange& of = *static_cast<exchange*>(data);
  of.was_to_be_sent_again = of.sent != 0;
  return of.was_to_be_sent_again ? CURL_SEEKFUNC_FAIL : CURL_SEEKFUNC_OK;
}

std::size_t take_reply(char* from, std::size_t size, std::size_t many, void* data) {
  exchange& of = *static_cast<exchange*>(data);
  const std::string_view part(from, size * many);
  long status = 0;
  curl_easy_getinfo(of.easy, CURLINFO_RESPONSE_CODE, &status);
  if (of.what.on_part && status == 200) {
    of.has_begun = true;
    of.what.on_part(part);
    return part.size();
  }
  if (of.reply.body.size() + part.size() > most_reply) return 0;  // an error
  of.reply.body += part;
  return part.size();
}

/// Closed on exec, and never one of the standard descriptors. A connection whose other host is gone
/// fails after a few seconds, when it is idle, too.
curl_socket_t open_socket(void*, curlsocktype, curl_sockaddr* address) {
  const int fd =
      above_standard(socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol));
  constexpr unsigned unacknowledged_ms = 8'000;
  if (fd >= 0)
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unacknowledged_ms, sizeof unacknowledged_ms);
  return fd;
}

void set_up_libcurl() {
  static const CURLcode result = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (result != CURLE_OK) throw std::runtime_error("libcurl cannot be set up");
}

/// Writing to a connection that is closed raises SIGPIPE in TLS. It stays in this thread, and goes
/// when the request is over.
class sigpipe_dropped {
 public:
  sigpipe_dropped() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  sigpipe_dropped(const sigpipe_dropped&) = delete;
  sigpipe_dropped& operator=(const sigpipe_dropped&) = delete;
  ~sigpipe_dropped() {
    constexpr timespec at_once{};
    sigtimedwait(&pipe_, nullptr, &at_once);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  sigset_t pipe_{};
  sigset_t before_{};
};

int left_ms(steady::time_point until) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - steady::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 1'000));
}

/// The end of an error about certificates: the option of the agent that mends it; empty if nobody
/// can tell which.
std::string advice_on(const std::string& error, const tls_files& files) {
  const auto says = [&](const char* what) { return error.find(what) != error.npos; };
  if (says("private key") && !files.certificate.empty())
    return files.key.empty()
               ? " (the certificate's file has no key in it: --key names that of the key)"
               : " (--key is to name the key of --cert)";
  const bool wants_ours = says("alert bad certificate") || says("alert certificate required");
  if (wants_ours && files.certificate.empty())
    return " (etcd wants a certificate of its clients: --cert and --key name it)";
  return "";
}

}  // namespace

struct http_client::handles {
  CURLM* multi = nullptr;
  CURL* easy = nullptr;
  char error[CURL_ERROR_SIZE] = {};

  handles() {
    set_up_libcurl();
    multi = curl_multi_init();
    easy = curl_easy_init();
    if (multi == nullptr || easy == nullptr) throw std::bad_alloc();
    curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, 4L);
  }
  handles(const handles&) = delete;
  handles& operator=(const handles&) = delete;
  ~handles() {
    curl_easy_cleanup(easy);
    curl_multi_cleanup(multi);
  }

  void set_up(const tls_files& files, exchange& of, const curl_slist* headers);
  [[nodiscard]] std::string perform(const exchange& of, const std::atomic<bool>& is_stopped);
  [[nodiscard]] std::string text_of(CURLcode result) const {
    return error[0] != '\0' ? error : curl_easy_strerror(result);
  }
};

void http_client::handles::set_up(const tls_files& files, exchange& of, const curl_slist* headers) {
  curl_easy_reset(easy);  // keeps the connections
  error[0] = '\0';
  const auto set = [&](CURLoption option, auto to) {
    if (curl_easy_setopt(easy, option, to) != CURLE_OK)
      throw std::runtime_error("libcurl does not know an option that lockflight needs");
  };
  set(CURLOPT_URL, of.what.url.c_str());
#if LIBCURL_VERSION_NUM >= 0x075500
  set(CURLOPT_PROTOCOLS_STR, "http,https");
#else
  set(CURLOPT_PROTOCOLS, static_cast<long>(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
#if LIBCURL_VERSION_NUM >= 0x075700
  set(CURLOPT_QUICK_EXIT, 1L);  // else a slow name server would hold up the end of the program
#endif
  set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  set(CURLOPT_NOPROXY, "*");  // an agent's etcd is in its own network
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_ERRORBUFFER, static_cast<char*>(error));
  set(CURLOPT_HTTPHEADER, headers);
  set(CURLOPT_POST, 1L);
  set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(of.what.body.size()));
  set(CURLOPT_READFUNCTION, give_body);
  set(CURLOPT_READDATA, &of);
  set(CURLOPT_SEEKFUNCTION, refuse_rewind);
  set(CURLOPT_SEEKDATA, &of);
  set(CURLOPT_WRITEFUNCTION, take_reply);
  set(CURLOPT_WRITEDATA, &of);
  set(CURLOPT_OPENSOCKETFUNCTION, open_socket);
  set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(of.what.connect_limit.count()));
  set(CURLOPT_TCP_KEEPALIVE, 1L);
  set(CURLOPT_TCP_KEEPIDLE, 4L);
  set(CURLOPT_TCP_KEEPINTVL, 2L);
  if (!files.authority.empty()) set(CURLOPT_CAINFO, files.authority.c_str());
  if (!files.certificate.empty()) set(CURLOPT_SSLCERT, files.certificate.c_str());
  if (!files.key.empty()) set(CURLOPT_SSLKEY, files.key.c_str());
}

/// Returns what went wrong; empty if nothing did.
std::string http_client::handles::perform(const exchange& of, const std::atomic<bool>& is_stopped) {
  const steady::time_point start = steady::now();
  while (true) {
    int running = 0;
    if (curl_multi_perform(multi, &running) != CURLM_OK) return "libcurl failed";
    int left = 0;
    if (const CURLMsg* const done = curl_multi_info_read(multi, &left))
      return done->data.result == CURLE_OK ? "" : text_of(done->data.result);
    if (is_stopped) return "stopped";
    const steady::time_point until = start + (of.has_begun ? of.what.stream_limit : of.what.limit);
    if (steady::now() >= until) {
      if (of.has_begun) return "";
      return "no reply within " + std::to_string(of.what.limit.count()) + " ms";
    }
    curl_multi_poll(multi, nullptr, 0, left_ms(until), nullptr);
  }
}

http_client::http_client(const tls_files& files)
    : files_(files), curl_(std::make_unique<handles>()) {}

http_client::~http_client() = default;

http_reply http_client::post(const http_request& what) {
  http_reply reply;
  if (is_stopped_) {
    reply.error = "stopped";
    return reply;
  }
  exchange of{what, reply, curl_->easy};
  const std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)> headers(
      [&] {
        curl_slist* all = curl_slist_append(nullptr, "Content-Type: application/json");
        all = curl_slist_append(all, "Expect:");  // or a long body would wait for leave to be sent
        for (const std::string& each : what.headers) all = curl_slist_append(all, each.c_str());
        return all;
      }(),
      &curl_slist_free_all);
  const sigpipe_dropped held;
  curl_->set_up(files_, of, headers.get());
  curl_multi_add_handle(curl_->multi, curl_->easy);
  reply.error = curl_->perform(of, is_stopped_);
  reply.error += advice_on(reply.error, files_);
  if (of.was_to_be_sent_again) reply.error = "the connection was closed before an answer came";
  long status = 0;
  curl_easy_getinfo(curl_->easy, CURLINFO_RESPONSE_CODE, &status);
  reply.status = static_cast<int>(status);
  curl_multi_remove_handle(curl_->multi, curl_->easy);
  return reply;
}

void http_client::stop() {
  is_stopped_ = true;
  curl_multi_wakeup(curl_->multi);
}

}  // namespace lockflight::cluster
