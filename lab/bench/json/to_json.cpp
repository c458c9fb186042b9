#include "lab/bench/json/to_json.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <vector>

#include "lab/bench/json/statistics.hpp"
#include "lab/bench/workload/measure.hpp"
#include "lab/sim/network.hpp"

namespace lockflight::bench {
namespace {

using nlohmann::json;

/// The sums of all ranks' results.
struct totals {
  histogram read;
  histogram write;
  histogram local;
  histogram remote;
  std::uint64_t reads = 0;
  std::uint64_t writes = 0;
  fabric::operation_counts operations;
  std::array<std::uint64_t, lock::most_levels> handoffs{};
  std::uint64_t longest_wait = 0;
  std::uint64_t waited = 0;
  double waited_squared = 0;
  double released_squared = 0;
  std::uint64_t all_cas = 0;
  std::uint64_t failed_cas = 0;
  std::uint64_t most_of_a_release = 0;
  std::uint64_t served = 0;
  std::uint64_t violations = 0;
  std::uint64_t begun = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t ended = 0;

  // Ranks without operations do not count for the time: they may have had none to do.
  void add(const rank_result& r) {
    violations += r.violations;
    served += r.served;
    all_cas += r.all_cas;
    failed_cas += r.failed_cas;
    if (r.ops() == 0 || r.lost) return;
    read += r.read;
    write += r.write;
    local += r.local;
    remote += r.remote;
    reads += r.reads();
    writes += r.writes();
    operations += r.operations;
    for (std::size_t i = 0; i < handoffs.size(); ++i) handoffs[i] += r.handoffs[i];
    longest_wait = std::max(longest_wait, r.longest_wait);
    waited += r.waited;
    waited_squared += r.waited_squared;
    released_squared += r.released_squared;
    most_of_a_release = std::max(most_of_a_release, r.most_of_a_release);
    begun = std::min(begun, r.begun);
    ended = std::max(ended, r.ended);
  }
};

/// From ticks between two readings to microseconds, without the clock's own cost: one reading for
/// each interval that a recorded time is the sum of. A recorded message is half an interval.
class converter {
 public:
  converter(const time_base& clock, const run_plan& plan)
      : clock_(clock),
        readings_(
            static_cast<double>(times_in_order(plan.what) ? clock.ordered_cost : clock.cost)) {
    if (times_both_halves(plan.what)) readings_ *= 2;
    if (plan.what == workload::primitive && plan.does == operation::message) readings_ /= 2;
  }
  [[nodiscard]] double us(double ticks) const {
    return clock_.us(std::max(0.0, ticks - readings_));
  }
  /// Converts a difference between two times.
  [[nodiscard]] double span_us(double ticks) const { return clock_.us(ticks); }

 private:
  const time_base& clock_;
  double readings_;
};

json latency_json(const histogram& h, const converter& to, bool meaningful) {
  json out;
  const bool known = meaningful && h.count() > 0;
  const auto add = [&](const char* name, double ticks) {
    out[name] = known ? json(to.us(ticks)) : json();
  };
  add("mean", h.mean());
  add("p25", h.quantile(0.25));
  add("p50", h.quantile(0.5));
  add("p75", h.quantile(0.75));
  add("p99", h.quantile(0.99));
  add("p999", h.quantile(0.999));
  add("max", static_cast<double>(h.max()));
  // The cost of reading the clock is the same each time, so it has no share in the deviation.
  out["deviation"] = known ? json(to.span_us(h.deviation())) : json();
  return out;
}

/// About sixty points, closer in the tail.
std::vector<double> cdf_fractions() {
  std::vector<double> fractions{1e-3};
  for (int percent = 2; percent <= 96; percent += 2) fractions.push_back(percent / 100.0);
  for (const double tail : {0.97, 0.98, 0.985, 0.99, 0.995, 0.998, 0.999, 0.9995, 0.9999, 0.99999})
    fractions.push_back(tail);
  fractions.push_back(1);
  return fractions;
}

json cdf_json(const histogram& all, const converter& to) {
  json points = json::array();
  for (const auto& [ticks, fraction] : all.cumulative(cdf_fractions()))
    points.push_back({to.us(ticks), fraction});
  return points;
}

/// The distribution of the ranks' mean latencies, one value for each rank that was measured: the
/// quantiles as latency_json has them, and points of the cumulative distribution.
void add_latency_of_ranks(json& out, std::span<const rank_result> ranks, const converter& to) {
  std::vector<double> means;
  for (const rank_result& r : ranks) {
    const auto timed = static_cast<double>(r.read.count() + r.write.count());
    if (timed == 0 || r.lost) continue;
    const double ticks = r.read.mean() * static_cast<double>(r.read.count()) +
                         r.write.mean() * static_cast<double>(r.write.count());
    means.push_back(to.us(ticks / timed));
  }
  if (means.empty()) return;
  std::sort(means.begin(), means.end());
  const auto count = static_cast<double>(means.size());
  // The smallest mean that at least that fraction of the ranks do not exceed.
  const auto place = [&](double fraction) {
    return static_cast<std::size_t>(std::max(1.0, std::ceil(fraction * count))) - 1;
  };
  const double sum = std::accumulate(means.begin(), means.end(), 0.0);
  out["rank_latency_us"] = {{"mean", sum / count},       {"p25", means[place(0.25)]},
                            {"p50", means[place(0.5)]},  {"p75", means[place(0.75)]},
                            {"p99", means[place(0.99)]}, {"p999", means[place(0.999)]},
                            {"max", means.back()}};
  json points = json::array();
  std::size_t last = means.size();
  for (const double fraction : cdf_fractions()) {
    const std::size_t at = place(fraction);
    if (at == last) continue;
    points.push_back({means[at], static_cast<double>(at + 1) / count});
    last = at;
  }
  out["rank_latency_cdf"] = std::move(points);
}

/// The operations on locks of the own node, or on the others.
json class_json(const histogram& of, const converter& to) {
  json out{{"ops", of.count()}, {"latency_us", latency_json(of, to, true)}};
  if (of.count() > 0) out["latency_cdf"] = cdf_json(of, to);
  return out;
}

json operations_json(const fabric::operation_counts& c) {
  return {{"nic",
           {{"put", c.put},
            {"get", c.get},
            {"add", c.add},
            {"fetch_add", c.fetch_add},
            {"swap", c.swap},
            {"cas", c.cas},
            {"flush", c.flush},
            {"loopback", c.loopback}}},
          {"cpu", {{"load", c.load}, {"store", c.store}, {"rmw", c.rmw}}},
          {"messages", c.messages}};
}

json parameters_json(const job& what) {
  json out = json::object();
  for (const catalogue::parameter_row& row : what.lock->parameters) {
    const std::string name(row.name);
    const auto at = what.plan.set.find(name);
    out[name] = at == what.plan.set.end() ? row.default_value : at->second;
  }
  return out;
}

/// The share of the measured part in a number of the whole run, in proportion. A rank that takes no
/// locks, or gets none, does not know when the measured part began.
std::uint64_t measured_part_of(const run_plan& plan, std::uint64_t all) {
  if (!plan.warm_up) return all;
  double measured = 0.9;
  if (plan.ops > 0) {
    const roles who(plan);
    double warm_up = 0;
    for (rma::rank_t r = 0; r < plan.machine.ranks(); ++r)
      if (const std::uint64_t share = who.share(r, plan.ops); share > 0)
        warm_up += static_cast<double>(warm_up_of(share));
    measured = static_cast<double>(plan.ops) / (static_cast<double>(plan.ops) + warm_up);
  }
  return static_cast<std::uint64_t>(std::llround(static_cast<double>(all) * measured));
}

/// The time of each rank from its first to its last measured operation: the fastest and the slowest
/// rank. On a simulated machine with several nodes also those on the quarter of the nodes that
/// are nearest to rank 0's, and on the farthest.
json rank_elapsed_json(const run_plan& plan, std::span<const rank_result> ranks,
                       const time_base& clock) {
  std::vector<std::pair<std::uint32_t, double>> of_rank;  // hops, seconds
  const bool knows_hops = plan.profile != nullptr && plan.machine.nodes() > 1;
  const auto place_of = [&](rma::rank_t rank) {
    const auto node = static_cast<std::uint32_t>(plan.machine.node_of(rank));
    return plan.nodes.empty() ? node : plan.nodes[node];
  };
  // All ranks begin together. If the warm-up of a rank took longer, that is part of its time.
  std::uint64_t begun = ~std::uint64_t{0};
  for (const rank_result& r : ranks)
    if (r.ops() > 0 && !r.lost) begun = std::min(begun, r.begun);
  double sum = 0;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const rank_result& r = ranks[i];
    if (r.ops() == 0 || r.lost) continue;
    const std::uint32_t hops = knows_hops ? sim::hops(plan.profile->network, place_of(0),
                                                      place_of(static_cast<rma::rank_t>(i)))
                                          : 0;
    of_rank.emplace_back(hops, clock.us(static_cast<double>(r.ended - begun)) * 1e-6);
    sum += of_rank.back().second;
  }
  json out{{"fastest", nullptr},
           {"mean", nullptr},
           {"slowest", nullptr},
           {"near", nullptr},
           {"far", nullptr}};
  if (of_rank.empty()) return out;
  const auto [least, most] =
      std::minmax_element(of_rank.begin(), of_rank.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; });
  out["fastest"] = least->second;
  out["slowest"] = most->second;
  out["mean"] = sum / static_cast<double>(of_rank.size());
  if (!knows_hops || of_rank.size() < 4) return out;
  std::stable_sort(of_rank.begin(), of_rank.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  const std::size_t quarter = of_rank.size() / 4;
  const auto mean = [&](std::size_t from) {
    double all = 0;
    for (std::size_t i = from; i < from + quarter; ++i) all += of_rank[i].second;
    return all / static_cast<double>(quarter);
  };
  out["near"] = mean(0);
  out["far"] = mean(of_rank.size() - quarter);
  return out;
}

/// The name of the measured lock or operation.
std::string name_of(const job& what) {
  if (what.plan.what == workload::primitive)
    return operations()[static_cast<std::size_t>(what.plan.does)];
  if (what.plan.what == workload::stencil) return "stencil";
  return std::string(what.lock->about.name);
}

/// The standard deviation, from the mean of a quantity and of its squares.
double deviation(double mean, double of_squares) {
  return std::sqrt(std::max(0.0, of_squares - mean * mean));
}

/// The means of the two halves of an operation and their standard deviations; the clock's own part
/// is shared among the halves.
void add_halves(json& out, const totals& sum, const histogram& all, const time_base& clock) {
  const auto ops = static_cast<double>(sum.reads + sum.writes);
  const double acquire = static_cast<double>(sum.waited) / ops;
  const double all_us = out["latency_us"]["mean"].get<double>();
  const double part = all.mean() > 0 ? acquire / all.mean() : 0;
  out["acquire_us"] = all_us * part;
  out["release_us"] = all_us * (1 - part);
  if (sum.waited_squared == 0) return;
  out["acquire_sd_us"] = clock.us(deviation(acquire, sum.waited_squared / ops));
  out["release_sd_us"] = clock.us(deviation(all.mean() - acquire, sum.released_squared / ops));
}

/// The fields of the request.
json request_json(const job& what, const std::string& fabric) {
  const run_plan& plan = what.plan;
  const lock_entry& lock = *what.lock;
  return {
      {"lock", name_of(what)},
      {"kind", lock.excludes ? lock::to_string(lock.about.what) : "none"},
      {"fabric", fabric},
      {"machine", plan.profile == nullptr ? json() : json(plan.profile->name)},
      {"workload", workloads()[static_cast<std::size_t>(plan.what)].name},
      {"procs", plan.machine.ranks()},
      {"levels", levels_of(plan.machine)},
      {"writers", plan.writers},
      {"role", plan.by == role::process ? "process" : "operation"},
      {"locality", plan.what == workload::table ? json(plan.locality) : json()},
      {"params", parameters_json(what)},
      {"threads", plan.threads},
      {"seed", plan.seed},
  };
}

constexpr const char* within_hosts = "within hosts";

/// The ranks among which the run's witness could see mutual exclusion broken, and handoffs.
const char* witnessed_by(const job& what, const run_results& results) {
  if (!what.lock->excludes || what.lock->about.defers) return "none";
  return results.whole() || what.plan.far_witness ? "all" : within_hosts;
}

}  // namespace

std::optional<double> fairness(const run_plan& plan, std::span<const rank_result> ranks) {
  const roles who(plan);
  std::optional<double> least;
  for (const bool writers : {false, true}) {
    std::vector<double> rates;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      const auto rank = static_cast<rma::rank_t>(i);
      const bool in_role = plan.by == role::process ? who.is_writer(rank) == writers : !writers;
      const rank_result& r = ranks[i];
      if (!who.is_active(rank) || !in_role || r.lost) continue;
      const auto ticks = static_cast<double>(r.ended - r.begun);
      rates.push_back(r.ended > r.begun ? static_cast<double>(r.ops()) / ticks : 0);
    }
    if (const auto index = jain(rates)) least = std::min(least.value_or(1), *index);
  }
  return least;
}

json to_json(const job& what, const std::string& fabric, const run_results& results,
             const time_base& clock) {
  const auto sum = std::make_unique<totals>();
  for (const rank_result& r : results.ranks()) sum->add(r);
  const auto all = std::make_unique<histogram>(sum->read);
  *all += sum->write;
  const std::uint64_t ops = sum->reads + sum->writes;
  const double elapsed_s =
      ops == 0 ? 0 : clock.us(static_cast<double>(sum->ended - sum->begun)) * 1e-6;
  const converter to(clock, what.plan);
  const bool timed = what.lock->excludes || takes_no_lock(what.plan.what);

  json out = request_json(what, fabric);
  out["ops"] = ops;
  out["elapsed_s"] = elapsed_s;
  out["throughput_ops_s"] = elapsed_s > 0 ? static_cast<double>(ops) / elapsed_s : 0;
  out["latency_us"] = latency_json(*all, to, timed);
  for (const char* const none : {"acquire_us", "release_us", "acquire_sd_us", "release_sd_us"})
    out[none] = nullptr;
  if (times_both_halves(what.plan.what) && timed && ops > 0) add_halves(out, *sum, *all, clock);
  out["rank_elapsed_s"] = rank_elapsed_json(what.plan, results.ranks(), clock);
  if (timed && all->count() > 0) {
    out["latency_cdf"] = cdf_json(*all, to);
    add_latency_of_ranks(out, results.ranks(), to);
  }
  out["read"] = {{"ops", sum->reads}, {"latency_us", latency_json(sum->read, to, timed)}};
  out["write"] = {{"ops", sum->writes}, {"latency_us", latency_json(sum->write, to, timed)}};
  if (has_many_locks(what.plan.what)) {
    out["locks"] = what.plan.locks;
    out["local"] = class_json(sum->local, to);
    out["remote"] = class_json(sum->remote, to);
    if (what.plan.profile != nullptr) out["release_network_ops_max"] = sum->most_of_a_release;
  }
  if (what.plan.think_us > 0) out["think_us"] = what.plan.think_us;
  if (what.plan.call_us > 0) out["call_us"] = what.plan.call_us;
  if (what.plan.what == workload::contention) {
    out["contention"] = 1 - static_cast<double>(what.plan.locks) / roles(what.plan).active();
    out["hold_us"] = what.plan.hold_us;
    out["server_busy"] = what.plan.server_busy;
    if (what.plan.server_load > 0) out["server_load"] = what.plan.server_load;
    const rank_result& server = results.of(0);
    if (what.plan.profile != nullptr && !roles(what.plan).is_active(0))
      out["server"] = {{"on_messages", server.on_messages}, {"on_atomics", server.on_atomics}};
  }
  if (what.plan.what == workload::zipf) out["skew"] = what.plan.skew;
  if (what.plan.sample > 1) out["sample"] = what.plan.sample;
  if (!what.plan.nodes.empty()) out["nodes"] = what.plan.nodes;
  if (what.plan.what == workload::dht_writer) out["bytes"] = what.plan.bytes;
  if (what.plan.flags_at) out["flags_at"] = *what.plan.flags_at;
  sum->operations.messages += measured_part_of(what.plan, sum->served);
  out["fabric_ops"] = operations_json(sum->operations);
  if (what.plan.profile != nullptr)
    out["compare_swaps"] = {{"posted", measured_part_of(what.plan, sum->all_cas)},
                            {"failed", measured_part_of(what.plan, sum->failed_cas)}};
  const char* const witnessed = witnessed_by(what, results);
  out["witnessed"] = witnessed;
  out["handoffs"] = json::array();
  for (int i = 0; i < what.plan.machine.levels() && witnessed != within_hosts; ++i)
    out["handoffs"].push_back(sum->handoffs[static_cast<std::size_t>(i)]);
  const auto even = fairness(what.plan, results.ranks());
  out["fairness_jain"] = even ? json(*even) : json();
  const auto longest = static_cast<double>(sum->longest_wait);
  out["max_wait_us"] = timed && all->count() > 0 ? json(to.us(longest)) : json();
  out["violations"] = sum->violations;
  for (std::size_t i = 0; i < results.ranks().size(); ++i)
    if (results.ranks()[i].lost) out["lost_ranks"].push_back(i);
  return out;
}

}  // namespace lockflight::bench
