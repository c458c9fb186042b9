#include "names/agent/etcd/transfer.hpp"

#include <curl/curl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <asio/redirect_error.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>
#include <cstring>
#include <exception>
#include <new>
#include <optional>
#include <stdexcept>
#include <utility>

#include "base/descriptor.hpp"
#include "names/agent/etcd/curl_loop.hpp"

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

/// libcurl ends the transfer with an error if less than the whole part is taken.
std::size_t take_reply(char* from, std::size_t size, std::size_t many, void* data) {
  exchange& of = *static_cast<exchange*>(data);
  const std::string_view part(from, size * many);
  long status = 0;
  curl_easy_getinfo(of.easy, CURLINFO_RESPONSE_CODE, &status);
  try {
    if (of.what.on_part && status == 200) {
      of.has_begun = true;
      of.what.on_part(part);
      return part.size();
    }
    if (of.reply.body.size() + part.size() > most_reply) return 0;
    of.reply.body += part;
  } catch (const std::exception&) {  // no memory; libcurl's own functions know no exceptions
    return 0;
  }
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

/// libcurl's handles of one client.
class http_client::transfers {
 public:
  explicit transfers(asio::io_context& io)
      : loop_(curl_loop::make(io, [this] { look(); })), news_(io), easy_(curl_easy_init()) {
    if (easy_ == nullptr) throw std::bad_alloc();
    curl_multi_setopt(loop_->multi(), CURLMOPT_MAXCONNECTS, 4L);
  }
  transfers(const transfers&) = delete;
  transfers& operator=(const transfers&) = delete;
  ~transfers() { curl_easy_cleanup(easy_); }

  /// The handle of the request in progress.
  [[nodiscard]] CURL* easy() const { return easy_; }
  /// While this exists, libcurl works on the request.
  class [[nodiscard]] work {
   public:
    explicit work(std::shared_ptr<transfers> of) : of_(std::move(of)) {
      of_->result_.reset();
      const CURLMcode added = curl_multi_add_handle(of_->loop_->multi(), of_->easy_);
      if (added != CURLM_OK) throw std::runtime_error(curl_multi_strerror(added));
    }
    work(const work&) = delete;
    work& operator=(const work&) = delete;
    ~work() { curl_multi_remove_handle(of_->loop_->multi(), of_->easy_); }

   private:
    std::shared_ptr<transfers> of_;
  };

  void set_up(const tls_files& files, exchange& of, const curl_slist* headers);
  [[nodiscard]] asio::awaitable<std::string> end_of(const exchange& of);

 private:
  /// Notes the end of the request, and has its coroutine look again.
  void look() {
    int left = 0;
    if (const CURLMsg* const done = curl_multi_info_read(loop_->multi(), &left))
      result_ = done->data.result;
    news_.cancel();
  }
  [[nodiscard]] std::string text_of(CURLcode result) const {
    return error_[0] != '\0' ? error_ : curl_easy_strerror(result);
  }

  std::shared_ptr<curl_loop> loop_;
  asio::steady_timer news_;  // the coroutine waits for it: cancelled when there is some
  CURL* easy_;
  std::optional<CURLcode> result_;  // of the request, when it has ended
  char error_[CURL_ERROR_SIZE] = {};
};

void http_client::transfers::set_up(const tls_files& files, exchange& of,
                                    const curl_slist* headers) {
  curl_easy_reset(easy_);  // keeps the connections
  error_[0] = '\0';
  const auto set = [&](CURLoption option, auto to) {
    if (curl_easy_setopt(easy_, option, to) != CURLE_OK)
      throw std::runtime_error("libcurl does not know an option that lockflight needs");
  };
  set(CURLOPT_URL, of.what.url.c_str());
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_QUICK_EXIT, 1L);  // else the loop would wait for a slow name server
  set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  set(CURLOPT_NOPROXY, "*");  // an agent's etcd is in its own network
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_ERRORBUFFER, static_cast<char*>(error_));
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

/// Waits for the end of the request. Returns what went wrong; empty if nothing did.
asio::awaitable<std::string> http_client::transfers::end_of(const exchange& of) {
  const steady::time_point start = steady::now();
  while (!result_) {
    const steady::time_point until = start + (of.has_begun ? of.what.stream_limit : of.what.limit);
    if (steady::now() >= until) {
      if (of.has_begun) co_return "";
      co_return "no reply within " + std::to_string(of.what.limit.count()) + " ms";
    }
    asio::error_code ignored;
    news_.expires_at(until);
    co_await news_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }
  co_return *result_ == CURLE_OK ? "" : text_of(*result_);
}

http_client::http_client(asio::io_context& io, const tls_files& files)
    : files_(files), transfers_(std::make_shared<transfers>(io)) {}

asio::awaitable<http_reply> http_client::post(http_request what) {
  const std::shared_ptr<transfers> all = transfers_;
  http_reply reply;
  exchange of{what, reply, all->easy()};
  const std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)> headers(
      [&] {
        curl_slist* list = curl_slist_append(nullptr, "Content-Type: application/json");
        list = curl_slist_append(list, "Expect:");  // or a long body would wait for leave
        for (const std::string& each : what.headers) list = curl_slist_append(list, each.c_str());
        return list;
      }(),
      &curl_slist_free_all);
  all->set_up(files_, of, headers.get());
  const transfers::work libcurl(all);
  reply.error = co_await all->end_of(of);
  reply.error += advice_on(reply.error, files_);
  if (of.was_to_be_sent_again) reply.error = "the connection was closed before an answer came";
  long status = 0;
  curl_easy_getinfo(all->easy(), CURLINFO_RESPONSE_CODE, &status);
  reply.status = static_cast<int>(status);
  co_return reply;
}

}  // namespace lockflight::cluster
