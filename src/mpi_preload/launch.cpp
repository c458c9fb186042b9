#include "mpi_preload/launch.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

namespace lockflight::mpi_preload {
namespace {

// A group of a session and one of MPI_COMM_WORLD may be compared, and ranks of one may be
// translated to ranks of the other. All other operations on the two end the process in MPICH 5.
class group {
 public:
  explicit group(MPI_Comm of) { PMPI_Comm_group(of, &is_); }
  ~group() { PMPI_Group_free(&is_); }
  group(const group&) = delete;
  group& operator=(const group&) = delete;

  [[nodiscard]] MPI_Group get() const { return is_; }
  [[nodiscard]] int size() const {
    int ranks = 0;
    PMPI_Group_size(is_, &ranks);
    return ranks;
  }

 private:
  MPI_Group is_ = MPI_GROUP_NULL;
};

}  // namespace

bool has_launch() {
  int is_initialised = 0;
  int is_over = 0;
  PMPI_Initialized(&is_initialised);
  PMPI_Finalized(&is_over);
  return is_initialised != 0 && is_over == 0;
}

// Without memory of ours, which may be lacking on one rank alone.
bool is_of_this_launch(MPI_Comm whole) {
  const group launched(MPI_COMM_WORLD);
  const group members(whole);
  const int size = members.size();
  std::array<int, 256> here;
  std::array<int, 256> there;
  for (int first = 0; first < size;) {
    const int count = std::min(size - first, static_cast<int>(here.size()));
    std::iota(here.begin(), here.begin() + count, first);
    PMPI_Group_translate_ranks(members.get(), count, here.data(), launched.get(), there.data());
    if (std::find(there.begin(), there.begin() + count, MPI_UNDEFINED) != there.begin() + count)
      return false;
    first += count;
  }
  return true;
}

MPI_Group group_in_launch(MPI_Comm whole) {
  const group launched(MPI_COMM_WORLD);
  const group members(whole);
  std::vector<int> here(static_cast<std::size_t>(members.size()));
  std::vector<int> there(here.size());
  std::iota(here.begin(), here.end(), 0);
  PMPI_Group_translate_ranks(members.get(), members.size(), here.data(), launched.get(),
                             there.data());
  MPI_Group made = MPI_GROUP_NULL;
  PMPI_Group_incl(launched.get(), members.size(), there.data(), &made);
  return made;
}

}  // namespace lockflight::mpi_preload
