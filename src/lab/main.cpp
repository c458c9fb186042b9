// main() of lockflight-lab where it has no network: shared memory and simulated machines.
#include <algorithm>
#include <array>
#include <string>

#include "lab/commands.hpp"
#include "lab/named_fabric.hpp"
#include "tool/siblings.hpp"
#include "tool/standard_streams.hpp"

namespace {

using namespace lockflight;

/// Fabrics whose lab this one becomes where it is built. Not MPI: there may be several of them, and
/// a launch knows which one it is of.
constexpr std::array<std::string_view, 3> other_labs{"ucx", "libfabric", "oshmem"};

}  // namespace

int main(int argc, char** argv) {
  tool::fill_standard_streams();
  const std::string fabric(lab::named_fabric(argc, argv));
  // In a build that lab is in a folder of its own. Where there is none, this one says which fabrics
  // it has.
  if (std::ranges::find(other_labs, fabric) != other_labs.end())
    static_cast<void>(tool::sibling("lockflight-lab." + fabric)
                          .first_at(fabric + "/lockflight-lab")
                          .become(argv));
  return lab::run_lab(argc, argv);
}
