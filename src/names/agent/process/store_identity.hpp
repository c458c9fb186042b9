// The etcd that an agent has seen last, on disk. An etcd that was set up anew or restored from a
// copy does not know of deadlines that members still trust, so no agent goes on with it
// (docs/cluster.md, "Running it").
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "names/agent/etcd/text.hpp"
#include "names/cluster/core/keys.hpp"

namespace lockflight::cluster {

struct store_identity {
  std::uint64_t cluster = 0;
  revision at = 0;
  epoch_number epoch = 0;
  cluster_value domain{};  ///< its id is 0 if it is not known, as in notes of earlier versions
  /// The seals of the last epochs. The note has the one of its epoch, or none.
  std::vector<epoch_seal> seals{};
  /// True if this host was a member in that epoch or in one before. An agent that starts notes its
  /// etcd before its host is one.
  bool was_member = false;
  std::chrono::milliseconds ttl{0};  ///< of this host as a member; 0: not known

  /// Why an agent that has seen this must not go on with `now`, or nothing.
  [[nodiscard]] std::optional<std::string> refuses(const store_identity& now) const;
};

/// The identity that the keys show; the keys do not show the last two fields.
[[nodiscard]] store_identity identity_of(const etcd_view& view);

/// The file of a domain in that folder, which is made.
class store_identity_file {
 public:
  /// Throws std::runtime_error.
  store_identity_file(const std::string& folder, const std::string& domain);

  [[nodiscard]] const std::string& path() const { return path_; }
  /// Nothing if there is no file. Throws std::runtime_error if it says nothing that can be read.
  [[nodiscard]] std::optional<store_identity> read() const;
  /// False if it cannot be written; errno says why.
  [[nodiscard]] bool write(const store_identity& what) const;

 private:
  std::string path_;
};

}  // namespace lockflight::cluster
