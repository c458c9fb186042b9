// The checker's interface for the program: requests and reports.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "lab/check/program/subject.hpp"
#include "lab/check/search/search.hpp"

namespace lockflight::check {

/// The participants whose starvation is searched for.
enum class watched : std::uint8_t {
  nobody,
  writers,
  readers,
  all,      ///< both
  leaving,  ///< participants that release
  tries,    ///< participants that only try
};

/// A check: a lock, its participants, and the bound of the search.
struct request {
  std::string lock;
  int writers = 2;
  int readers = 0;
  int try_writers = 0;
  int try_readers = 0;
  int timed_writers = 0;
  int timed_readers = 0;
  int upgraders = 0;
  int upgrading_readers = 0;
  int abandoners = 0;  ///< only with deaths or stops
  /// If not `nobody`: each participant comes without end, whatever `rounds` is, unless that is 0.
  watched starvation = watched::nobody;
  int rounds = 1;
  std::vector<int> rounds_of;  ///< of each rank, where they differ; else empty
  std::string levels;          ///< empty: two nodes if the number of participants is even, else one
  int node_level = 0;
  settings set;
  model how;
  limits until;
  bool random = false;  ///< random schedules instead of all
  random_limits random_until;
};

/// The count of a part in a request, and the names of the part.
struct part_row {
  part what;
  int request::*count;
  const char* option;  ///< of the command line
  const char* key;     ///< of replays and mutants
  const char* one;
  const char* many;
  const char* does;
};
inline constexpr std::array part_rows{
    part_row{part::writer, &request::writers, "--writers", "writers", "writer", "writers",
             "writer"},
    part_row{part::reader, &request::readers, "--readers", "readers", "reader", "readers",
             "reader"},
    part_row{part::try_writer, &request::try_writers, "--try-writers", "try_writers",
             "trying writer", "trying writers", "tries to write"},
    part_row{part::try_reader, &request::try_readers, "--try-readers", "try_readers",
             "trying reader", "trying readers", "tries to read"},
    part_row{part::timed_writer, &request::timed_writers, "--timed-writers", "timed_writers",
             "timed writer", "timed writers", "writes if it gets it in time"},
    part_row{part::timed_reader, &request::timed_readers, "--timed-readers", "timed_readers",
             "timed reader", "timed readers", "reads if it gets it in time"},
    part_row{part::upgrader, &request::upgraders, "--upgraders", "upgraders", "upgrader",
             "upgraders", "upgrades and downgrades"},
    part_row{part::upgrading_reader, &request::upgrading_readers, "--upgrading-readers",
             "upgrading_readers", "upgrading reader", "upgrading readers",
             "reads and tries to upgrade"},
    part_row{part::abandoner, &request::abandoners, "--abandoners", "abandoners", "abandoner",
             "abandoners", "writes, and its hold is ended for it"},
};

/// A step of a counterexample, for tables and JSON.
struct trace_row {
  int number;
  rank_t rank;
  std::string what;     ///< the operation, as "swap lock[0]@0 := &line[0]@1, was 0"
  std::string changed;  ///< "lock[0]@0: 0 -> &line[0]@1", or empty
  std::string note;     ///< "waits", "enters", …, or empty
};

struct report {
  request asked;
  std::string levels;
  std::vector<part> parts;  ///< of each rank
  outcome found;
  std::vector<trace_row> trace;
  std::string replay;  ///< repeats the counterexample; empty if there is none
};

/// The locks that can be checked, in the order of the lock table.
[[nodiscard]] const std::vector<subject>& subjects();
/// Throws bad_request for a lock that is not among them.
[[nodiscard]] const subject& subject_named(const std::string& name);

/// Throws bad_request.
[[nodiscard]] report run(const request& what, const search_progress& watch = nullptr);
/// The same for a lock that is not in the table (a mutant).
[[nodiscard]] report run(const subject& lock, const request& what,
                         const search_progress& watch = nullptr);

/// Replays a string. Throws bad_request that says where the string is wrong, or what has changed
/// since it was made.
[[nodiscard]] report replay(const std::string& text);
[[nodiscard]] report replay(const subject& lock, const std::string& text);

/// "writers", "readers", …; empty for watched::nobody.
[[nodiscard]] const char* name_of(watched who);
/// The inverse of name_of. Throws bad_request.
[[nodiscard]] watched watched_named(const std::string& name);

/// "2 writers, 1 reader, 3 rounds".
[[nodiscard]] std::string describe_parts(const report& of);
[[nodiscard]] nlohmann::json to_json(const report& of);
/// The counterexample as a table over time, a column for each participant. Empty without one.
[[nodiscard]] std::string trace_table(const report& of);

}  // namespace lockflight::check
