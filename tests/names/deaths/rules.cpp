#include "tests/names/deaths/rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string>

namespace lockflight::test {
namespace {

struct longest_wait {
  int lock;
  double seconds;
};
longest_wait longest_wait_of(const shared_state& all) {
  const auto& ns = all.longest_wait_ns;
  const auto* const most = std::max_element(std::begin(ns), std::end(ns));
  return {static_cast<int>(most - ns), static_cast<double>(most->load()) / 1e9};
}

// The last death may be one that no holder has been told of yet.
void tell_of_the_last_death(const domain& in, int number, guarded& data) {
  named_lock last = open_lock(in, number);
  last.lock();
  if (last.owner_died()) ++data.told, last.mark_consistent();
  last.unlock();
}

void judge_lock(const domain& in, int number, shared_state& all, campaign_record& record) {
  const std::string& kind = kind_of(number);
  guarded& data = all.data[number];
  tell_of_the_last_death(in, number, data);
  std::uint64_t& inside = record.inside[static_cast<std::size_t>(number)];
  const std::uint64_t perhaps = record.perhaps[static_cast<std::size_t>(number)];
  inside += all.left_inside[number];
  record.died_inside += all.left_inside[number];
  record.told += data.told;
  if (data.told > inside + perhaps)
    report(all, fmt::format("{}: told of {} deaths, but {} died inside and {} on the way", kind,
                            data.told, inside, perhaps));
  if (inside > 0 && data.told == 0 && record.removals == 0)
    report(all, fmt::format("{}: {} holders died, and nobody was told", kind, inside));
  std::uint64_t updates = 0;
  for (const worker_state& w : all.worker) updates += w.updates[number];
  // A holder that died between the two counters makes `data.count` the greater one.
  if (data.count < updates || data.count > updates + inside + perhaps)
    report(all, fmt::format("{}: {} updates by {} writes", kind, data.count, updates));
}

// A campaign that strikes nothing would find all rules kept.
void judge_the_campaign(const campaign_options& options, shared_state& all,
                        const campaign_record& record) {
  constexpr int enough_to_meet_a_holder = 100;
  constexpr int enough_for_a_removal = 1'000;
  constexpr std::uint64_t acquires_a_kill = 10;
  if (all.acquires < acquires_a_kill * static_cast<std::uint64_t>(record.kills))
    report(all, fmt::format("{} acquires beside {} kills: workers hardly ever got a lock",
                            all.acquires.load(), record.kills));
  if (record.kills >= enough_to_meet_a_holder && record.died_inside == 0)
    report(all, fmt::format("{} kills, and no holder among them", record.kills));
  if (options.removals && record.kills >= enough_for_a_removal && record.removals == 0)
    report(all, fmt::format("{} kills, and the domain was never removed", record.kills));
}

}  // namespace

void campaign_record::note_death(worker_state& its) {
  const int number = its.lock;
  if (number >= 0 && its.exclusive) {
    const auto i = static_cast<std::size_t>(number);
    if (its.is == where::inside) ++inside[i], ++died_inside;
    if (its.is == where::on_the_way) ++perhaps[i];
  }
  its.is = where::outside;
  its.lock = -1;
}

void judge(const campaign_options& options, const worker_pool& workers, campaign_record& record) {
  const domain in = workers.open_domain();
  shared_state& all = workers.all();
  if (all.broken != 0) return;
  for (int number = 0; number < lock_count(); ++number) judge_lock(in, number, all, record);
  judge_the_campaign(options, all, record);
  const longest_wait longest = longest_wait_of(all);
  if (longest.seconds > options.most_wait_s)
    report(all, fmt::format("{}: somebody waited {:.2f} s (at most {} s)", kind_of(longest.lock),
                            longest.seconds, options.most_wait_s));
  const std::string path = in.path();
  if (!workers.remove_domain(true)) report(all, "the domain was gone already");
  if (std::filesystem::exists(path)) report(all, "left behind: " + path);
}

void print_summary(const campaign_options& options, const shared_state& all,
                   const campaign_record& record) {
  const longest_wait longest = longest_wait_of(all);
  fmt::print(
      "{} kills, {} exits, {} images, children and namespaces, {} stops, {} of waiters for long, "
      "{} removals; {} acquires; {} holders died, {} were told; longest wait {:.1f} ms ({})\n",
      record.kills, record.exits, record.orders, record.stops, record.long_stops, record.removals,
      all.acquires.load(), record.died_inside, record.told, longest.seconds * 1e3,
      kind_of(longest.lock));
  if (all.broken != 0)
    fmt::print("broken (seed {}): {} ({} in all)\n", options.seed, all.what, all.broken.load());
}

}  // namespace lockflight::test
