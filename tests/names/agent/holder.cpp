// Holds a name of a cluster's domain until its input ends: cluster_holder DOMAIN NAME
// [shared|stays|many COUNT]
//
// It prints "held TOKEN DIED", then "lost" when it is told that, and "released".
// One that stays goes on then, so that its thread keeps its slot, until it is killed. With `many`
// it locks and unlocks NAME0, NAME1 and so on instead, in some threads.
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "lockflight/domain.hpp"

namespace {

void say(const std::string& line) {
  std::puts(line.c_str());
  std::fflush(stdout);
}

/// True if the input has ended after so many milliseconds.
bool ends_within(int ms) {
  pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  return poll(&input, 1, ms) > 0;
}

int use_many(const lockflight::domain& in, const std::string& name, int count) {
  constexpr int at_once = 16;
  std::vector<std::jthread> threads;
  for (int first = 0; first < at_once; ++first)
    threads.emplace_back([&, first] {
      for (int i = first; i < count; i += at_once) {
        lockflight::named_lock lock(in, fmt::format("{}{}", name, i));
        lock.lock();
        lock.unlock();
      }
    });
  threads.clear();
  say("used");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const std::string how = argc > 3 ? argv[3] : "";
  if (how == "many" && argc > 4)
    return use_many(lockflight::domain::open(argv[1]), argv[2], std::atoi(argv[4]));
  const bool shares = how == "shared";
  lockflight::named_lock lock(lockflight::domain::open(argv[1]), argv[2]);
  if (shares)
    lock.lock_shared();
  else
    lock.lock();
  say(fmt::format("held {} {}", shares ? 0 : lock.token(), lock.owner_died() ? 1 : 0));
  if (lock.owner_died() && !shares) lock.mark_consistent();
  const std::stop_callback at_loss(lock.loss(), [] { say("lost"); });
  while (!ends_within(-1)) {
  }
  if (shares)
    lock.unlock_shared();
  else
    lock.unlock();
  say("released");
  while (how == "stays") pause();
}
