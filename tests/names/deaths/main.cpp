// The kill campaign: processes lock and unlock named locks while they are killed, stopped and told
// to exit at random moments, by two users, in several namespaces of processes, and while a removal
// of the domain is tried. The processes also become new images by exec, make children in every way,
// and enter other namespaces. The data that the locks guard show every lost update, torn state,
// repeated token and false alarm. Waiters are also stopped for long: no other process may wait for
// them.
//
// Where to find what:
//   options        the command line
//   locks          the locks in use, one of each kind
//   shared_state   the memory that the workers and the campaign share
//   worker         the loop of a worker process, and the rules that it checks
//   worker_orders  the orders that a worker obeys: exit, image, child, namespace
//   worker_pool    starting and ending the workers, as users and in namespaces
//   disturbances   kills, stops, orders and removals at random moments
//   rules          the rules that are checked at the end, and the summary
//
// Usage: lockflight_deaths --kills 300 --processes 8. Exit codes: 0 fine, 1 a rule is broken, 2 bad
// usage, 3 the environment failed.
#include <fmt/format.h>

#include <cstdio>
#include <exception>

#include "tests/names/deaths/disturbances.hpp"
#include "tests/names/deaths/options.hpp"
#include "tests/names/deaths/rules.hpp"
#include "tests/names/deaths/worker.hpp"
#include "tests/names/deaths/worker_orders.hpp"
#include "tests/names/deaths/worker_pool.hpp"

namespace lockflight::test {
namespace {

int run(int argc, char** argv) {
  campaign_options options;
  if (const auto code = read_options(argc, argv, options)) return *code;
  try {
    worker_pool workers(options);
    campaign_record record;
    disturbances disturb(options, workers, record);
    static_cast<void>(workers.open_domain());
    disturb.start_all();
    disturb.carry_out();
    workers.end_all(disturb.stopped());
    judge(options, workers, record);
    print_summary(options, workers.all(), record);
    return workers.all().broken == 0 ? 0 : 1;
  } catch (const std::exception& e) {
    fmt::print(stderr, "lockflight_deaths: {}\n", e.what());
    return 3;
  }
}

// The main program of a worker that became a new image.
[[noreturn]] void go_on_as_worker(char** argv) {
  static const worker_start start = start_of_image(argv);
  work(map_shared(start.memory), start);
}

}  // namespace
}  // namespace lockflight::test

int main(int argc, char** argv) {
  using namespace lockflight::test;
  if (is_worker_image(argc, argv)) go_on_as_worker(argv);
  return run(argc, argv);
}
