#include "lab/bench/launched/diagnosis.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace lockflight::bench {

std::string ranks_on(const fabric::findings& found, const std::string& noun) {
  return fmt::format("{} on {} {}{}, {} cores on the first", found.ranks, found.hosts_count, noun,
                     found.hosts_count == 1 ? "" : "s", found.cores);
}

std::string microseconds(double value) {
  std::string text = std::to_string(value);
  text.resize(text.find('.') + (value < 100 ? 3 : 0));
  return text + " us";
}

launch::diagnosis diagnosis_of(const fabric::findings& found, bool ordered_posts,
                               const texts_of_network& its) {
  launch::diagnosis made{.hosts = found.hosts,
                         .ordered_posts = ordered_posts,
                         .findings = {{"library", found.library}},
                         .advice = {},
                         .usable = found.fetch_add_atomic && found.compare_swap_atomic};
  auto& rows = made.findings;
  rows.insert(rows.end(), its.rows.begin(), its.rows.end());
  rows.emplace_back("ranks", ranks_on(found, "host"));
  rows.emplace_back("fetch-add atomic", yes_or(found.fetch_add_atomic, some_were_lost));
  rows.emplace_back("compare-swap atomic", yes_or(found.compare_swap_atomic, some_were_lost));
  if (found.ranks == 1)
    made.advice.push_back(fmt::format(
        "Start at least two ranks to learn what an operation costs ({}).", its.launched_by));
  if (!std::ranges::all_of(found.hosts, &fabric::host_findings::direct))
    made.advice.push_back(fmt::format(
        "A target that computes delays operations on its memory for as long as it computes, since "
        "its software does them. Place contended locks at ranks that wait{}.",
        its.helps_targets));
  if (found.ranks > 1 && found.hosts_count == 1)
    made.advice.push_back(fmt::format(
        "All ranks are on one host: locks on a machine of one node use {} for messages alone.",
        its.own_node_uses));
  return made;
}

}  // namespace lockflight::bench
