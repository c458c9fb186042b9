// Judges generated mutants of the cluster's core (tests/lab/mutants/mutate.py) by simulated
// histories.
//
// Usage: cluster_judge JOBS [HISTORIES]
//
// Prints a line for each mutant: its name, `killed` or `survived`, the rule, the number of
// histories, and the seconds, with tabs between them. Each mutant is judged in a process of its
// own, since it may break anything.
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <map>

#include "lab/cluster/campaign.hpp"
#include "tests/names/cluster/mutants/core_mutant.hpp"

namespace lockflight::cluster {
namespace {

using clock = std::chrono::steady_clock;

constexpr int most_cpu_seconds = 20;  // of one history, before it is called endless

void allow_seconds() {
  const itimerval most{.it_interval = {}, .it_value = {.tv_sec = most_cpu_seconds, .tv_usec = 0}};
  setitimer(ITIMER_VIRTUAL, &most, nullptr);
}

void print(const std::string& name, bool killed, const std::string& rule, std::uint64_t histories,
           double seconds) {
  char line[512];
  const int n = std::snprintf(line, sizeof line, "%s\t%s\t%s\t%llu histories\t%.1f\n", name.c_str(),
                              killed ? "killed" : "survived", rule.substr(0, 120).c_str(),
                              static_cast<unsigned long long>(histories), seconds);
  static_cast<void>(!write(STDOUT_FILENO, line, static_cast<std::size_t>(n)));
}

// Returns false, and prints nothing, if the mutant has survived and `is_last` is false.
[[nodiscard]] bool judge(const core_mutant& m, std::uint64_t histories, bool is_last) {
  const auto began = clock::now();
  sim::campaign asked;
  asked.most_seeds = histories;
  asked.shortens = false;
  asked.goes_on = [](const sim::progress&) { return allow_seconds(), true; };
  allow_seconds();
  std::string rule;
  std::uint64_t seeds = 0;
  try {
    const sim::progress made = sim::run(asked, m.core);
    seeds = made.seeds;
    if (made.found) rule = made.found->property;
  } catch (const std::exception& e) {
    rule = std::string("exception: ") + e.what();
  }
  if (rule.empty() && !is_last) return false;
  print(m.name, !rule.empty(), rule, seeds,
        std::chrono::duration<double>(clock::now() - began).count());
  return true;
}

using mutants = std::vector<const core_mutant*>;

// Waits for a child. Its mutant is among the survivors if it has no verdict yet.
void await_one(std::map<pid_t, const core_mutant*>& running, mutants& survivors) {
  int status = 0;
  const auto at = running.find(wait(&status));
  if (at == running.end()) return;
  if (WIFSIGNALED(status))
    print(at->second->name, true,
          WTERMSIG(status) == SIGVTALRM ? "does not end" : strsignal(WTERMSIG(status)), 0, 0);
  else if (WEXITSTATUS(status) != 0)
    survivors.push_back(at->second);
  running.erase(at);
}

// All with few histories, and then the survivors with many.
int judge_all(std::size_t jobs, std::uint64_t histories) {
  const std::vector<core_mutant> tables[] = {mutants_of_home(), mutants_of_owner(),
                                             mutants_of_agent(), mutants_of_membership(),
                                             mutants_of_acquire()};
  mutants left;
  for (const auto& table : tables)
    for (const core_mutant& m : table) left.push_back(&m);
  const std::uint64_t few = std::min<std::uint64_t>(histories, 200);
  for (const std::uint64_t most : {few, histories}) {
    const bool is_last = most == histories;
    mutants survivors;
    std::map<pid_t, const core_mutant*> running;
    for (const core_mutant* const m : left) {
      while (running.size() >= jobs) await_one(running, survivors);
      const pid_t child = fork();
      if (child < 0) return std::perror("fork"), 3;
      if (child == 0) _exit(judge(*m, most, is_last) ? 0 : 1);
      running[child] = m;
    }
    while (!running.empty()) await_one(running, survivors);
    left = std::move(survivors);
  }
  return 0;
}

}  // namespace
}  // namespace lockflight::cluster

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: cluster_judge JOBS [HISTORIES]\n";
    return 2;
  }
  return lockflight::cluster::judge_all(static_cast<std::size_t>(std::atoi(argv[1])),
                                        argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 3'000);
}
