#include "names/agent/process/store_identity.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <system_error>

#include "base/replaced_file.hpp"

namespace lockflight::cluster {

std::optional<std::string> store_identity::refuses(const store_identity& now) const {
  const bool is_known = domain.id != 0 && now.domain.id != 0;
  if (is_known && domain.id != now.domain.id)
    return fmt::format("its domain has the number {}, and this host's had {}",
                       text_of(now.domain.id), text_of(domain.id));
  if (now.epoch < epoch) return fmt::format("its epoch is {}, and was {} before", now.epoch, epoch);
  // An operator has recovered the cluster with this etcd, in an epoch above all known ones.
  if (is_known && now.domain.recoveries > domain.recoveries) return std::nullopt;
  if (is_known && now.domain.recoveries < domain.recoveries)
    return fmt::format("it was recovered {} times, and {} times before", now.domain.recoveries,
                       domain.recoveries);
  for (const epoch_seal& then : seals)
    for (const epoch_seal& each : now.seals)
      if (each.epoch == then.epoch && each.drawn != then.drawn)
        return fmt::format("its epoch {} is not the one that this host was in", then.epoch);
  if (now.cluster != cluster)
    return fmt::format("it is cluster {:x}, and this host was a member in cluster {:x}",
                       now.cluster, cluster);
  if (now.at < at) return fmt::format("its revision is {}, and was {} before", now.at, at);
  return std::nullopt;
}

store_identity identity_of(const etcd_view& view) {
  return {view.cluster,
          view.keys.at,
          view.keys.epoch ? view.keys.epoch->what.number : 0,
          view.keys.cluster ? view.keys.cluster->what : cluster_value{},
          view.keys.epoch ? view.keys.epoch->what.seals : std::vector<epoch_seal>(),
          false,
          std::chrono::milliseconds(0)};
}

store_identity_file::store_identity_file(const std::string& folder, const std::string& domain)
    : path_(folder + "/" + domain + ".json") {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw std::runtime_error(folder + ": cannot be made: " + error.message());
}

std::optional<store_identity> store_identity_file::read() const {
  std::ifstream in(path_);
  if (!in && errno == ENOENT) return std::nullopt;
  if (!in)
    throw std::runtime_error(
        fmt::format("{}: cannot be read: {}", path_, std::generic_category().message(errno)));
  try {
    const auto text = nlohmann::json::parse(in);
    const auto epoch = text.at("epoch").get<epoch_number>();
    const auto drawn = text.value("seal", std::uint32_t{0});
    return store_identity{
        text.at("cluster").get<std::uint64_t>(),
        text.at("revision").get<revision>(),
        epoch,
        {text.value("domain", std::uint64_t{0}), text.value("recoveries", std::uint32_t{0})},
        drawn == 0 ? std::vector<epoch_seal>() : std::vector{epoch_seal{epoch, drawn}},
        text.value("member", true),  // earlier versions did not write it
        std::chrono::milliseconds(text.value("ttl_ms", std::int64_t{0}))};
  } catch (const nlohmann::json::exception& e) {
    throw std::runtime_error(
        fmt::format("{}: does not say which etcd this host was a member in (accepted: what the "
                    "agent has written there, or no file)",
                    path_));
  }
}

bool store_identity_file::write(const store_identity& what) const {
  const std::string text =
      nlohmann::ordered_json{{"cluster", what.cluster},
                             {"revision", what.at},
                             {"epoch", what.epoch},
                             {"domain", what.domain.id},
                             {"recoveries", what.domain.recoveries},
                             {"seal", what.seals.empty() ? 0 : what.seals.back().drawn},
                             {"member", what.was_member},
                             {"ttl_ms", what.ttl.count()}}
          .dump() +
      "\n";
  return replace_file(path_, text, 0600, durability::disk);
}

}  // namespace lockflight::cluster
