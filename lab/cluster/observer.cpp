#include "lab/cluster/observer.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "lab/cluster/text.hpp"

namespace lockflight::cluster::sim {
void observer::check_exclusion(const std::string& name, const history& of, true_time now) {
  const holder* exclusive = nullptr;
  const holder* other = nullptr;
  for (const holder& each : of.inside) {
    if (!each.is_valid(now)) continue;
    if (each.as == mode::exclusive && exclusive == nullptr)
      exclusive = &each;
    else
      other = &each;
  }
  if (exclusive != nullptr && other != nullptr)
    throw violation("mutual exclusion", fmt::format("clients {} and {} hold '{}'",
                                                    exclusive->client, other->client, name));
}

void observer::check_all(true_time now) {
  for (auto& [name, of] : of_name_) {
    tell_losses(of, now);
    if (of.inside.size() > 1) check_exclusion(name, of, now);
  }
}

// A timer of the host has told a holder at the moment that the header gave before it changed. If
// the new moment is past, the agent has the holder told at once.
void observer::tell_losses(history& of, true_time now) const {
  for (holder& each : of.inside) {
    if (each.told) continue;
    const instant clock = each.clock->at(now);
    if (each.loss_time <= clock) {
      each.told = each.loss_time;
      continue;
    }
    each.loss_time = each.what->loss_time();
    if (each.loss_time <= clock) each.told = clock;
  }
}

void observer::check_told(const std::string& name, const history& of, const holder& who,
                          true_time now) const {
  for (const holder& each : of.inside) {
    if (each.client == who.client || (each.as == mode::shared && who.as == mode::shared)) continue;
    if (!each.told || *each.told > each.clock->at(now) - ttl_ / 10)
      throw violation("loss", fmt::format("client {} was not told in time that it has lost '{}', "
                                          "and client {} enters",
                                          each.client, name, who.client));
  }
}

void observer::entered(const std::string& name, holder who, true_time now) {
  ++entries_;
  history& of = of_name_[name];
  who.loss_time = who.what->loss_time();
  // A hold that begins after that moment is told at its beginning.
  if (who.loss_time <= who.clock->at(now)) who.told = who.clock->at(now);
  tell_losses(of, now);
  of.inside.push_back(who);
  const bool valid = who.is_valid(now);
  check_exclusion(name, of, now);
  if (valid) check_told(name, of, who, now);
  if (valid) {
    const bool told = who.what->died();
    if (of.open && !told)
      throw violation("died",
                      fmt::format("client {} is not told that client {} left '{}' half done",
                                  who.client, *of.open, name));
    if (!of.open && told && !of.may_be_told)
      throw violation("false alarm",
                      fmt::format("client {} is told of a death in '{}'", who.client, name));
  }
  if (who.as == mode::exclusive) enter_exclusively(name, of, who, valid, now);
}

void observer::enter_exclusively(const std::string& name, history& of, const holder& who,
                                 bool valid, true_time now) {
  const token mine = who.what->fence();
  if (valid && mine <= of.greatest)
    throw violation("token", fmt::format("client {} enters '{}' with {} after {}", who.client, name,
                                         text_of(mine), text_of(of.greatest)));
  for (const holder& each : of.inside) {
    if (valid || each.as != mode::exclusive || each.client == who.client || !each.is_valid(now))
      continue;
    if (mine >= each.what->fence())
      throw violation("token", fmt::format("client {}, not valid, has {}, and the holder {}",
                                           who.client, text_of(mine), text_of(each.what->fence())));
  }
  of.greatest = std::max(of.greatest, mine);
  if (valid)
    of.open = who.client;
  else
    of.may_be_told = true;  // the holder is inside, and may stay or die there
}

void observer::leaves(const std::string& name, int client, true_time now, bool calm) {
  history& of = of_name_[name];
  const auto at = std::find_if(of.inside.begin(), of.inside.end(),
                               [&](const holder& each) { return each.client == client; });
  const holder who = *at;
  of.inside.erase(at);
  if (who.as != mode::exclusive || of.open != client) return;
  of.open.reset();
  if (!who.is_valid(now))
    of.may_be_told = true;  // its host cannot pass on that the section is complete
  else if (calm)
    of.may_be_told = false;
}

void observer::dies_inside(const std::string& name, int client) {
  history& of = of_name_[name];
  std::erase_if(of.inside, [&](const holder& each) {
    if (each.client == client && each.as == mode::exclusive && of.open != client)
      of.may_be_told = true;
    return each.client == client;
  });
}

void observer::end_doubt(const epoch_value& now) {
  const bool is_in_doubt = std::ranges::any_of(now.past, [&](past_epoch past) {
    if (!past.passed_on) past.gone = now.missing_of(past);
    return past.leaves_doubt() || past.members.empty();
  });
  if (!is_in_doubt) return;
  for (auto& [name, of] : of_name_) {
    const auto is_its_holder = [&](const holder& each) {
      return each.client == of.open && now.has(each.of);
    };
    if (!of.open || std::ranges::any_of(of.inside, is_its_holder)) continue;
    of.open.reset();
    of.may_be_told = true;
  }
}

}  // namespace lockflight::cluster::sim
