#include "names/agent/etcd/gateway.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "names/agent/etcd/text.hpp"

namespace lockflight::cluster {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;

constexpr const char* authenticate_path = "/v3/auth/authenticate";

std::string checked_endpoint(std::string url) {
  if (!is_endpoint(url))
    throw std::invalid_argument("etcd's endpoint " + in_quotes(url) +
                                ": expected http://HOST:PORT or https://HOST:PORT");
  while (url.ends_with('/')) url.pop_back();
  return url;
}

bool is_utf8(const std::string& text) {
  try {
    (void)json(text).dump();
  } catch (const json::exception&) {
    return false;
  }
  return true;
}

etcd_options checked(etcd_options options) {
  if (options.endpoints.empty())
    throw std::invalid_argument("etcd has no endpoint; expected http://HOST:PORT or https://...");
  for (std::string& each : options.endpoints) each = checked_endpoint(std::move(each));
  if (!is_utf8(options.user) || !is_utf8(options.password))
    throw std::invalid_argument("etcd's user or password is not UTF-8");
  return options;
}

/// The message of etcd in a reply that is no success.
std::string message_in(const std::string& body) {
  const json reply = json::parse(body, nullptr, false);
  for (const char* const name : {"message", "error"})
    if (reply.is_object() && reply.contains(name) && reply[name].is_string())
      return reply[name].get<std::string>();
  return body.empty() ? "no reason given" : in_quotes(body, 120);
}

constexpr milliseconds longest_password_check{10'000};

/// An etcd_error of one endpoint, and what it means for the request.
struct failed_exchange {
  fate request;
  std::string text;
  bool is_final = false;  // another endpoint would say the same
  bool is_about_password = false;
};

bool is_about_password(const std::string& text) {
  return text.find("invalid user ID or password") != text.npos;
}

bool is_about_token(const std::string& text) {
  return text.find("invalid auth token") != text.npos ||
         text.find("revision of auth store is old") != text.npos;
}

/// The failure that a reply that is no success describes.
failed_exchange failure_of(const http_reply& reply) {
  if (!reply.error.empty()) return {reply.was_sent ? fate::unknown : fate::unreached, reply.error};
  const std::string message = message_in(reply.body);
  // 408 is what etcd's gateway makes of a request that was cancelled inside etcd.
  const bool has_begun = reply.status >= 500 || reply.status == 408;
  if (message.find("etcdserver: no leader") != message.npos) return {fate::unreached, message};
  if (has_begun) return {fate::unknown, fmt::format("{} ({})", message, reply.status)};
  if (reply.status == 404 || reply.status == 405)
    return {fate::unreached,
            fmt::format("{} ({}); expected etcd 3.4 or later", message, reply.status)};
  if (message.find("user name is empty") != message.npos)
    return {fate::refused, "etcd wants a user and a password (" + message + ")", true};
  return {fate::refused, fmt::format("{} ({})", message, reply.status), true};
}

}  // namespace

std::string password_in(const std::string& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

bool is_endpoint(std::string_view url) {
  while (url.ends_with('/')) url.remove_suffix(1);
  const std::size_t host = url.starts_with("https://") ? 8 : url.starts_with("http://") ? 7 : 0;
  return host != 0 && host < url.size() && url.find_first_of("/@?# \t\r\n", host) == url.npos;
}

/// A request, wherever it goes.
struct etcd_gateway::attempt {
  std::string path;
  std::string body;
  sending how = sending::repeatable;
  std::function<void(std::string_view)> on_part = nullptr;
  milliseconds stream_limit{0};
  bool has_token = true;
};

/// Until when an endpoint may take a connection, and may take to reply.
struct etcd_gateway::limits {
  clock::time_point connected;
  clock::time_point replied;
};

etcd_gateway::etcd_gateway(asio::io_context& io, const etcd_options& options)
    : options_(checked(options)), client_(io, options.tls) {}

asio::awaitable<json> etcd_gateway::post(std::string path, const json& request, sending how) {
  return at_each_endpoint({std::move(path), request.dump(), how});
}

asio::awaitable<void> etcd_gateway::stream(std::string path, const json& request,
                                           std::function<void(std::string_view part)> on_part,
                                           milliseconds limit) {
  attempt what{std::move(path), request.dump(), sending::repeatable, std::move(on_part), limit};
  static_cast<void>(co_await at_each_endpoint(std::move(what)));
}

asio::awaitable<bool> etcd_gateway::has_authentication() {
  attempt what{authenticate_path,  R"({"name":"","password":""})", sending::repeatable, nullptr,
               milliseconds(0),
               /*has_token=*/false};
  try {
    static_cast<void>(co_await at_each_endpoint(std::move(what)));
  } catch (const etcd_error& e) {
    const std::string_view text = e.what();
    if (text.find("authentication is not enabled") != text.npos) co_return false;
    // etcd has looked for the user, or missed the name of one.
    if (text.find("authentication failed") != text.npos) co_return true;
    if (text.find("user name is empty") != text.npos) co_return true;
    throw;
  }
  co_return true;
}

asio::awaitable<json> etcd_gateway::at_each_endpoint(attempt what) {
  const std::size_t many = options_.endpoints.size();
  const clock::time_point until = clock::now() + options_.limit;
  std::string all;
  fate request = fate::unreached;
  for (std::size_t tried = 0; tried < many; ++tried) {
    const auto left = until - clock::now();
    if (left <= left.zero()) break;
    // An endpoint that says nothing leaves half of the time for the others. They are no use for a
    // request that is sent once and has been sent.
    const clock::time_point half = tried + 1 == many ? until : until - left / 2;
    const limits of_endpoint{half, what.how == sending::once ? until : half};
    try {
      co_return co_await at_endpoint(what, of_endpoint);
    } catch (const failed_exchange& failed) {
      all += fmt::format("{}{}{}: {}", all.empty() ? "" : "; ", endpoint(), what.path, failed.text);
      if (failed.is_final) throw etcd_error(failed.request, all, failed.is_about_password);
      current_ = (current_ + 1) % many;
      if (failed.request == fate::unknown) request = fate::unknown;
      if (request == fate::unknown && what.how == sending::once) break;
    }
  }
  throw etcd_error(request, all.empty() ? "no time left for a request to etcd" : all);
}

/// A token that is refused is renewed once: a request with it was not carried out.
asio::awaitable<json> etcd_gateway::at_endpoint(const attempt& what, const limits& until) {
  const bool wants_token = what.has_token && !options_.user.empty();
  if (wants_token && token_.empty() && !is_open_) co_await authenticate(until);
  try {
    co_return co_await exchange(what, until);
  } catch (const failed_exchange& failed) {
    // Authentication may have been switched on since etcd said that it knows no users.
    const bool is_switched_on =
        is_open_ && failed.text.find("user name is empty") != std::string::npos;
    if (!wants_token || !(is_about_token(failed.text) || is_switched_on)) throw;
    token_.clear();
    is_open_ = false;
  }
  co_await authenticate(until);
  co_return co_await exchange(what, until);
}

asio::awaitable<json> etcd_gateway::ask_for_token(const limits& until) {
  const json credentials{{"name", options_.user}, {"password", options_.password}};
  const attempt what{authenticate_path,  credentials.dump(), sending::repeatable, nullptr,
                     milliseconds(0),
                     /*has_token=*/false};
  co_return co_await exchange(what, until);
}

/// True if the file has another password than etcd has refused.
bool etcd_gateway::has_new_password() {
  if (options_.password_file.empty()) return false;
  std::string now = password_in(options_.password_file);
  if (now.empty() || now == options_.password || !is_utf8(now)) return false;
  options_.password = std::move(now);
  return true;
}

/// Asks for a token, a second time if etcd refuses the password and the file has another one.
asio::awaitable<void> etcd_gateway::take_token(const limits& until) {
  json reply;
  bool has_another = false;
  try {
    reply = co_await ask_for_token(until);
  } catch (const failed_exchange& failed) {
    if (failed.request == fate::unknown)
      password_limit_ =
          std::min(2 * std::max(options_.limit, password_limit_), longest_password_check);
    has_another = is_about_password(failed.text) && has_new_password();
    if (!has_another) throw;
  }
  if (has_another) reply = co_await ask_for_token(until);
  token_ = reply.value("token", "");
  // The token becomes part of a header.
  const auto is_printable = [](char c) { return c > 0x20 && c < 0x7f; };
  if (token_.empty() || !std::all_of(token_.begin(), token_.end(), is_printable))
    throw failed_exchange{fate::unreached, "etcd gave no token"};
}

/// Gets a token. A check of a password takes etcd a while on purpose, and longer if etcd is busy.
/// If the request that needs the token has no time left then, it fails, and the next request has
/// the token.
asio::awaitable<void> etcd_gateway::authenticate(const limits& until) {
  const limits of_check{until.connected, std::max(until.connected, clock::now() + password_limit_)};
  try {
    co_await take_token(of_check);
    if (clock::now() >= until.connected)
      throw failed_exchange{fate::unreached, "etcd took long, and the request was not sent"};
  } catch (failed_exchange& failed) {
    if (failed.text.find("authentication is not enabled") != std::string::npos) {
      is_open_ = true;
      co_return;
    }
    // The request that needs the token has not been sent, whatever became of the check.
    if (failed.request == fate::unknown) failed.request = fate::unreached;
    failed.is_about_password = !options_.password_file.empty() && is_about_password(failed.text);
    failed.text =
        fmt::format("the user {} cannot authenticate: {}", in_quotes(options_.user), failed.text);
    throw;
  }
}

asio::awaitable<json> etcd_gateway::exchange(const attempt& what, const limits& until) {
  const auto from_now = [now = clock::now()](clock::time_point at) {
    return std::max(std::chrono::ceil<milliseconds>(at - now), milliseconds(1));
  };
  http_request request{endpoint() + what.path,
                       what.body,
                       {},
                       from_now(until.connected),
                       from_now(until.replied),
                       what.on_part,
                       what.stream_limit};
  // An etcd without a leader says so, instead of waiting for one.
  request.headers.push_back("Grpc-Metadata-hasleader: true");
  if (what.has_token && !token_.empty()) request.headers.push_back("Authorization: " + token_);
  const http_reply reply = co_await client_.post(std::move(request));
  if (!reply.error.empty() || reply.status != 200) throw failure_of(reply);
  if (what.on_part) co_return json();
  json parsed = json::parse(reply.body, nullptr, false);
  if (!parsed.is_object())
    throw failed_exchange{fate::unknown, "the reply is no JSON object: " + in_quotes(reply.body)};
  co_return parsed;
}

}  // namespace lockflight::cluster
