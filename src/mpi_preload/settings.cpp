#include "mpi_preload/settings.hpp"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <utility>

#include "mpi_preload/scheme.hpp"

namespace lockflight::mpi_preload {
namespace {

[[nodiscard]] std::string variable(const char* name) {
  const char* const given = std::getenv(name);
  return given != nullptr ? given : "";
}

/// Once, however many windows ask for what there is not.
void warn(const std::string& text) {
  static bool warned = false;
  int initialised = 0;
  int rank = 0;
  PMPI_Initialized(&initialised);
  if (initialised != 0) PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (std::exchange(warned, true) || rank != 0) return;
  std::fprintf(stderr, "lockflight: %s\n", text.c_str());
}

[[nodiscard]] bool switched_on(const char* name) {
  const std::string given = variable(name);
  return !given.empty() && given != "0";
}

[[nodiscard]] double seconds_in(const char* name) {
  const std::string given = variable(name);
  if (given.empty()) return 0;
  char* end = nullptr;
  const double seconds = std::strtod(given.c_str(), &end);
  if (*end == '\0' && seconds >= 0) return seconds;
  warn(std::string(name) + " '" + given + "' is ignored (accepted: seconds, 0 for never)");
  return 0;
}

/// The SCC paper's modes (section 4.1), each by the lock that is made for it.
constexpr std::array<std::pair<const char*, const char*>, 4> sync_modes{{
    {"full-support", default_scheme},
    {"fair", "mcs-rw-fair"},
    {"reader-precedence", "mcs-rw-rp"},
    {"writer-precedence", "mcs-rw-wp"},
}};

[[nodiscard]] std::string value_in(MPI_Info info, const char* key) {
  if (info == MPI_INFO_NULL) return "";
  std::array<char, MPI_MAX_INFO_VAL + 1> value{};
  int found = 0;
  PMPI_Info_get(info, key, MPI_MAX_INFO_VAL, value.data(), &found);
  return found != 0 ? value.data() : "";
}

[[nodiscard]] std::optional<std::string> known(const std::string& name, const char* from) {
  if (name.empty()) return std::nullopt;
  if (is_scheme(name)) return name;
  warn(std::string(from) + " '" + name + "' is ignored; the default is " + default_scheme +
       " (accepted: " + all_schemes() + ")");
  return std::nullopt;
}

[[nodiscard]] std::optional<std::string> known_mode(const std::string& mode) {
  if (mode.empty()) return std::nullopt;
  for (const auto& [name, scheme] : sync_modes)
    if (mode == name) return scheme;
  warn("info key passive_sync_mode '" + mode + "' is ignored; the default is " + default_scheme +
       " (accepted: writer-precedence, reader-precedence, fair, full-support)");
  return std::nullopt;
}

}  // namespace

const settings& environment() {
  static const settings read{
      .off = switched_on("LOCKFLIGHT_MPI_OFF"),
      .statistics = switched_on("LOCKFLIGHT_MPI_STATS"),
      .hang_seconds = seconds_in("LOCKFLIGHT_MPI_HANG"),
      .scheme = variable("LOCKFLIGHT_MPI_LOCK"),
  };
  return read;
}

std::string scheme_of(MPI_Info info) {
  // Each is looked at, also one that another goes before: a misspelt value is told either way.
  const auto named = known(value_in(info, "lockflight_lock"), "info key lockflight_lock");
  const auto mode = known_mode(value_in(info, "passive_sync_mode"));
  const auto usual = known(environment().scheme, "LOCKFLIGHT_MPI_LOCK");
  return named.value_or(mode.value_or(usual.value_or(default_scheme)));
}

const char* sync_mode_of(const std::string& scheme) {
  for (const auto& [mode, name] : sync_modes)
    if (scheme == name) return mode;
  return "full-support";
}

}  // namespace lockflight::mpi_preload
