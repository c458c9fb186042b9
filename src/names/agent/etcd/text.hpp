// The keys and values of a domain as etcd has them: text.
//
// All keys of the domain D begin with `lockflight/D/`. ID is a member's number, 16 hexadecimal
// digits, small letters. Each value is a JSON object; `version` is that of its format.
//
//   epoch        {"version":1,"number":N,"settled":B,
//                 "members":[{"id":"ID","incarnation":N,"agent":N,"retires":B}],
//                 "past":[{"number":N,"passed_on":B,
//                          "members":[{"id":"ID","incarnation":N}], "gone":[the same]}],
//                 "seals":[{"epoch":N,"drawn":N}]}
//   member/ID    {"version":1,"incarnation":N,"agent":N,"retires":B,"address":"HOST:PORT",
//                 "host":"NAME"}
//   beat/ID      {"version":1,"begun":N,"missing":["ID"],"number":N}
//   evicted/ID   {"version":1}
//   cluster      {"version":1,"id":"ID","recoveries":N}
//   secret       {"version":1,"key":"64 hexadecimal digits"}
//   note/NAME    anything: `ttl` has milliseconds, `done/LOCK` "UNTIL TOKEN", and `value/LOCK` what
//                names/agent/process/notes.cpp says
//
// A later version may add fields and keys, which this one ignores. If it changes what a field means
// it writes another `version`, which this one refuses.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "base/visible_text.hpp"
#include "names/cluster/core/keys.hpp"

namespace lockflight::cluster {

/// The address at which a member's agent is reached, and the name of its host. The core knows
/// neither.
struct member_place {
  std::string address;  ///< HOST:PORT
  std::string host;
};

/// A key or a value that is not of the format. The message names both, and what is expected.
struct bad_entry : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Throws std::invalid_argument that says which field is wrong, and what is expected.
void check_place(const member_place& place);

// ---- keys ----

/// Keys in the order of bytes, the first one and the first one behind the last.
struct key_range {
  std::string first;
  std::string end;
};

/// The keys of one domain.
class domain_keys {
 public:
  /// Throws std::invalid_argument for a domain that is not 1 to 64 letters, digits, `.`, `-`, `_`.
  explicit domain_keys(const std::string& domain);

  [[nodiscard]] const std::string& prefix() const { return prefix_; }
  /// The first key after all those of the core. Each renewal reads what is before it, and each
  /// change there is a hint. The notes are not: there may be one for each name.
  [[nodiscard]] std::string end() const;
  [[nodiscard]] std::string text_of(const key& which) const;
  [[nodiscard]] std::string secret() const { return prefix_ + "secret"; }
  /// The keys of the core, and those of the notes about names: `done/NAME`, `value/NAME`, and what
  /// lies between in the order of bytes.
  [[nodiscard]] key_range core() const { return {prefix_, end()}; }
  [[nodiscard]] key_range of_names() const { return {end() + "done/", end() + "value0"}; }
  /// Throws std::invalid_argument for a name that is empty or has more than 300 bytes.
  [[nodiscard]] std::string note(const std::string& name) const;

 private:
  std::string prefix_;
};

// ---- values ----

/// `place` is that of the member whose value it is. Other kinds of values do not have it, nor does
/// a member's without one.
[[nodiscard]] std::string text_of(const value& what, const member_place* place = nullptr);

using domain_secret = std::array<std::uint8_t, 32>;
[[nodiscard]] std::string text_of(const domain_secret& secret);
/// Throws bad_entry.
[[nodiscard]] domain_secret read_secret(std::string_view key, std::string_view text);

// ---- all of a domain ----

/// All keys of a domain in one revision.
struct etcd_view {
  snapshot keys;
  std::map<member_id, std::string> addresses;  ///< of the members whose key has one
  std::map<member_id, std::string> hosts;
  std::uint64_t cluster = 0;  ///< etcd's cluster: another one was set up anew, or is restored
  std::uint64_t term = 0;     ///< of etcd's leader
};

/// A key with its value, as etcd has them.
struct etcd_entry {
  std::string key;
  std::string value;
  revision created = 0;
  revision changed = 0;
};

/// Throws bad_entry. Ignores a key that is not the core's.
void add(const etcd_entry& entry, const domain_keys& names, etcd_view& to);

}  // namespace lockflight::cluster
