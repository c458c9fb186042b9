#include "fabric/wired/world.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>

#include "fabric/network/launched.hpp"
#include "fabric/shm/pause.hpp"

namespace lockflight::wired::detail {
namespace {

/// Equal on two processes that can share memory through /proc: the host, its kernel's start, and
/// the namespaces and the user, which decide what one sees of the other.
std::string place_of_this_process() {
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  std::string text = wireup::host_name() + ' ' + boot + ' ' + std::to_string(geteuid());
  for (const char* space : {"/proc/self/ns/ipc", "/proc/self/ns/pid"}) {
    std::array<char, 64> is{};
    if (readlink(space, is.data(), is.size() - 1) > 0) text += ' ' + std::string(is.data());
  }
  return text;
}

/// What a rank says of itself at the start. Every rank has that of every other one, so it is short.
struct particulars {
  std::string host;
  std::string place;
  cpu_set_t processors{};
  std::string address;  ///< of the transport

  [[nodiscard]] std::string text() const {
    std::string all;
    const auto add = [&](const void* bytes, std::size_t count) {
      const auto length = static_cast<std::uint32_t>(count);
      all.append(reinterpret_cast<const char*>(&length), sizeof length);
      all.append(static_cast<const char*>(bytes), count);
    };
    add(host.data(), host.size());
    add(place.data(), place.size());
    std::size_t used = sizeof processors;
    const char* const set = reinterpret_cast<const char*>(&processors);
    while (used > 0 && set[used - 1] == 0) --used;
    add(set, used);
    add(address.data(), address.size());
    return all;
  }

  [[nodiscard]] static particulars in(const std::string& text) {
    particulars found;
    std::size_t at = 0;
    const auto next = [&] {
      std::uint32_t length = 0;
      if (text.size() - at >= sizeof length) std::memcpy(&length, text.data() + at, sizeof length);
      at = std::min(at + sizeof length, text.size());
      const std::string part = text.substr(at, length);
      at += part.size();
      return part;
    };
    found.host = next();
    found.place = next();
    const std::string set = next();
    std::memcpy(&found.processors, set.data(), std::min(set.size(), sizeof found.processors));
    found.address = next();
    return found;
  }
};

std::string describe(std::string address) {
  particulars mine{
      .host = wireup::host_name(), .place = place_of_this_process(), .address = std::move(address)};
  sched_getaffinity(0, sizeof mine.processors, &mine.processors);
  return mine.text();
}

}  // namespace

world::world(const library& of, const introduction* by)
    : nodes_variable(of.nodes_variable), wanted(fabric::detail::wanted_progress()) {
  std::string address;
  try {
    all = by == nullptr ? wireup::join() : wireup::join({by->rank, by->ranks, by->from_first});
    const std::string why = fault_in([&] {
      net = of.open(wanted != fabric::detail::progress_by::calls);
      address = net->address();
    });
    // Before names are known.
    const std::vector<std::string> faults = all->all_gather(why);
    for (std::size_t r = 0; r < faults.size(); ++r)
      if (!faults[r].empty())
        throw unavailable(faults[r] + (size() > 1 ? " (on rank " + std::to_string(r) + ")" : ""));
    place(all->all_gather(describe(address)));
  } catch (const wireup::launch_failed& e) {
    if (net) net->leave();
    throw unavailable(e.what());
  }
}

void world::place(const std::vector<std::string>& said) {
  std::map<std::string, int> first;
  std::vector<std::string> addresses;
  std::vector<cpu_set_t> processors_of;
  for (const std::string& text : said) {
    particulars one = particulars::in(text);
    const auto r = static_cast<int>(hosts.size());
    hosts.push_back(std::move(one.host));
    first_of_host.push_back(first.emplace(std::move(one.place), r).first->second);
    processors_of.push_back(one.processors);
    addresses.push_back(std::move(one.address));
  }
  cpu_set_t here{};
  for (int r = 0; r < size(); ++r)
    if (same_host(r, rank())) CPU_OR(&here, &here, &processors_of[static_cast<std::size_t>(r)]);
  processors = CPU_COUNT(&here);
  net->know(std::move(addresses), first_of_host);
}

// No rank may use another one's cells any more when it comes here. The connections end only after
// all have come, and all end them together.
world::~world() {
  help.reset();
  if (!over) {
    try {
      meet();
      net->close_connections();
      all->barrier([this] { net->progress(); });
      return;
    } catch (const std::exception&) {
      // A rank has gone at the very end; it has said why.
    }
  }
  net->leave();
}

std::string world::name_of(rma::rank_t rank) const {
  return "rank " + std::to_string(rank) + " on " + hosts[static_cast<std::size_t>(rank)];
}

std::vector<std::string> world::gather(const std::string& mine) {
  try {
    return all->all_gather(mine, [this] { net->progress(); });
  } catch (const wireup::launch_failed& e) {
    end(e.what());
  }
}

void world::meet() { static_cast<void>(gather("")); }

void world::sleep_until_all_have_come() {
  try {
    all->barrier();
  } catch (const wireup::launch_failed& e) {
    end(e.what());
  }
}

void world::check() {
  try {
    all->check();
  } catch (const wireup::launch_failed& e) {
    end(e.what());
  }
}

void world::end(const std::string& why) {
  over = true;
  failure = why;
  throw run_failed(why);
}

void world::fail(const std::string& why) {
  over = true;
  failure = why;
  all->fail(why);
}

// A rank that has ended for a reason says it by the rendezvous, a moment later than the network's
// library notices.
void world::lost(rma::rank_t who, const std::string& status) {
  constexpr int looks = 200;
  constexpr std::uint64_t between_looks_ns = 10'000'000;
  for (int i = 0; i < looks; ++i) {
    check();
    shm::detail::sleep_for_ns(between_looks_ns);
  }
  const std::string why = name_of(who) + " is gone: " + status;
  fail(why);
  throw run_failed(why);
}

void world::help_while_computing() {
  using fabric::detail::progress_by;
  if (help != nullptr || wanted == progress_by::calls) return;
  // A card does its atomics without its target.
  if (wanted == progress_by::trial && !net->atomics_by_cpu()) return;
  help = std::make_unique<progress_thread>(*net);
}

}  // namespace lockflight::wired::detail

namespace lockflight::wired {

environment::environment(const detail::library& of, const introduction* by)
    : world_(std::make_unique<detail::world>(of, by)) {}
environment::~environment() = default;

int environment::rank() const { return world_->rank(); }
int environment::size() const { return world_->size(); }

bool environment::first_is_gone() const {
  return world_->over && world_->failure.starts_with(world_->name_of(0));
}

std::vector<std::string> environment::gather(const std::string& mine) {
  return world_->gather(mine);
}

const std::vector<int>& environment::first_of_host() const { return world_->first_of_host; }
const std::vector<std::string>& environment::hosts() const { return world_->hosts; }

}  // namespace lockflight::wired
