#include "fabric/wired/world.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <map>

#include "base/boot_id.hpp"
#include "fabric/network/launched.hpp"
#include "fabric/shm/pause.hpp"

namespace lockflight::wired::detail {
namespace {

/// A text that is equal on two processes that can share memory through /proc: the host, its
/// kernel's start, and the namespaces and the user, which decide what one process sees of the
/// other.
std::string place_of_this_process() {
  std::string text = wireup::host_name() + ' ' + boot_id() + ' ' + std::to_string(geteuid());
  for (const char* space : {"/proc/self/ns/ipc", "/proc/self/ns/pid", "/proc/self/ns/user"}) {
    std::array<char, 64> is{};
    if (readlink(space, is.data(), is.size() - 1) > 0) text += ' ' + std::string(is.data());
  }
  return text;
}

/// A rank's description of itself, exchanged at the start. Every rank has the description of every
/// other one, so it is short.
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

world::world(const library& of, const introduction* by) : nodes_variable(of.nodes_variable) {
  const std::string bad_variable = fault_in([&] {
    wanted = fabric::detail::wanted_progress();
    of.check_variables();
  });
  // Ranks of an introduction wait for each other; those of a rendezvous only for some time.
  if (by == nullptr && !bad_variable.empty()) throw std::invalid_argument(bad_variable);
  try {
    join(of, by, bad_variable);
  } catch (const wireup::launch_failed& e) {
    static_cast<void>(net.release());  // as after a failure (see close_down)
    throw unavailable(e.what());
  }
}

void world::join(const library& of, const introduction* by, const std::string& bad_variable) {
  all = by == nullptr ? wireup::join() : wireup::join({by->rank, by->ranks, by->from_first});
  // The names of ranks are used before the names of hosts are known.
  const auto on_rank = [this](std::size_t r) {
    return size() > 1 ? " (on rank " + std::to_string(r) + ")" : "";
  };
  const std::vector<std::string> bad = all->all_gather(bad_variable);
  for (std::size_t r = 0; r < bad.size(); ++r)
    if (!bad[r].empty()) throw std::invalid_argument(bad[r] + on_rank(r));
  std::string address;
  const std::vector<std::string> faults = all->all_gather(fault_in([&] {
    net = of.open(wanted != fabric::detail::progress_by::calls);
    address = net->address();
  }));
  for (std::size_t r = 0; r < faults.size(); ++r)
    if (!faults[r].empty()) throw unavailable(faults[r] + on_rank(r));
  const std::vector<std::string> protocols = all->all_gather(net->protocol());
  for (std::size_t r = 1; r < protocols.size(); ++r)
    if (protocols[r] != protocols[0])
      throw unavailable("rank " + std::to_string(r) + " uses " + protocols[r] + ", rank 0 uses " +
                        protocols[0] + " (accepted: the same on all ranks; " + of.variables + ")");
  place(all->all_gather(describe(address)));
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
  net->set_addresses(std::move(addresses), rank(),
                     fabric::detail::on_one_host(first_of_host, size()));
}

// No rank may use another one's cells any more when it comes here. The connections end only after
// all have come, and all end them together.
world::~world() {
  help.reset();
  if (over) {
    static_cast<void>(net.release());  // see close_down
    return;
  }
  try {
    // The others may be in another step of the launch.
    if (std::uncaught_exceptions() > unwinding_) {
      fail(name_of(rank()) + " has ended early");
      static_cast<void>(net.release());
      return;
    }
    meet();
    net->close_connections();
    all->barrier([this] { progress(); });
  } catch (const std::exception&) {
    static_cast<void>(net.release());  // a rank has gone at the very end; it has said why
  }
}

std::string world::name_of(rma::rank_t rank) const {
  return "rank " + std::to_string(rank) + " on " + hosts[static_cast<std::size_t>(rank)];
}

std::vector<std::string> world::gather(const std::string& mine) {
  try {
    return all->all_gather(mine, [this] { progress(); });
  } catch (const wireup::launch_failed& e) {
    end(e.what());
  }
}

void world::meet() { static_cast<void>(gather("")); }

void world::wait_idle_for_end_of_run() {
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

// No thread makes progress from here on. The memory that the library may still read or write, its
// own objects and the words of operations under way, stays where it is until the process ends:
// releasing it could wait for a lost rank.
void world::close_down(const std::string& why) {
  help.reset();
  over = true;
  failure = why;
}

void world::progress() {
  if (net->progress()) return;
  const transport::fault& found = net->found_fault();
  if (found.rank >= 0) lost(found.rank, found.words);
  const std::string why = name_of(rank()) + " failed: " + found.words;
  fail(why);
  throw run_failed(why);
}

void world::end(const std::string& why) {
  close_down(why);
  throw run_failed(why);
}

void world::fail(const std::string& why) {
  close_down(why);
  all->fail(why);
}

// A rank that has failed reports the reason by the rendezvous, a moment after the network's library
// has noticed its end.
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

void world::start_progress_thread() {
  using fabric::detail::progress_by;
  agree(fault_in([this] {
    const bool wants =
        wanted == progress_by::thread || (wanted == progress_by::trial && net->target_takes_part());
    if (wants && help == nullptr) help = std::make_unique<progress_thread>(*net);
  }));
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
