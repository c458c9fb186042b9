// Threads that observe an election of a cluster's domain: cluster_observer DOMAIN NAME THREADS
//
// For each change that a thread sees it prints "seen MOMENT TERM VALUE", with the moment in
// microseconds of CLOCK_BOOTTIME, and the value without its control characters. It runs until it is
// killed.
#include <fmt/format.h>
#include <time.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "lockflight/election.hpp"

namespace {

long long microseconds_now() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return now.tv_sec * 1'000'000LL + now.tv_nsec / 1'000;
}

void observe(const lockflight::domain& in, const std::string& name) {
  lockflight::election watched(in, name);
  for (lockflight::leader last;;) {
    last = watched.await_change(last);
    std::string value = last.value;
    std::erase_if(value, [](unsigned char each) { return each < ' '; });
    std::puts(fmt::format("seen {} {} {}", microseconds_now(), last.term, value).c_str());
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const auto in = lockflight::domain::open(argv[1]);
  std::vector<std::jthread> threads;
  for (int i = 0; i < std::atoi(argv[3]); ++i) threads.emplace_back([&] { observe(in, argv[2]); });
}
