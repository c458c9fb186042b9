#include "lab/cluster/campaign.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "lab/cluster/world.hpp"
#include "names/cluster/core/acquire.hpp"
#include "names/cluster/core/agent.hpp"

namespace lockflight::cluster::sim {

core_under_test intact_core() {
  return {
      [](member_id self, const timing& times, host_words& words) -> std::unique_ptr<agent_events> {
        return std::make_unique<agent>(self, times, words);
      },
      [](const std::string& name, mode wanted, host_words& words,
         instant ttl) -> std::unique_ptr<acquire_events> {
        return std::make_unique<simulated_acquire<acquire<words_in_host>>>(name, wanted, words,
                                                                           ttl);
      }};
}

std::string broken_rule(const plan& what, const core_under_test& core) {
  try {
    world(what, core, nullptr).run();
  } catch (const violation& e) {
    return e.property;
  }
  return "";
}

/// Leaves out one fault after the other, as long as some rule is still broken, and then the time
/// after the violation.
counterexample shorten(plan what, const core_under_test& core) {
  for (bool has_changed = true; has_changed;) {
    has_changed = false;
    for (std::size_t i = what.faults.size(); i-- > 0;) {
      plan less = what;
      less.faults.erase(less.faults.begin() + static_cast<std::ptrdiff_t>(i));
      if (broken_rule(less, core).empty()) continue;
      what = std::move(less);
      has_changed = true;
    }
  }
  counterexample found;
  found.what = what;
  try {
    world(what, core, &found.trace).run();
  } catch (const violation& e) {
    found.property = e.property;
    found.text = e.what();
  }
  return found;
}

progress run(const campaign& what, const core_under_test& core) {
  progress made;
  while (made.seeds < what.most_seeds && made.virtual_hours < what.virtual_hours) {
    const plan next = make_plan(what.first_seed + made.seeds);
    ++made.seeds;
    made.virtual_hours += static_cast<double>(next.ends) / 3.6e9;
    try {
      world history(next, core, nullptr);
      history.run();
      made.entries += history.entries();
      made.events += history.events();
    } catch (const violation& e) {
      if (what.shortens)
        made.found = shorten(next, core);
      else
        made.found = counterexample{next, e.property, e.what(), {}};
      return made;
    }
    if (!what.goes_on(made)) break;
  }
  return made;
}

std::string text_of(const counterexample& what, std::size_t most_lines) {
  std::string text =
      fmt::format("seed {}: {}\n{} hosts, {} names, {} clients a host\nfaults:\n", what.what.seed,
                  what.text, what.what.hosts, what.what.names, what.what.clients);
  for (const fault& each : what.what.faults) text += text_of(each) + "\n";
  const std::size_t left_out = what.trace.size() - std::min(what.trace.size(), most_lines);
  text += fmt::format("what happened{}:\n",
                      left_out > 0 ? fmt::format(" ({} lines before are left out)", left_out) : "");
  for (std::size_t i = left_out; i < what.trace.size(); ++i) text += what.trace[i] + "\n";
  return text;
}

}  // namespace lockflight::cluster::sim
