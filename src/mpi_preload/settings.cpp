#include "mpi_preload/settings.hpp"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "lockflight/rma/assert.hpp"

namespace lockflight::mpi_preload {
namespace {

[[nodiscard]] std::string variable(const char* name) {
  const char* const given = std::getenv(name);
  return given != nullptr ? given : "";
}

/// Warns once for each argument, however many windows have the same error.
void warn(const std::string& argument, const std::string& text) {
  static std::mutex one_at_a_time;  // threads make windows at the same time
  static std::set<std::string> warned;
  const std::scoped_lock hold(one_at_a_time);
  int initialised = 0;
  int rank = 0;
  PMPI_Initialized(&initialised);
  if (initialised != 0) PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (!warned.insert(argument).second || rank != 0) return;
  std::fprintf(stderr, "lockflight: %s %s\n", argument.c_str(), text.c_str());
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
  warn(name, "'" + given + "' is ignored (accepted: seconds, 0 for never)");
  return 0;
}

[[nodiscard]] profile tuned_by_environment() {
  try {
    return profile::from_environment();
  } catch (const bad_profile& e) {
    warn("LOCKFLIGHT_PROFILE", std::string("is ignored: ") + e.what());
    return {};
  }
}

// The value in place of a lock's name that stands for the default of the window's ranks.
constexpr const char* by_default = "";

/// The SCC paper's modes (section 4.1), each with the lock that is made for it.
constexpr std::array<std::pair<const char*, const char*>, 4> sync_modes{{
    {"full-support", by_default},
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

[[nodiscard]] std::optional<std::string> known(const std::string& value, bool is_known,
                                               const char* from, const std::string& usual,
                                               const std::string& accepted) {
  if (is_known) return value;
  warn(from,
       "'" + value + "' is ignored; the default is " + usual + " (accepted: " + accepted + ")");
  return std::nullopt;
}

// The three functions that follow are called for each window, mostly without a setting to find.

[[nodiscard]] std::optional<std::string> known_lock(const std::string& name, const char* from) {
  if (name.empty()) return std::nullopt;
  return known(name, is_lock(name), from, default_lock, all_locks());
}

[[nodiscard]] std::optional<std::string> known_lock_all(const std::string& name, const char* from) {
  if (name.empty()) return std::nullopt;
  if (name == old_name_of_groups) return default_lock_all;
  return known(name, is_way(name), from, default_lock_all, all_ways());
}

[[nodiscard]] std::optional<std::string> known_mode(const std::string& mode, const char* from) {
  if (mode.empty()) return std::nullopt;
  for (const auto& [name, lock] : sync_modes)
    if (mode == name) return lock;
  return known(mode, false, from, default_lock,
               "writer-precedence, reader-precedence, fair, full-support");
}

}  // namespace

const settings& environment() {
  static const settings read{
      .off = switched_on("LOCKFLIGHT_MPI_OFF"),
      .has_nodes = !variable("LOCKFLIGHT_MPI_NODES").empty(),
      .statistics = switched_on("LOCKFLIGHT_MPI_STATS"),
      .hang_seconds = seconds_in("LOCKFLIGHT_MPI_HANG"),
      .lock = variable("LOCKFLIGHT_MPI_LOCK"),
      .lock_all = variable("LOCKFLIGHT_MPI_LOCK_ALL"),
      .tuned = tuned_by_environment(),
  };
  return read;
}

namespace {

[[nodiscard]] scheme_name wanted_of(MPI_Info info, bool several_hosts) {
  // Each source is read, also one over which another has precedence, so that a misspelt value is
  // warned of in any case.
  const auto named = known_lock(value_in(info, "lockflight_lock"), "info key lockflight_lock");
  const auto mode = known_mode(value_in(info, "passive_sync_mode"), "info key passive_sync_mode");
  const auto usual = known_lock(environment().lock, "LOCKFLIGHT_MPI_LOCK");
  const auto all =
      known_lock_all(value_in(info, "lockflight_lock_all"), "info key lockflight_lock_all");
  const auto usual_all = known_lock_all(environment().lock_all, "LOCKFLIGHT_MPI_LOCK_ALL");
  std::string lock = named.value_or(mode.value_or(usual.value_or(by_default)));
  const bool is_far = several_hosts && lock == by_default;
  const std::string way = all.value_or(usual_all.value_or(is_far ? way_of_mpi : default_lock_all));
  if (lock == by_default) lock = way == way_of_mpi ? default_queue : default_lock;
  return {lock, way, environment().tuned.values_of(lock)};
}

}  // namespace

scheme_name wanted_scheme(MPI_Info info, const window_group& ranks) {
  return wanted_of(info, ranks.several_hosts());
}

bool wants_mpi_alone_over_hosts(MPI_Info info, std::size_t ranks) {
  return !queues_before_mpi(ranks) &&
         wanted_of(info, /*several_hosts=*/true).lock_all == way_of_mpi;
}

scheme_message::scheme_message(const scheme_name& of) : fields_{} {
  rma::ensure(of.parameters.size() <= most_parameters, "a lock has few parameters");
  auto* next = fields_.data();
  const auto add = [&](const std::string& name, std::int64_t value) {
    name.copy(next->name.data(), next->name.size() - 1);
    (next++)->value = value;
  };
  add(of.lock, static_cast<std::int64_t>(of.parameters.size()));
  add(of.lock_all, 0);
  for (const auto& [name, value] : of.parameters) add(name, value);
}

scheme_name scheme_message::scheme() const {
  scheme_name said{fields_[0].name.data(), fields_[1].name.data()};
  for (std::int64_t i = 0; i < fields_[0].value; ++i) {
    const field& one = fields_[static_cast<std::size_t>(2 + i)];
    said.parameters.emplace(one.name.data(), one.value);
  }
  return said;
}

const char* sync_mode_of(const std::string& lock) {
  for (const auto& [mode, name] : sync_modes)
    if (lock == name) return mode;
  return "full-support";
}

}  // namespace lockflight::mpi_preload
