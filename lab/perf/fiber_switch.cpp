// What a fiber costs: a switch, a new start, a million of them.
//
//   fiber_switch [most fibers, 1000000 by default] [stack bytes, 16384 by default]
//
// One line per figure. Times are the best of several rounds, as a shared machine only ever adds.

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "lab/fiber/fiber.hpp"
#include "lab/fiber/stack_pool.hpp"

namespace {

using lockflight::fiber::fiber;
using lockflight::fiber::guard;
using lockflight::fiber::stack_pool;

void suspend_for_ever() {
  for (;;) {
    fiber::suspend();
  }
}

template <class F>
double time_ns(F&& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count();
}

// Nanoseconds per repetition of `work`, the best of five rounds.
template <class F>
double best_ns(std::size_t repetitions, F&& work) {
  double best = 0;
  for (int round = 0; round < 5; ++round) {
    const double took = time_ns([&] {
      for (std::size_t i = 0; i < repetitions; ++i) {
        work();
      }
    });
    best = round == 0 ? took : std::min(best, took);
  }
  return best / static_cast<double>(repetitions);
}

void print(const char* what, double value, const char* unit) {
  std::printf("%-58s %10.1f %s\n", what, value, unit);
}

double resident_mib() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

void one_fiber() {
  stack_pool pool(std::size_t{64} * 1024);
  fiber one(pool.take(), suspend_for_ever);
  print("switch, there and back", best_ns(10'000'000, [&] { one.resume(); }), "ns");

  volatile double third = 1;
  print("the same, each side rounding a number",
        best_ns(10'000'000,
                [&] {
                  third = third / 3 + 1;
                  one.resume();
                }),
        "ns");
  print("reset, run to the end",
        best_ns(5'000'000,
                [&] {
                  one.reset([] {});
                  one.resume();
                }),
        "ns");
  print("reset, run, suspend, abandon",
        best_ns(5'000'000,
                [&] {
                  one.reset(suspend_for_ever);
                  one.resume();
                  one.abandon();
                }),
        "ns");
  print("reset, run, suspend, unwind",
        best_ns(200'000,
                [&] {
                  one.reset(suspend_for_ever);
                  one.resume();
                  one.unwind();
                }),
        "ns");
  print("new fiber on a used stack, run to the end, destroy",
        best_ns(5'000'000, [&] { fiber(pool.take(), [] {}).resume(); }), "ns");
}

// All fibers in turn, so that each is as cold as the caches let it be.
void many_fibers(std::size_t fibers, std::size_t stack_bytes, guard below) {
  const double before_mib = resident_mib();
  stack_pool pool(stack_bytes, below);
  std::vector<fiber> all;
  all.reserve(fibers);
  const double made_ns = time_ns([&] {
    for (std::size_t i = 0; i < fibers; ++i) {
      all.emplace_back(pool.take(), suspend_for_ever);
      all.back().resume();
    }
  });
  const std::size_t rounds = std::max<std::size_t>(1, 2'000'000 / fibers);
  const double turn_ns = best_ns(rounds, [&] {
    for (fiber& each : all) {
      each.resume();
    }
  });
  const double used_mib = resident_mib() - before_mib;
  for (fiber& each : all) {
    each.abandon();
  }
  const double drop_ns = time_ns([&] { all.clear(); });
  const auto count = static_cast<double>(fibers);
  std::printf("%9zu fibers of %zu KiB%s: first start %.0f ns, switch there and back %.1f ns, ",
              fibers, stack_bytes / 1024, below == guard::none ? "" : ", guarded", made_ns / count,
              turn_ns / count);
  std::printf("destroy %.0f ns, %.0f MiB more resident\n", drop_ns / count, used_mib);
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t most = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1'000'000;
  const std::size_t stack_bytes = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 16 * 1024;
  one_fiber();
  for (std::size_t fibers = 100; fibers <= most; fibers *= 10) {
    many_fibers(fibers, stack_bytes, guard::none);
  }
  many_fibers(std::max<std::size_t>(most, 1), stack_bytes, guard::page);
}
