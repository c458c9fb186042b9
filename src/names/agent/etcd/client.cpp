#include "names/agent/etcd/client.hpp"

#include <fmt/format.h>
#include <sys/random.h>

#include <cerrno>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "base/number.hpp"
#include "names/agent/etcd/base64.hpp"

namespace lockflight::cluster {
namespace {

using nlohmann::json;

constexpr const char* range_path = "/v3/kv/range";
constexpr const char* txn_path = "/v3/kv/txn";

// ---- requests ----

json range_of(const domain_keys& names) {
  return {{"key", to_base64(names.prefix())}, {"range_end", to_base64(names.end())}};
}

json comparison_of(const std::string& key, revision changed) {
  return {{"key", to_base64(key)},
          {"target", "MOD"},
          {"result", "EQUAL"},
          {"mod_revision", std::to_string(changed)}};
}

json put_of(const std::string& key, const std::string& text) {
  return {{"request_put", {{"key", to_base64(key)}, {"value", to_base64(text)}}}};
}

json read_of(const std::string& key) { return {{"request_range", {{"key", to_base64(key)}}}}; }

/// The reads with which each reply begins whose comparisons did not hold. They tell which etcd has
/// answered: one whose secret is another, or one from which somebody has deleted the secret.
json reads_of_identity(const domain_keys& names) {
  return json::array({read_of(names.secret()), read_of(names.text_of({key_kind::cluster}))});
}

/// The transaction, with `compare` before its own comparisons. Without any comparison, etcd carries
/// it out.
json txn_of(const transaction& what, json compare, const domain_keys& names, member_id self,
            const member_place& place) {
  for (const comparison& each : what.when)
    compare.push_back(comparison_of(names.text_of(each.of), each.changed));
  json success = json::array();
  for (const put& each : what.puts) {
    const bool is_own = each.at == key{key_kind::member, self};
    success.push_back(
        put_of(names.text_of(each.at), text_of(each.what, is_own ? &place : nullptr)));
  }
  for (const key& each : what.erased)
    success.push_back({{"request_delete_range", {{"key", to_base64(names.text_of(each))}}}});
  const json reads{{"request_range", range_of(names)}};
  success.push_back(reads);  // the read sees what the operations before it have done
  json failure = reads_of_identity(names);
  failure.push_back(reads);
  return {{"compare", compare}, {"success", success}, {"failure", failure}};
}

// ---- replies ----

/// etcd has answered something that this file does not know. It may have done what it was asked
/// for.
etcd_error no_reply_of_etcd(const std::string& what) {
  return {fate::unknown, "etcd's reply has " + what};
}

const json& part_of(const json& of, const char* name) {
  static const json none = json::object();
  const auto found = of.find(name);
  if (found == of.end()) return none;  // the gateway leaves out what is empty, zero or false
  if (!found->is_object() && !found->is_array())
    throw no_reply_of_etcd(std::string("no object in \"") + name + "\"");
  return *found;
}

template <class Number>
Number number_in(const json& of, const char* name) {
  const auto found = of.find(name);
  if (found == of.end()) return 0;
  if (found->is_number_integer()) return found->get<Number>();
  const auto read = found->is_string() ? read_number<Number>(found->get_ref<const std::string&>())
                                       : std::optional<Number>();
  if (!read) throw no_reply_of_etcd(std::string("no number in \"") + name + "\"");
  return *read;
}

std::string bytes_in(const json& of, const char* name) {
  const auto found = of.find(name);
  if (found == of.end()) return "";
  auto bytes = found->is_string() ? from_base64(found->get_ref<const std::string&>())
                                  : std::optional<std::string>();
  if (!bytes) throw no_reply_of_etcd(std::string("no base64 in \"") + name + "\"");
  return std::move(*bytes);
}

etcd_entry entry_in(const json& of) {
  if (!of.is_object()) throw no_reply_of_etcd("no object in \"kvs\"");
  return {bytes_in(of, "key"), bytes_in(of, "value"), number_in<revision>(of, "create_revision"),
          number_in<revision>(of, "mod_revision")};
}

bool has_succeeded(const json& reply) {
  const auto found = reply.find("succeeded");
  return found != reply.end() && found->is_boolean() && found->get<bool>();
}

/// The entry of a key that reads_of_identity() has read, in that place; nothing if it is missing.
std::optional<etcd_entry> identity_in(const json& reply, std::size_t place) {
  const json& responses = part_of(reply, "responses");
  if (!responses.is_array() || responses.size() <= place) throw no_reply_of_etcd("no secret");
  const json& found = part_of(part_of(responses[place], "response_range"), "kvs");
  if (found.empty()) return std::nullopt;
  return entry_in(found.front());
}

/// The range that a transaction has read last.
const json& range_in(const json& reply) {
  const json& responses = part_of(reply, "responses");
  if (!responses.is_array() || responses.empty() || !responses.back().contains("response_range"))
    throw no_reply_of_etcd("no range in \"responses\"");
  return part_of(responses.back(), "response_range");
}

// gcc 12 does not take such lists in the argument of a co_await.
json one_put(const std::string& key, const std::string& text) {
  return json::array({put_of(key, text)});
}

/// The value of the key `changes` for a note that was changed before in that revision.
std::string text_of_change(const std::string& note, revision after) {
  const json change{{"version", 1}, {"note", note}, {"after", after}};
  return change.dump(-1, ' ', false, json::error_handler_t::replace);  // a name is any bytes
}

domain_secret made_secret() {
  domain_secret secret{};
  const ssize_t got = getrandom(secret.data(), secret.size(), 0);
  if (got != static_cast<ssize_t>(secret.size()))
    throw std::system_error(errno, std::generic_category(), "reading random bytes");
  return secret;
}

}  // namespace

etcd_client::etcd_client(asio::io_context& io, const etcd_options& options,
                         const std::string& domain)
    : gateway_(io, options), names_(domain) {}

/// Posts a request about keys of the domain. If the user's role may not do that, the error says
/// which permission the role needs.
asio::awaitable<json> etcd_client::post(const char* path, const json& request, sending how) {
  try {
    co_return co_await gateway_.post(path, request, how);
  } catch (const etcd_error& e) {
    const std::string_view text = e.what();
    if (text.find("permission denied") == text.npos) throw;
    throw etcd_error(e.request(), std::string(text) +
                                      ": the role of the user needs the permission readwrite for "
                                      "the prefix " +
                                      names_.prefix());
  }
}

std::shared_ptr<const etcd_view> etcd_client::view_in(const json& header, const json& range) const {
  auto view = std::make_shared<etcd_view>();
  view->keys.at = number_in<revision>(header, "revision");
  view->cluster = number_in<std::uint64_t>(header, "cluster_id");
  view->term = number_in<std::uint64_t>(header, "raft_term");
  for (const json& each : part_of(range, "kvs")) add(entry_in(each), names_, *view);
  if (view->keys.at == 0) throw no_reply_of_etcd("no revision");
  return view;
}

json etcd_client::comparisons() const {
  if (secret_.empty()) return json::array();
  return json::array({{{"key", to_base64(names_.secret())},
                       {"target", "VALUE"},
                       {"result", "EQUAL"},
                       {"value", to_base64(secret_)}}});
}

/// Throws if the transaction's comparison of the secret has failed.
void etcd_client::require_secret_in(const json& reply) {
  if (secret_.empty() || has_succeeded(reply)) return;
  const auto secret = identity_in(reply, 0);
  if (secret && secret->value == secret_) return;
  etcd_view there;
  if (const auto cluster = identity_in(reply, 1)) add(*cluster, names_, there);
  const std::string where = gateway_.endpoint();
  gateway_.avoid_endpoint();
  if (cluster_.id != 0 && there.keys.cluster && there.keys.cluster->what == cluster_)
    throw etcd_error(fate::unreached,
                     fmt::format("{}: somebody has deleted the key {}: restart the agents of all "
                                 "hosts, the first of which makes another one",
                                 where, names_.secret()));
  throw another_etcd(
      fate::unreached,
      fmt::format("{} is of another etcd than the one that this agent began with: its key {} is {}",
                  where, names_.secret(), secret ? "another" : "missing"));
}

/// Posts a transaction that compares the secret.
asio::awaitable<json> etcd_client::transact(json request, sending how) {
  json reply = co_await post(txn_path, request, how);
  require_secret_in(reply);
  co_return reply;
}

/// Remembers which cluster the keys are of that this object has read first, or in a transaction
/// that has compared the secret.
void etcd_client::note_cluster(const etcd_view& view) {
  if (view.keys.cluster) cluster_ = view.keys.cluster->what;
}

asio::awaitable<etcd_answer> etcd_client::carry_out(const transaction& what, member_id self,
                                                    const member_place& place) {
  const bool only_reads = what.puts.empty() && what.erased.empty();
  json request = txn_of(what, comparisons(), names_, self, place);
  const json reply =
      co_await transact(std::move(request), only_reads ? sending::repeatable : sending::once);
  etcd_answer got;
  got.view = view_in(part_of(reply, "header"), range_in(reply));
  note_cluster(*got.view);
  got.what = {has_succeeded(reply), std::shared_ptr<const snapshot>(got.view, &got.view->keys)};
  co_return got;
}

asio::awaitable<std::shared_ptr<const etcd_view>> etcd_client::read_view() {
  const json request = range_of(names_);
  const json reply = co_await post(range_path, request, sending::repeatable);
  auto view = view_in(part_of(reply, "header"), reply);
  if (cluster_.id == 0) note_cluster(*view);
  co_return view;
}

asio::awaitable<etcd_status> etcd_client::ping() {
  const json request = json::object();
  const json reply = co_await gateway_.post("/v3/maintenance/status", request, sending::repeatable);
  const auto version = reply.find("version");
  co_return etcd_status{
      gateway_.endpoint(),
      version != reply.end() && version->is_string() ? version->get<std::string>() : "",
      number_in<std::uint64_t>(part_of(reply, "header"), "cluster_id"),
      number_in<std::uint64_t>(reply, "leader")};
}

asio::awaitable<std::optional<etcd_entry>> etcd_client::entry(const std::string& key) {
  json request{{"compare", comparisons()},
               {"success", json::array({read_of(key)})},
               {"failure", reads_of_identity(names_)}};
  const json reply = co_await transact(std::move(request), sending::repeatable);
  const json& found = part_of(range_in(reply), "kvs");
  if (found.empty()) co_return std::nullopt;
  co_return entry_in(found.front());
}

asio::awaitable<json> etcd_client::put_if_changed(const std::string& key, revision changed,
                                                  json puts, sending how) {
  json compare = comparisons();
  compare.push_back(comparison_of(key, changed));
  json request{
      {"compare", compare}, {"success", std::move(puts)}, {"failure", reads_of_identity(names_)}};
  return transact(std::move(request), how);
}

/// Sent twice the request does no harm, and whether it was carried out does not matter: what counts
/// is what stands there afterwards, which may be another agent's.
asio::awaitable<void> etcd_client::make_secret() {
  const std::string made = text_of(made_secret());
  static_cast<void>(co_await put_if_changed(names_.secret(), 0, one_put(names_.secret(), made),
                                            sending::repeatable));
}

/// The value of the secret's key, which is made if there is none.
asio::awaitable<std::string> etcd_client::secret_entry() {
  const std::string key = names_.secret();
  std::optional<etcd_entry> found = co_await entry(key);
  if (!found) {
    co_await make_secret();
    found = co_await entry(key);
  }
  if (!found) throw etcd_error(fate::unknown, "etcd has lost the key " + in_quotes(key, 160));
  co_return std::move(found->value);
}

asio::awaitable<domain_secret> etcd_client::secret() {
  const std::string text = co_await secret_entry();
  const domain_secret secret = read_secret(names_.secret(), text);
  require(text);
  co_return secret;
}

asio::awaitable<std::optional<etcd_note>> etcd_client::get(const std::string& note) {
  const std::string key = names_.note(note);
  std::optional<etcd_entry> found = co_await entry(key);
  if (!found) co_return std::nullopt;
  co_return etcd_note{std::move(found->value), found->changed};
}

asio::awaitable<std::optional<revision>> etcd_client::put_if(const std::string& note,
                                                             revision changed,
                                                             const std::string& text) {
  const std::string key = names_.note(note);
  const json reply = co_await put_if_changed(key, changed, one_put(key, text), sending::once);
  if (!has_succeeded(reply)) co_return std::nullopt;
  co_return number_in<revision>(part_of(reply, "header"), "revision");
}

// The value is another one each time: a watch leaves out a key that is written as it was.
asio::awaitable<std::optional<revision>> etcd_client::put_if_and_tell(const std::string& note,
                                                                      revision changed,
                                                                      const std::string& text) {
  const std::string key = names_.note(note);
  json puts = one_put(key, text);
  puts.push_back(put_of(names_.changes(), text_of_change(note, changed)));
  const json reply = co_await put_if_changed(key, changed, std::move(puts), sending::once);
  if (!has_succeeded(reply)) co_return std::nullopt;
  co_return number_in<revision>(part_of(reply, "header"), "revision");
}

}  // namespace lockflight::cluster
