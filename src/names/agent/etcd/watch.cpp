#include "names/agent/etcd/watch.hpp"

#include <algorithm>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/number.hpp"
#include "names/agent/etcd/base64.hpp"
#include "names/agent/etcd/event_loop.hpp"

namespace lockflight::cluster {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;

constexpr milliseconds shortest_pause{50};
constexpr milliseconds longest_pause{2'000};
/// An etcd that has stopped does not close its connections, so each watch is begun again after some
/// time.
constexpr milliseconds longest_watch{30'000};
constexpr std::size_t longest_line = std::size_t{64} << 20;

bool is_change(const json& event) {
  if (!event.is_object()) return true;
  const auto value_in = [&](const char* name) {
    const json entry = event.value(name, json::object());
    return entry.is_object() ? entry.value("value", json()) : json();
  };
  const json type = event.value("type", json());
  const bool is_deletion = type == "DELETE" || type == 1;
  return is_deletion || !event.contains("prev_kv") || value_in("kv") != value_in("prev_kv");
}

/// The key that an event is about; nothing if the event does not say so.
std::optional<std::string> key_of(const json& event) {
  const json entry = event.is_object() ? event.value("kv", json::object()) : json();
  const json key = entry.is_object() ? entry.value("key", json()) : json();
  return key.is_string() ? from_base64(key.get_ref<const std::string&>()) : std::nullopt;
}

/// The revision of that name; 0 if there is none.
std::int64_t revision_in(const json& of, const char* name) {
  const json found = of.is_object() ? of.value(name, json()) : json();
  if (!found.is_string()) return 0;
  return read_number<std::int64_t>(found.get_ref<const std::string&>()).value_or(0);
}

std::int64_t changed_in(const json& event) {
  return event.is_object() ? revision_in(event.value("kv", json()), "mod_revision") : 0;
}

struct watch_line {
  bool is_begin = false;
  bool is_end = false;
  std::int64_t present = 0;  // etcd's revision when the watch began
  std::int64_t next = 0;     // the revision after those that the line is about; 0: it is about none
  bool has_unknown_changes = false;
  std::vector<std::string> keys = {};
};

/// A line that is no reply of etcd's may be the end of an earlier one.
watch_line read_watch_line(std::string_view text, bool is_first) {
  const json line = json::parse(text, nullptr, false);
  if (!line.is_object()) return {.has_unknown_changes = true};
  if (line.contains("error")) return {.is_end = true};
  const json result = line.value("result", json::object());
  if (!result.is_object()) return {.has_unknown_changes = true};
  watch_line what;
  what.is_end = result.value("canceled", json()) == true;
  what.is_begin = result.value("created", json()) == true && !what.is_end;
  // A watch that goes on has its events of before behind this line, whose revision is the present
  // one.
  if (what.is_begin) what.present = revision_in(result.value("header", json::object()), "revision");
  if (what.is_begin && is_first) what.next = what.present + 1;
  const json events = result.value("events", json::array());
  for (const json& event : events) {
    if (const std::int64_t at = changed_in(event); at != 0) what.next = std::max(what.next, at + 1);
    if (!is_change(event)) continue;
    if (auto key = key_of(event))
      what.keys.push_back(*std::move(key));
    else
      what.has_unknown_changes = true;
  }
  return what;
}

}  // namespace

etcd_watch::etcd_watch(asio::io_context& io, const etcd_options& options, key_range watched,
                       std::function<void(const etcd_changes&)> hint, again how)
    : io_(io),
      gateway_(io, options),
      watched_(std::move(watched)),
      hint_(std::move(hint)),
      how_(how) {
  start(io_, run());
}

asio::awaitable<void> etcd_watch::run() {
  milliseconds pause = shortest_pause;
  for (;;) {
    json create{{"key", to_base64(watched_.first)},
                {"range_end", to_base64(watched_.end)},
                {"prev_kv", true}};
    if (next_ != 0) create["start_revision"] = std::to_string(next_);
    const json request{{"create_request", std::move(create)}};
    line_.clear();
    has_begun_ = false;
    is_refused_ = false;
    try {
      co_await gateway_.stream(
          "/v3/watch", request, [this](std::string_view part) { read(part); }, longest_watch);
    } catch (const etcd_error&) {
      // The transactions meet the same trouble, and report it.
    }
    // etcd has forgotten what was before, or is another one.
    if (is_refused_) next_ = 0;
    // etcd ends a watch with a bad token by a line of a good reply.
    if (is_refused_) gateway_.forget_token();
    pause = has_begun_ ? shortest_pause : std::min(2 * pause, longest_pause);
    asio::steady_timer next(io_, pause);
    co_await next.async_wait(asio::use_awaitable);
  }
}

/// Gives one hint for all changes that have come together.
void etcd_watch::read(std::string_view part) {
  etcd_changes all;
  line_ += part;
  std::size_t begin = 0;
  for (std::size_t end = 0; (end = line_.find('\n', begin)) != line_.npos; begin = end + 1) {
    const watch_line what =
        read_watch_line(std::string_view(line_).substr(begin, end - begin), next_ == 0);
    has_begun_ = has_begun_ || what.is_begin;
    is_refused_ = is_refused_ || what.is_end;
    // An etcd that was restored has not come to that revision yet, and says nothing until then.
    if (what.is_begin && what.present != 0 && what.present + 1 < next_) next_ = 0;
    const bool goes_on = next_ != 0;
    all.are_unknown = all.are_unknown || (what.is_begin && !goes_on) || what.has_unknown_changes;
    if (how_ == again::from_where_it_was) next_ = std::max(next_, what.next);
    all.keys.insert(all.keys.end(), what.keys.begin(), what.keys.end());
  }
  line_.erase(0, begin);
  if (line_.size() > longest_line) line_.clear();
  // libcurl has called this function.
  if (all.are_unknown || !all.keys.empty())
    asio::post(io_, [this, all = std::move(all)] { hint_(all); });
}

}  // namespace lockflight::cluster
