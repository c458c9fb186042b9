// The keys of one domain in etcd, by requests that an event loop carries out.
//
// Every function throws etcd_error when etcd does not do what it is asked for, and bad_entry when
// what is there is not of the format (text.hpp). Only transactions and notes are never sent twice:
// the caller decides what follows when nobody knows whether they were carried out.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "names/agent/etcd/gateway.hpp"
#include "names/agent/etcd/text.hpp"
#include "names/cluster/core/effects.hpp"

namespace lockflight::cluster {

/// The answer to a transaction, and all that was read with it. `what.seen` is part of `view`.
struct etcd_answer {
  answer what;
  std::shared_ptr<const etcd_view> view;
};

/// The status that an endpoint of etcd reports.
struct etcd_status {
  std::string endpoint;
  std::string version;
  std::uint64_t cluster = 0;
  std::uint64_t leader = 0;  ///< the member of etcd; 0 if there is none
};

/// Thrown for a request to an endpoint of another etcd, which has not carried out the request.
class another_etcd : public etcd_error {
 public:
  using etcd_error::etcd_error;
};

struct etcd_note {
  std::string text;
  revision changed = 0;
};

/// A client carries out one request at a time. The coroutine of a request that has not ended when
/// the client is destroyed must not be resumed.
class etcd_client {
 public:
  /// Throws std::invalid_argument.
  etcd_client(asio::io_context& io, const etcd_options& options, const std::string& domain);

  /// Sends one HTTP request. `place` becomes part of the value of the member `self`.
  [[nodiscard]] asio::awaitable<etcd_answer> carry_out(const transaction& what, member_id self,
                                                       const member_place& place);
  [[nodiscard]] asio::awaitable<std::shared_ptr<const etcd_view>> read_view();
  /// The domain's secret, which is the pre-shared key of its agents. The first agent that asks
  /// makes it. From then on each request of this object but read_view() compares the secret, so
  /// that an etcd with another one does not carry it out: etcds that were set up apart may have
  /// equal cluster ids, and have different secrets.
  [[nodiscard]] asio::awaitable<domain_secret> secret();
  /// From now on each request but read_view() compares the secret, as after secret(). `secret_text`
  /// is the value of the secret's key in etcd.
  void require(const std::string& secret_text) { secret_ = secret_text; }
  [[nodiscard]] const std::string& secret_text() const { return secret_; }
  /// The first endpoint that answers.
  [[nodiscard]] asio::awaitable<etcd_status> ping();
  /// True if etcd wants users to authenticate. Without, everyone who reaches it is a member.
  [[nodiscard]] asio::awaitable<bool> has_authentication() { return gateway_.has_authentication(); }

  [[nodiscard]] asio::awaitable<std::optional<etcd_note>> get(const std::string& note);
  /// Writes the note if it was changed last in that revision; 0: if there is none. Returns the
  /// revision in which it was written, or none if the note was another.
  [[nodiscard]] asio::awaitable<std::optional<revision>> put_if(const std::string& note,
                                                                revision changed,
                                                                const std::string& text);

  /// As put_if(), and changes the key `changes` with it, so that all agents learn of the note.
  [[nodiscard]] asio::awaitable<std::optional<revision>> put_if_and_tell(const std::string& note,
                                                                         revision changed,
                                                                         const std::string& text);

  /// See etcd_gateway.
  void limit_to(std::chrono::milliseconds limit) { gateway_.limit_to(limit); }

 private:
  using json = nlohmann::json;

  [[nodiscard]] asio::awaitable<json> post(const char* path, const json& request, sending how);
  [[nodiscard]] asio::awaitable<std::optional<etcd_entry>> entry(const std::string& key);
  [[nodiscard]] asio::awaitable<json> put_if_changed(const std::string& key, revision changed,
                                                     json puts, sending how);
  [[nodiscard]] std::shared_ptr<const etcd_view> view_in(const json& header,
                                                         const json& range) const;

  [[nodiscard]] asio::awaitable<void> make_secret();
  [[nodiscard]] asio::awaitable<std::string> secret_entry();
  void note_cluster(const etcd_view& view);
  [[nodiscard]] json comparisons() const;
  void require_secret_in(const json& reply);
  [[nodiscard]] asio::awaitable<json> transact(json request, sending how);

  etcd_gateway gateway_;
  domain_keys names_;
  std::string secret_;     ///< the value of the secret's key in etcd; empty: not known yet
  cluster_value cluster_;  ///< its id is 0: not known yet
};

}  // namespace lockflight::cluster
