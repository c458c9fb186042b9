// How long many ranks take to come together, and what each has then. All are processes of this
// host.
//
// usage: starting RANKS [NODES]
// Prints a line, and exits with 0 if the ranks have come and have talked to nobody.
#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "fabric/shm/pause.hpp"
#include "fabric/wired/world.hpp"
#include "lockflight/fabric/ucx.hpp"

namespace {

using namespace lockflight;

constexpr const char* begun_variable = "LOCKFLIGHT_TEST_BEGUN";
constexpr double ns_in_s = 1e9;

double seconds_since(std::uint64_t begun) {
  return static_cast<double>(now_ns() - begun) / ns_in_s;
}

/// One rank: joins, takes part in a run, and says how many it is connected with.
int be_a_rank(std::uint64_t begun) {
  try {
    ucx::environment world;
    const double joined = seconds_since(begun);
    ucx::config what{.machine = ucx::discover(world, world.size()).machine,
                     .waiting = "yield",
                     .words_per_rank = 1u << 10};
    double running = 0;
    std::size_t endpoints = 0;
    ucx::run_ports(world, what, [&](ucx::port&) {
      running = seconds_since(begun);
      endpoints = world.parts().net->connections();
    });
    const double last = -world.least(-running);
    const double most = -world.least(-static_cast<double>(endpoints));
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    const double mib = -world.least(-static_cast<double>(used.ru_maxrss) / 1024);
    if (world.rank() == 0) {
      std::printf(
          "%d ranks on %d nodes: together after %.2f s, all in a run after %.2f s; at most "
          "%.0f endpoints and %.0f MiB a rank\n",
          world.size(), what.machine.nodes(), joined, last, most, mib);
      std::fflush(stdout);
    }
    return most == 0 ? 0 : 1;
  } catch (const std::exception& e) {
    const char* const rank = std::getenv("LOCKFLIGHT_RANK");
    if (rank != nullptr && *rank == '0' && rank[1] == 0)
      std::fprintf(stderr, "starting: %s\n", e.what());
    return 3;
  }
}

int launch(char** argv, int ranks) {
  const std::string port = std::to_string(20'000 + getpid() % 10'000);
  setenv("LOCKFLIGHT_RENDEZVOUS", ("127.0.0.1:" + port).c_str(), 1);
  setenv("LOCKFLIGHT_RANKS", std::to_string(ranks).c_str(), 1);
  setenv(begun_variable, std::to_string(now_ns()).c_str(), 1);
  setenv("UCX_LOG_LEVEL", "fatal", 1);
  for (int r = 0; r < ranks; ++r) {
    setenv("LOCKFLIGHT_RANK", std::to_string(r).c_str(), 1);
    pid_t child = 0;
    if (posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, argv, environ) != 0) return 3;
  }
  int code = 0;
  for (int status = 0; wait(&status) > 0;)
    if (status != 0) code = WIFEXITED(status) ? WEXITSTATUS(status) : 3;
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  if (const char* const begun = std::getenv(begun_variable); begun != nullptr)
    return be_a_rank(std::strtoull(begun, nullptr, 10));
  const int ranks = argc > 1 ? std::atoi(argv[1]) : 0;
  if (ranks < 1) {
    std::fputs("usage: starting RANKS [NODES]\n", stderr);
    return 2;
  }
  if (argc > 2) setenv("LOCKFLIGHT_UCX_NODES", argv[2], 1);
  return launch(argv, ranks);
}
