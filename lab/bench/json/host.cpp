#include "lab/bench/json/host.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/utsname.h>

#include <cmath>
#include <ctime>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "lab/bench/port/clock.hpp"
#include "lockflight/fabric/shm.hpp"

namespace lockflight::bench {
namespace {

/// The model of the processor; empty if the kernel does not say.
std::string cpu_model() {
  std::ifstream facts("/proc/cpuinfo");
  for (std::string line; std::getline(facts, line);) {
    if (!line.starts_with("model name")) continue;
    const std::size_t value = line.find(": ");
    if (value != std::string::npos) return line.substr(value + 2);
  }
  return "";
}

std::string compiler() {
#if defined(__clang__)
  return fmt::format("clang++ {}.{}.{}", __clang_major__, __clang_minor__, __clang_patchlevel__);
#elif defined(__GNUC__)
  return fmt::format("g++ {}.{}.{}", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#else
  return "unknown";
#endif
}

}  // namespace

nlohmann::json host_facts(const tick_clock& clock) {
  utsname system{};
  uname(&system);
  const shm::hardware found = shm::discover(1);
  const std::string model = cpu_model();
  const std::string build = LOCKFLIGHT_BUILD_TYPE;
  const std::string sanitizers = LOCKFLIGHT_SANITIZERS;
  return {
      {"date", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)))},
      {"cpu_model", model.empty() ? std::string(system.machine) : model},
      {"cores", found.cores},
      {"processors", found.processors},
      {"kernel", fmt::format("{} {}", system.sysname, system.release)},
      {"compiler", compiler()},
      {"build",
       {{"type", build.empty() ? nlohmann::json() : nlohmann::json(build)},
        {"sanitizer", sanitizers.empty() ? nlohmann::json() : nlohmann::json(sanitizers)}}},
      {"clock", clock.uses_tsc() ? "time-stamp counter" : "steady clock"},
      {"clock_read_ns",
       std::round(clock.base().us(static_cast<double>(clock.base().cost)) * 1e4) / 10},
  };
}

nlohmann::json hosts_of(launch& all) {
  using nlohmann::json;
  utsname system{};
  uname(&system);
  const shm::hardware found = shm::discover(1);
  const json mine{{"name", std::string(system.nodename)},
                  {"ranks", json::array()},
                  {"cores", found.cores},
                  {"processors", found.processors},
                  {"cpu_model", cpu_model()},
                  {"kernel", fmt::format("{} {}", system.sysname, system.release)}};
  std::map<int, json> by_first_rank;
  int rank = 0;
  for (const launch::word_from_rank& from : all.gather(mine.dump()))
    by_first_rank.try_emplace(from.first_of_host, json::parse(from.text))
        .first->second["ranks"]
        .push_back(rank++);
  json hosts = json::array();
  for (auto& [first, host] : by_first_rank) hosts.push_back(std::move(host));
  return hosts;
}

}  // namespace lockflight::bench
