#include "fabric/network/trial.hpp"

#include <algorithm>
#include <utility>

#include "base/median.hpp"
#include "fabric/shm/pause.hpp"

namespace lockflight::fabric::detail {
namespace {

// The indices of words on cache lines of their own.
constexpr std::uint32_t counter = 8;
constexpr std::uint32_t swapped = 16;
constexpr std::uint32_t data = 24;
constexpr std::uint32_t first_for_hosts = 32;

constexpr double ns_in_us = 1e3;
constexpr int trials = 400;
// The target computes much longer than a busy machine delays a thread that is to answer.
constexpr std::uint64_t computed_ns = 150'000'000;

rma::word fetch_add(network& net, rma::rank_t target, std::uint32_t at, rma::word value) {
  rma::word before = 0;
  net.post(remote_kind::fetch_add, target, at, value, &before);
  net.complete(target);
  return before;
}

rma::word compare_swap(network& net, rma::rank_t target, std::uint32_t at, rma::word expected,
                       rma::word desired) {
  rma::word before = 0;
  net.post_compare_swap(target, at, expected, desired, &before);
  net.complete(target);
  return before;
}

void try_atomics(const trial_launch& in, network& net, findings& found) {
  constexpr int rounds = 100;
  for (int i = 0; i < rounds; ++i) {
    fetch_add(net, 0, counter, 1);
    for (rma::word seen = 0;;) {
      const rma::word before = compare_swap(net, 0, swapped, seen, seen + 1);
      if (before == seen) break;
      seen = before;
    }
  }
  in.meet();
  const auto expected = static_cast<rma::word>(rounds) * static_cast<rma::word>(in.ranks.size());
  found.fetch_add_atomic = fetch_add(net, 0, counter, 0) == expected;
  found.compare_swap_atomic = compare_swap(net, 0, swapped, expected, expected) == expected;
  in.meet();
}

/// The median of so many, in microseconds.
template <class F>
double median_us(F operate) {
  std::vector<double> times;
  for (int i = 0; i < trials; ++i) {
    const std::uint64_t asked = now_ns();
    operate();
    times.push_back(static_cast<double>(now_ns() - asked) / ns_in_us);
  }
  return median_of(std::move(times));
}

void measure(network& net, rma::rank_t target, host_findings& of) {
  const std::uint32_t at = first_for_hosts;
  rma::word got = 0;
  fetch_add(net, target, at, 1);  // there is a connection then
  const auto posted = [&](remote_kind kind, rma::word* result) {
    return median_us([&] {
      net.post(kind, target, kind == remote_kind::fetch_add ? at : data, 1, result);
      net.complete(target);
    });
  };
  of.put_us = posted(remote_kind::put, nullptr);
  of.get_us = posted(remote_kind::get, &got);
  of.fetch_add_us = posted(remote_kind::fetch_add, &got);
  of.compare_swap_us = median_us([&] { compare_swap(net, target, at, 1, 1); });
}

/// The longest fetch-add while the target computes.
double longest_us(network& net, rma::rank_t target) {
  double longest = 0;
  for (const std::uint64_t end = now_ns() + computed_ns; now_ns() < end;) {
    const std::uint64_t asked = now_ns();
    fetch_add(net, target, first_for_hosts, 1);
    longest = std::max(longest, static_cast<double>(now_ns() - asked) / ns_in_us);
  }
  return longest;
}

void compute() {
  for (const std::uint64_t end = now_ns() + computed_ns; now_ns() < end;) shm::detail::relax();
}

std::vector<host_findings> try_hosts(const trial_launch& in, network& net) {
  std::vector<host_findings> found;
  std::vector<int> firsts = in.ranks.first_of_host();
  std::ranges::sort(firsts);
  firsts.erase(std::unique(firsts.begin(), firsts.end()), firsts.end());
  if (firsts.size() == 1) return found;
  for (std::size_t h = 0; h < firsts.size(); ++h) {
    const rma::rank_t target = firsts[h];
    const rma::rank_t origin = firsts[(h + 1) % firsts.size()];
    host_findings of;
    of.name = in.ranks.hosts()[static_cast<std::size_t>(target)];
    of.ranks = static_cast<int>(std::ranges::count(in.ranks.first_of_host(), target));
    of.computed_us = static_cast<double>(computed_ns) / ns_in_us;
    if (in.ranks.rank() == origin) measure(net, target, of);
    in.meet();
    if (in.ranks.rank() == target) compute();
    if (in.ranks.rank() == origin) of.computing_us = longest_us(net, target);
    const double mine[] = {of.put_us, of.get_us, of.fetch_add_us, of.compare_swap_us,
                           of.computing_us};
    const std::vector<std::string> measured =
        in.ranks.gather(std::string(reinterpret_cast<const char*>(mine), sizeof mine));
    const std::vector<std::string> cores = in.ranks.gather(std::to_string(in.processors));
    double its[std::size(mine)];
    measured[static_cast<std::size_t>(origin)].copy(reinterpret_cast<char*>(its), sizeof its);
    of.put_us = its[0];
    of.get_us = its[1];
    of.fetch_add_us = its[2];
    of.compare_swap_us = its[3];
    of.computing_us = its[4];
    of.cores = std::stoi(cores[static_cast<std::size_t>(target)]);
    found.push_back(std::move(of));
  }
  return found;
}

}  // namespace

void try_network(const trial_launch& in, network& net, findings& found) {
  found.ranks = in.ranks.size();
  found.cores = in.processors;
  try_atomics(in, net, found);
  found.hosts = try_hosts(in, net);
  found.hosts_count = found.hosts.empty() ? 1 : static_cast<int>(found.hosts.size());
}

}  // namespace lockflight::fabric::detail
