// Broken copies of the cluster's core, by name.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lab/cluster/core_under_test.hpp"

namespace lockflight::cluster {

struct core_mutant {
  std::string name;
  std::string why;
  sim::core_under_test core;
};

/// A mutant with these classes. Those that it does not change are the core's own.
template <class Agent, template <class> class Acquire>
core_mutant mutant_of(const char* name, const char* why) {
  return {
      name,
      why,
      {[](member_id self, const timing& times, host_words& words) -> std::unique_ptr<agent_events> {
         return std::make_unique<Agent>(self, times, words);
       },
       [](const std::string& of, mode wanted, host_words& words,
          instant ttl) -> std::unique_ptr<acquire_events> {
         return std::make_unique<sim::simulated_acquire<Acquire<sim::words_in_host>>>(of, wanted,
                                                                                      words, ttl);
       }}};
}

std::vector<core_mutant> mutants_of_home();
std::vector<core_mutant> mutants_of_owner();
std::vector<core_mutant> mutants_of_agent();
std::vector<core_mutant> mutants_of_membership();
std::vector<core_mutant> mutants_of_acquire();

}  // namespace lockflight::cluster
