// main() of lockflight-lab where it has no network: shared memory and simulated machines.
#include <string>

#include "lab/bench/plan/networks.hpp"
#include "lab/program/commands.hpp"
#include "lab/program/named_fabric.hpp"
#include "tool/siblings.hpp"
#include "tool/standard_streams.hpp"

int main(int argc, char** argv) {
  using namespace lockflight;
  tool::fill_standard_streams();
  const std::string fabric(lab::named_fabric(argc, argv));
  // In a build that lab is in a folder of its own. Where there is none, this one says which fabrics
  // it has.
  const bench::network_fabric* const network = bench::network_of(fabric);
  if (network != nullptr && network->serves_usual_lab)
    static_cast<void>(tool::sibling("lockflight-lab." + fabric)
                          .first_at(fabric + "/lockflight-lab")
                          .become(argv));
  return lab::run_lab(argc, argv);
}
