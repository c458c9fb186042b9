// main() of the lab with libfabric, which build/lockflight-lab becomes when it is asked for that
// fabric.
#include "lab/bench/wired/launch.hpp"
#include "lab/program/launched_main.hpp"
#include "lockflight/fabric/libfabric.hpp"
#include "tool/standard_streams.hpp"

int main(int argc, char** argv) {
  lockflight::tool::fill_standard_streams();
  lockflight::bench::wired_launch<lockflight::libfabric::environment> libfabric;
  return lockflight::lab::run_launched_lab(libfabric, argc, argv);
}
