// An election of two candidates, and an observer that follows the leader. The first leader steps
// down, and the second one, which has waited, leads.
//
// Prints "leader: first", "leader: second" and "nobody leads".
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <thread>

#include "lockflight/election.hpp"

int main() {
  const std::string name = "example-election-" + std::to_string(getpid());
  const lockflight::domain jobs = lockflight::domain::open(name);
  lockflight::election watched(jobs, "scheduler");

  lockflight::election first(jobs, "scheduler", "first");
  first.campaign();
  lockflight::leader now = watched.leader_now();
  std::printf("leader: %s\n", now.value.c_str());

  std::jthread other([&] {  // in a cluster a process of another host
    lockflight::election second(jobs, "scheduler", "second");
    second.campaign();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));  // the work of a leader
    second.step_down();
  });
  first.step_down();
  while (now.value != "second") now = watched.await_change(now);
  std::printf("leader: %s\n", now.value.c_str());
  while (now) now = watched.await_change(now);
  std::puts("nobody leads");
  lockflight::domain::remove(name, true);
}
