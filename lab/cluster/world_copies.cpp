#include <algorithm>

#include "lab/cluster/world.hpp"

namespace lockflight::cluster::sim {

/// The host's clients end, and no others come: what a client does between the copying and the
/// host's next renewal is lost where the copy is the one that renews (docs/cluster.md).
void world::copy_host(host& h) {
  for (int i = 0; i < plan_.clients; ++i) kill_client(h, i);
  h.was_copied = true;
  h.renewing = nullptr;
  h.renewals = 0;
  h.last_common = h.words->last_beat();
  copies_.push_back(std::make_unique<host>());
  host& copy = *copies_.back();
  copy.number = h.number;
  copy.id = h.id;
  copy.clock = h.clock;
  copy.is_up = true;
  copy.original = &h;
  copy.clients.resize(h.clients.size());
  copy.words = std::make_unique<memory>();
  copy.words->copy(*h.words);
  copy.words->draw_number = [this] { return ++numbers_of_beats_; };
  copy.words->on_change = [](const std::string&) {};
  copy.words->on_header = [] {};
  copy.words->on_record = [](const std::string&, const record&) {};
  after(random_.below(plan_.times.ttl / 4), [this, &copy] {
    if (copy.is_up) start_agent(copy);
  });
}

void world::end_copies(const host& h) {
  for (const auto& copy : copies_) {
    if (copy->original != &h) continue;
    copy->is_up = false;
    kill_agent(*copy);
  }
}

/// A host that has ended so is set up anew, as its message says.
void world::ends_as_copied(host& h) {
  say("host {}: {} ends, since the other one renews", h.number,
      h.original == nullptr ? "the agent" : "the agent of the copy");
  if (h.original != nullptr) return kill_agent(h);
  if (!h.was_copied)
    throw violation("copied", fmt::format("the agent of host {} ends as a copy", h.number));
  kill_host(h);
  after(random_.below(plan_.times.ttl), [this, &h] {
    if (!h.is_up) start_host(h);
  });
}

/// The beat of a host that waits to join renews nothing: its transaction compares that the host has
/// no other key, and makes none.
void world::check_copies(host& h, const transaction& done) {
  host& original = h.original == nullptr ? h : *h.original;
  if (!original.was_copied || h.id != original.id) return;
  const key member{key_kind::member, h.id};
  const bool is_member =
      std::ranges::any_of(done.puts, [&](const put& each) { return each.at == member; }) ||
      std::ranges::any_of(done.when, [&](const comparison& each) {
        return each.of == member && each.changed != 0;
      });
  for (const put& each : done.puts) {
    if (!is_member || each.at != key{key_kind::beat, h.id}) continue;
    const bool is_other = original.renewing != nullptr && original.renewing != &h;
    if (is_other && original.renewing->is_up)
      throw violation("copied", fmt::format("host {} and a copy of it both renew", h.number));
    const bool has_own_number = std::get<beat_value>(each.what).number != original.last_common;
    if (has_own_number || ++h.renewals > 1) original.renewing = &h;
  }
}

}  // namespace lockflight::cluster::sim
