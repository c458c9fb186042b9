#include "agent/etcd/transfer.hpp"

#include <curl/curl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/redirect_error.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>
#include <cstring>
#include <map>
#include <new>
#include <optional>
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

/// libcurl's handles of one client, driven by the event loop as curl_multi_socket_action(3) says:
/// libcurl tells which sockets it waits for and until when, and is told when one of them is ready
/// or the time is over.
class http_client::transfers : public std::enable_shared_from_this<http_client::transfers> {
 public:
  explicit transfers(asio::io_context& io) : io_(io), timer_(io), news_(io) {
    set_up_libcurl();
    multi_ = curl_multi_init();
    easy_ = curl_easy_init();
    if (multi_ == nullptr || easy_ == nullptr) throw std::bad_alloc();
    curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, 4L);
    curl_multi_setopt(multi_, CURLMOPT_SOCKETFUNCTION, &transfers::wait_for_socket);
    curl_multi_setopt(multi_, CURLMOPT_SOCKETDATA, this);
    curl_multi_setopt(multi_, CURLMOPT_TIMERFUNCTION, &transfers::wait_for_time);
    curl_multi_setopt(multi_, CURLMOPT_TIMERDATA, this);
  }
  transfers(const transfers&) = delete;
  transfers& operator=(const transfers&) = delete;
  ~transfers() {
    sockets_.clear();
    curl_easy_cleanup(easy_);
    curl_multi_cleanup(multi_);
  }

  /// The handle of the request in progress.
  [[nodiscard]] CURL* easy() const { return easy_; }
  /// While this exists, libcurl works on the request.
  class [[nodiscard]] work {
   public:
    explicit work(std::shared_ptr<transfers> of) : of_(std::move(of)) {
      of_->result_.reset();
      curl_multi_add_handle(of_->multi_, of_->easy_);
    }
    work(const work&) = delete;
    work& operator=(const work&) = delete;
    ~work() { curl_multi_remove_handle(of_->multi_, of_->easy_); }

   private:
    std::shared_ptr<transfers> of_;
  };

  void set_up(const tls_files& files, exchange& of, const curl_slist* headers);
  [[nodiscard]] asio::awaitable<std::string> end_of(const exchange& of);

 private:
  /// A socket of libcurl's, which closes it.
  struct socket {
    socket(asio::io_context& io, curl_socket_t is) : watched(io, is) {}
    ~socket() { forget(); }
    socket(const socket&) = delete;
    socket& operator=(const socket&) = delete;

    /// No wait goes on, and libcurl may close the socket.
    void forget() {
      if (watched.is_open()) watched.release();
    }

    asio::posix::stream_descriptor watched;
    bool is_waited_for[2] = {false, false};  // [to read, to write]
    int wanted = CURL_POLL_NONE;
  };

  static int wait_for_socket(CURL*, curl_socket_t is, int wanted, void* self, void*);
  static int wait_for_time(CURLM*, long ms, void* self);
  void wait(curl_socket_t is, const std::shared_ptr<socket>& on);
  void act(curl_socket_t is, int how);
  [[nodiscard]] std::string text_of(CURLcode result) const {
    return error_[0] != '\0' ? error_ : curl_easy_strerror(result);
  }

  asio::io_context& io_;
  asio::steady_timer timer_;  // libcurl's
  asio::steady_timer news_;   // of the request: cancelled when there is some
  std::map<curl_socket_t, std::shared_ptr<socket>> sockets_;
  CURLM* multi_ = nullptr;
  CURL* easy_ = nullptr;
  std::optional<CURLcode> result_;  // of the request, when it has ended
  char error_[CURL_ERROR_SIZE] = {};
};

// ---- the event loop ----

int http_client::transfers::wait_for_socket(CURL*, curl_socket_t is, int wanted, void* self,
                                            void*) {
  transfers& all = *static_cast<transfers*>(self);
  if (wanted == CURL_POLL_REMOVE) {
    if (const auto at = all.sockets_.find(is); at != all.sockets_.end()) at->second->forget();
    all.sockets_.erase(is);
    return 0;
  }
  std::shared_ptr<socket>& at = all.sockets_[is];
  if (!at) at = std::make_shared<socket>(all.io_, is);
  at->wanted = wanted;
  all.wait(is, at);
  return 0;
}

int http_client::transfers::wait_for_time(CURLM*, long ms, void* self) {
  transfers& all = *static_cast<transfers*>(self);
  all.timer_.cancel();
  if (ms < 0) return 0;
  all.timer_.expires_after(std::chrono::milliseconds(ms));
  all.timer_.async_wait([weak = all.weak_from_this()](const asio::error_code& error) {
    if (const auto alive = weak.lock(); alive && !error) alive->act(CURL_SOCKET_TIMEOUT, 0);
  });
  return 0;
}

/// Waits for what libcurl wants of the socket, and goes on as long as libcurl wants it.
void http_client::transfers::wait(curl_socket_t is, const std::shared_ptr<socket>& on) {
  using asio::posix::stream_descriptor;
  struct direction {
    stream_descriptor::wait_type type;
    int poll;
    int ready;
  };
  constexpr direction directions[] = {
      {stream_descriptor::wait_read, CURL_POLL_IN, CURL_CSELECT_IN},
      {stream_descriptor::wait_write, CURL_POLL_OUT, CURL_CSELECT_OUT}};
  for (std::size_t i = 0; i < std::size(directions); ++i) {
    const direction& each = directions[i];
    if ((on->wanted & each.poll) == 0 || std::exchange(on->is_waited_for[i], true)) continue;
    on->watched.async_wait(
        each.type, [weak = weak_from_this(), on, is, each, i](const asio::error_code& error) {
          on->is_waited_for[i] = false;
          const auto alive = weak.lock();
          if (!alive || error || (on->wanted & each.poll) == 0) return;
          alive->act(is, each.ready);
          // The number may be that of another socket by now.
          const auto at = alive->sockets_.find(is);
          if (at != alive->sockets_.end() && at->second == on) alive->wait(is, on);
        });
  }
}

void http_client::transfers::act(curl_socket_t is, int how) {
  int running = 0;
  if (curl_multi_socket_action(multi_, is, how, &running) != CURLM_OK) result_ = CURLE_FAILED_INIT;
  int left = 0;
  if (const CURLMsg* const done = curl_multi_info_read(multi_, &left)) result_ = done->data.result;
  news_.cancel();
}

// ---- a request ----

void http_client::transfers::set_up(const tls_files& files, exchange& of,
                                    const curl_slist* headers) {
  curl_easy_reset(easy_);  // keeps the connections
  error_[0] = '\0';
  const auto set = [&](CURLoption option, auto to) {
    if (curl_easy_setopt(easy_, option, to) != CURLE_OK)
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
