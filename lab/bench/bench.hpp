// The benchmark's interface for the program: a comparison of locks, and its results as the JSON of
// the program's fixed interface.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "catalogue/parameters.hpp"
#include "lockflight/lock/about.hpp"

namespace lockflight::sim {
struct machine_profile;
}

namespace lockflight::bench {

/// A request that cannot be carried out. `what()` is one line: the argument, its value and
/// what is accepted. The program exits with 2.
struct bad_request : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

/// A request for which this machine has too little memory.
struct no_room : bad_request {
  using bad_request::bad_request;
};

/// How writers are chosen: a participant writes all the time, or each operation by chance.
enum class role { process, operation };

/// A comparison: every lock at every number of ranks.
struct request {
  std::vector<std::string> locks;  ///< names of the lock table or "all"; with dht "fompi-a"
  std::string workload = "ecsb";
  std::string fabric = "shm";
  std::string profile;  ///< sim: the machine file, or the name of one that is part of the program
  std::map<std::string, double> machine_set;  ///< sim: numbers of it to replace, by "table.key"
  std::string nodes;  ///< sim: which of the machine's nodes, "0,6-11"; empty: the first ones
  std::vector<int> procs{2};
  std::string levels;      ///< "AxB[xC]", or empty: as hwloc finds
  int node_level = 0;      ///< which level's elements are nodes; 0: the smallest
  double writers = 0.002;  ///< F_W
  role by = role::operation;
  std::uint64_t ops = 0;  ///< of all ranks together; 0: run for `seconds`
  double seconds = 1.0;
  std::uint64_t seed = 1;
  catalogue::parameter_values set;  ///< lock parameters; each must exist in a lock asked for
  /// By lock: the parameters of a profile. Those of `set` or `sweep` have precedence.
  std::map<std::string, catalogue::parameter_values> tuned;
  /// A parameter of locks, or one of sweepable_settings(), that is given each of `sweep_values` in
  /// turn; empty: none.
  std::string sweep;
  std::vector<double> sweep_values;
  // For some workloads only:
  std::optional<std::uint64_t> sample;      ///< ecsb, sob: one operation in this many is timed
  std::optional<std::uint64_t> table_size;  ///< table, contention, zipf: the locks to choose from
  std::optional<double> locality;  ///< table: fraction of operations on locks of the own node
  std::optional<double> think_us;  ///< table: between two operations of a rank
  std::optional<double> call_us;   ///< table: of each operation, before its acquire
  std::optional<double> hold_us;   ///< contention: how long a lock is held
  std::optional<double> skew;      ///< zipf: the exponent of Zipf's law
  bool server_busy = false;        ///< contention: rank 0 computes meanwhile
  std::optional<std::uint64_t> server_load;  ///< contention, sim: busy processes beside rank 0
  std::optional<std::uint64_t> bytes;        ///< dht-writer: written each time
  std::optional<std::string> operation;      ///< primitive: one of operations(); none: all of them
  std::optional<std::uint64_t> flags_at;     ///< stencil: the rank of all flags; none: each its own
  bool threads = false;
  bool pin = true;
  bool witness = false;  ///< mpi: exclusion is checked by one-sided operations, across hosts too
  std::string waiting = "auto";
  std::string trace;    ///< Chrome trace file; empty: none
  bool warm_up = true;  ///< false: all of a run is measured
  /// sim: a run with clearly more events is ended by sim::too_many_events; 0: any number.
  std::uint64_t most_events = 0;
};

/// The progress of a comparison; reported a few times a second.
struct progress {
  std::string lock;
  int procs = 0;
  std::size_t run = 0;   ///< this one, from 0
  std::size_t runs = 0;  ///< runs in all
  double fraction = 0;   ///< of this one
};
using progress_callback = std::function<void(const progress&)>;

/// Throws bad_request unless `run` could carry out the request.
void validate(const request& what);

/// A sentence about what the results do not contain.
using remark_callback = std::function<void(const std::string&)>;

/// Carries out the comparison and returns {"lockflight", "host", "runs"}. `remark` hears of a trace
/// that did not have room for the whole run. Throws bad_request, shm::rank_failed or
/// std::system_error.
[[nodiscard]] nlohmann::json run(const request& what, const progress_callback& watch = nullptr,
                                 const remark_callback& remark = nullptr);

/// Carries out the one run of a request on a simulated machine and returns it as one of "runs"
/// above. Before it starts, `admit` is called with the bytes of memory that it will take, about;
/// then `watch` a few times a second. What they throw ends the run. Several threads may do so at
/// once. Throws bad_request if it is more than one run, or not simulated.
[[nodiscard]] nlohmann::json run_simulated(
    const request& what, const std::function<void()>& watch = nullptr,
    const std::function<void(double bytes)>& admit = nullptr);

/// A lock in the program's lists.
struct lock_row {
  lock::facts about;
  std::vector<std::string> fabrics;
  catalogue::parameter_rows parameters;
  std::int64_t most_ranks;  ///< with the default parameters
};

/// Every lock that can be run, in the order of the lock table.
[[nodiscard]] const std::vector<lock_row>& lock_table();

/// The names of the project's own locks, which come from no paper.
[[nodiscard]] std::vector<std::string> own_locks();

/// The known workloads and what each measures, for help and errors.
struct workload_row {
  std::string name;
  std::string what;
};
[[nodiscard]] const std::vector<workload_row>& workloads();

/// The operations of workload primitive.
[[nodiscard]] const std::vector<std::string>& operations();

/// The names that `request::sweep` accepts beside the parameters of locks: options of the program,
/// without the dashes.
struct setting_row {
  std::string name;
  bool whole;  ///< takes whole numbers only
};
[[nodiscard]] const std::vector<setting_row>& sweepable_settings();

}  // namespace lockflight::bench
