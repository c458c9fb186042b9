#include "names/agent/process/recovery.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include "base/random_number.hpp"

namespace lockflight::cluster {
namespace {

using std::chrono::milliseconds;

epoch_number epoch_in(const etcd_view& view) {
  return view.keys.epoch ? view.keys.epoch->what.number : 0;
}

/// The revision in which a key was changed last; 0 if there is none.
template <class Value>
revision changed_in(const std::optional<stored<Value>>& key) {
  return key ? key->changed : 0;
}

/// True if one of the member's keys is new or another than before. An agent that has not ended, or
/// has begun, writes one of them; a key that is gone was erased by somebody else.
bool is_written_since(const member_keys& now, const member_keys* before) {
  const member_keys none;
  const member_keys& then = before != nullptr ? *before : none;
  return (now.member && now.member->changed != changed_in(then.member)) ||
         (now.beat && now.beat->changed != changed_in(then.beat));
}

/// Throws agent_error if an agent, or another recovery, has written keys between the two views.
void require_no_other_writer(const etcd_view& before, const etcd_view& now) {
  if (changed_in(now.keys.epoch) != changed_in(before.keys.epoch) ||
      changed_in(now.keys.cluster) != changed_in(before.keys.cluster))
    throw agent_error(fmt::format(
        "etcd has epoch {}, which another recovery or an agent has written since this recovery "
        "began: 'lockflight agent recover' is for one host, when the agents of all have ended",
        epoch_in(now)));
  for (const auto& [id, keys] : now.keys.members) {
    if (!is_written_since(keys, before.keys.find(id))) continue;
    const auto host = now.hosts.find(id);
    throw agent_error(
        fmt::format("the agent of member {} ({}) has written its keys: it has not ended",
                    text_of(id), host == now.hosts.end() ? "" : host->second));
  }
}

/// The longest TTL that this host may have relied on, or that etcd says. An etcd that was restored
/// may have an older note with a shorter one, and one that was set up anew has none.
milliseconds longest_ttl(const std::optional<etcd_note>& note, const std::string& domain,
                         const detail::domain_file& file,
                         const std::optional<store_identity>& noted) {
  const milliseconds in_etcd = ttl_in(note, domain).value_or(milliseconds(0));
  // Clients may have written over the word in the domain file.
  const milliseconds in_file =
      std::min(milliseconds(file.cluster().time_to_live / 1'000), most_ttl);
  const milliseconds in_note = noted ? noted->ttl : milliseconds(0);
  const milliseconds longest = std::max({in_etcd, in_file, in_note});
  return longest.count() > 0 ? longest : usual_ttl;
}

}  // namespace

recovery::recovery(const agent_options& options, epoch_number above)
    : options_(options),
      file_(open_file_as_agent(options)),
      identity_file_(options.state_folder, options.domain),
      noted_(identity_file_.read()),
      etcd_(io_, options.etcd, options.domain),
      before_(wait_for(io_, etcd_.read_view())),
      ttl_(longest_ttl(wait_for(io_, etcd_.get(ttl_note)), options.domain, *file_, noted_)) {
  const bool knows_epoch = noted_ && noted_->was_member;
  const bool knows_cluster = file_->cluster().cluster != 0;
  if (!knows_epoch && (above == 0 || !knows_cluster))
    throw agent_error(
        fmt::format("{}: there is no note of an epoch in which this host was a member (accepted: "
                    "recover on a host that was one)",
                    identity_file_.path()));
  const epoch_number last = std::max({epoch_in(*before_), noted_ ? noted_->epoch : 0, above});
  if (last > last_epoch - epochs_left_out)
    throw agent_error(
        fmt::format("the last epoch was {}, and none is left above it (at most {}): "
                    "set up a domain of another name",
                    last, last_epoch));
  next_ = last + epochs_left_out;
  cluster_ = cluster_to_go_on();
}

/// The other hosts have noted the id of the cluster that this host was in, and refuse another one.
cluster_value recovery::cluster_to_go_on() const {
  const cluster_value in_file{file_->cluster().cluster, file_->cluster().recoveries};
  const cluster_value in_note = noted_ ? noted_->domain : cluster_value{};
  const cluster_value in_etcd =
      before_->keys.cluster ? before_->keys.cluster->what : cluster_value{};
  const bool knows_epoch = noted_ && noted_->was_member;
  std::uint64_t id = knows_epoch && in_note.id != 0 ? in_note.id : in_file.id;
  if (id == 0) id = in_etcd.id;
  if (id == 0) id = random_number();  // agents of earlier versions made no id
  return {id, std::max({in_file.recoveries, in_note.recoveries, in_etcd.recoveries}) + 1};
}

bool recovery::is_needed() const {
  const bool is_same_cluster = noted_ && before_->keys.cluster && noted_->was_member &&
                               before_->keys.cluster->what.id == noted_->domain.id;
  return !is_same_cluster || noted_->refuses(identity_of(*before_)).has_value();
}

std::vector<std::string> recovery::plan() const {
  const epoch_number noted = noted_ ? noted_->epoch : 0;
  std::vector<std::string> lines;
  if (!is_needed())
    lines.emplace_back(
        "nothing has to be recovered: this etcd is the one that this host noted last");
  lines.insert(
      lines.end(),
      {fmt::format(
           "domain {}: etcd is in epoch {}, and this host has noted epoch {}; the next epoch "
           "will be {}",
           options_.domain, epoch_in(*before_), noted, next_),
       fmt::format(
           "first it waits for {} s, the time to live, so that no host relies on the etcd of "
           "before; the agents of all hosts have to have ended",
           static_cast<double>(ttl_.count()) / 1'000),
       "kept: the time to live, the pre-shared key, the N of semaphores and the periods of --every, "
       "as this etcd has them; tokens grow on",
       "told: the first holder of each name is told of a death, until 'lockflight agent consistent'",
       "not kept: what was noted after the copy of etcd was made, such as a period of --every, "
       "whose COMMAND may run once more, and the N of semaphores that were new"});
  return lines;
}

std::optional<std::string> recovery::carry_out() {
  const auto seen = wait_for(io_, etcd_.read_view());
  require_no_other_writer(*before_, *seen);
  const domain_secret secret = wait_for(io_, etcd_.secret());
  static_cast<void>(secret);  // made, if this etcd is a new one
  static_cast<void>(wait_for(io_, etcd_.put_if(ttl_note, 0, std::to_string(ttl_.count()))));
  erase_members(*seen);
  // No host knows which members were homes, so each name is in doubt.
  past_epoch all_in_doubt;
  all_in_doubt.number = next_ - 1;
  all_in_doubt.passed_on = true;
  const etcd_answer done =
      write(*seen, {{{{key_kind::epoch}, changed_in(seen->keys.epoch)},
                     {{key_kind::cluster}, changed_in(seen->keys.cluster)}},
                    {{{key_kind::epoch}, epoch_value{next_, {}, {all_in_doubt}, true}},
                     {{key_kind::cluster}, cluster_}},
                    {}});
  store_identity now = identity_of(*done.view);
  now.was_member = true;  // this host knows the last epoch
  now.ttl = ttl_;
  if (identity_file_.write(now)) return std::nullopt;
  return fmt::format("{}: cannot be written: {}", identity_file_.path(), std::strerror(errno));
}

/// Carries out a transaction that compares keys as they were in `seen`. Throws agent_error if they
/// are others.
etcd_answer recovery::write(const etcd_view& seen, const transaction& what) {
  etcd_answer done = wait_for(io_, etcd_.carry_out(what, 0, {}));
  if (done.what.succeeded) return done;
  require_no_other_writer(seen, *done.view);
  throw agent_error(
      "another recovery or an agent has erased keys of members since this recovery began");
}

/// An agent that starts after the keys were read is not erased: it would believe that it is a
/// member.
void recovery::erase_members(const etcd_view& seen) {
  auto next = seen.keys.members.begin();
  while (next != seen.keys.members.end()) {
    transaction erases;
    for (std::size_t i = 0; i < members_erased_at_once && next != seen.keys.members.end();
         ++i, ++next) {
      const auto& [id, keys] = *next;
      erases.when.insert(erases.when.end(), {{{key_kind::member, id}, changed_in(keys.member)},
                                             {{key_kind::beat, id}, changed_in(keys.beat)}});
      erases.erased.insert(erases.erased.end(),
                           {{key_kind::member, id}, {key_kind::beat, id}, {key_kind::evicted, id}});
    }
    static_cast<void>(write(seen, erases));
  }
}

}  // namespace lockflight::cluster
