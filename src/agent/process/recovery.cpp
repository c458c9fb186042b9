#include "agent/process/recovery.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/number.hpp"
#include "base/random_number.hpp"

namespace lockflight::cluster {
namespace {

using std::chrono::milliseconds;

epoch_number epoch_in(const etcd_view& view) {
  return view.keys.epoch ? view.keys.epoch->what.number : 0;
}

/// The TTL of the cluster: etcd's note, or what this host's domain file has of it.
milliseconds ttl_from(etcd_client& etcd, const detail::domain_file& file) {
  const auto note = etcd.get(ttl_note);
  if (const auto read = read_number<std::int64_t>(note ? note->text : ""))
    return milliseconds(*read);
  const instant known = file.cluster().time_to_live;
  return known > 0 ? milliseconds(known / 1'000) : usual_ttl;
}

}  // namespace

recovery::recovery(const agent_options& options, epoch_number above)
    : options_(options),
      file_(open_file_as_agent(options)),
      identity_file_(options.state_folder, options.domain),
      noted_(identity_file_.read()),
      etcd_(options.etcd, options.domain),
      before_(etcd_.read_view()),
      ttl_(ttl_from(etcd_, *file_)) {
  if (!noted_ && above == 0)
    throw agent_error(fmt::format(
        "{}: there is no note of an earlier etcd, so this host was no member (accepted: recover on a "
        "host that was one, or --above with an epoch that is at least as great as the last one)",
        identity_file_.path()));
  const epoch_number last = std::max({epoch_in(*before_), noted_ ? noted_->epoch : 0, above});
  if (last > last_epoch - epochs_left_out)
    throw agent_error(
        fmt::format("the last epoch was {}, and none is left above it (at most {}): "
                    "set up a domain of another name",
                    last, last_epoch));
  next_ = last + epochs_left_out;
  if (before_->keys.cluster) cluster_ = before_->keys.cluster->what;
  if (noted_ && noted_->domain.id != 0) cluster_.id = noted_->domain.id;
  if (noted_) cluster_.recoveries = std::max(cluster_.recoveries, noted_->domain.recoveries);
  if (cluster_.id == 0) cluster_.id = random_number();
  ++cluster_.recoveries;
}

std::vector<std::string> recovery::plan() const {
  const epoch_number noted = noted_ ? noted_->epoch : 0;
  return {
      fmt::format(
          "domain {}: etcd is in epoch {}, and this host has noted epoch {}; the next epoch "
          "will be {}",
          options_.domain, epoch_in(*before_), noted, next_),
      fmt::format(
          "first it waits for {} s, the time to live, so that no host relies on the etcd of "
          "before; the agents of all hosts have to have ended",
          static_cast<double>(ttl_.count()) / 1'000),
      "kept: the time to live, the pre-shared key, the N of semaphores and the slots of --once-per, "
      "as this etcd has them; tokens grow on",
      "told: the first holder of each name is told of a death, until 'lockflight agent consistent'",
      "not kept: what was noted after the copy of etcd was made, such as a slot of --once-per, "
      "whose COMMAND may run once more, and the N of semaphores that were new"};
}

void recovery::carry_out() {
  const auto seen = etcd_.read_view();
  for (const auto& [id, keys] : seen->keys.members) {
    const member_keys* const then = before_->keys.find(id);
    const revision changed = then != nullptr && then->beat ? then->beat->changed : 0;
    if (!keys.beat || keys.beat->changed == changed) continue;
    const auto host = seen->hosts.find(id);
    throw agent_error(fmt::format("the agent of member {} ({}) has renewed: it has not ended",
                                  text_of(id), host == seen->hosts.end() ? "" : host->second));
  }
  const domain_secret secret = etcd_.secret();
  static_cast<void>(secret);  // made, if this etcd is a new one
  static_cast<void>(etcd_.put_if(ttl_note, 0, std::to_string(ttl_.count())));
  erase_members(*seen);
  // No host knows which members were homes, so each name is in doubt.
  past_epoch all_in_doubt;
  all_in_doubt.number = next_ - 1;
  all_in_doubt.passed_on = true;
  transaction recovers;
  recovers.when = {{{key_kind::epoch}, seen->keys.epoch ? seen->keys.epoch->changed : 0},
                   {{key_kind::cluster}, seen->keys.cluster ? seen->keys.cluster->changed : 0}};
  recovers.puts = {{{key_kind::epoch}, epoch_value{next_, {}, {all_in_doubt}, true}},
                   {{key_kind::cluster}, cluster_}};
  const etcd_answer done = etcd_.carry_out(recovers, 0, {});
  if (!done.what.succeeded)
    throw agent_error(
        "etcd's epoch has changed meanwhile: the agent of another host has not ended");
  if (!identity_file_.write(identity_of(*done.view)))
    throw agent_error(
        fmt::format("{}: cannot be written: {}", identity_file_.path(), std::strerror(errno)));
}

/// In pieces: etcd carries out 128 operations in a transaction, unless it is told otherwise.
void recovery::erase_members(const etcd_view& seen) {
  constexpr std::size_t at_once = 90;
  std::vector<key> keys;
  for (const auto& [id, each] : seen.keys.members)
    keys.insert(keys.end(),
                {{key_kind::member, id}, {key_kind::beat, id}, {key_kind::evicted, id}});
  for (std::size_t first = 0; first < keys.size(); first += at_once) {
    const auto begin = keys.begin() + static_cast<std::ptrdiff_t>(first);
    const auto end =
        keys.begin() + static_cast<std::ptrdiff_t>(std::min(first + at_once, keys.size()));
    static_cast<void>(etcd_.carry_out({{}, {}, {begin, end}}, 0, {}));
  }
}

}  // namespace lockflight::cluster
