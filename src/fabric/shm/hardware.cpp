// This machine's levels, from hwloc.
#include <hwloc.h>

#include <algorithm>
#include <map>
#include <memory>
#include <stdexcept>

#include "lockflight/fabric/shm.hpp"

namespace lockflight::shm {
namespace {

struct destroy_topology {
  void operator()(hwloc_topology* t) const { hwloc_topology_destroy(t); }
};
using hwloc_handle = std::unique_ptr<hwloc_topology, destroy_topology>;

struct free_bitmap {
  void operator()(hwloc_bitmap_s* b) const { hwloc_bitmap_free(b); }
};

/// Removes the processors to which we are not bound, as by taskset or a batch system: hwloc by
/// itself leaves out only those that a cgroup forbids. A topology from a file is taken as it is.
void keep_to_our_binding(hwloc_topology_t t) {
  const std::unique_ptr<hwloc_bitmap_s, free_bitmap> ours(hwloc_bitmap_alloc());
  if (ours == nullptr || hwloc_topology_is_thissystem(t) == 0) return;
  if (hwloc_get_cpubind(t, ours.get(), HWLOC_CPUBIND_THREAD) == 0)
    static_cast<void>(hwloc_topology_restrict(t, ours.get(), 0));  // or stays whole
}

hwloc_handle load() {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) throw std::runtime_error("hwloc cannot be initialised");
  hwloc_handle handle(raw);
  if (hwloc_topology_load(raw) != 0) throw std::runtime_error("hwloc cannot read this machine");
  keep_to_our_binding(raw);
  return handle;
}

/// The processors we may use, one hardware thread of every core before the second of any.
std::vector<hwloc_obj_t> usable_processors(hwloc_topology_t t) {
  std::map<int, std::vector<hwloc_obj_t>> by_turn;
  std::map<hwloc_obj_t, int> threads_of_core;
  const int count = hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_PU);
  for (int i = 0; i < count; ++i) {
    const hwloc_obj_t pu = hwloc_get_obj_by_type(t, HWLOC_OBJ_PU, static_cast<unsigned>(i));
    const hwloc_obj_t core = hwloc_get_ancestor_obj_by_type(t, HWLOC_OBJ_CORE, pu);
    by_turn[threads_of_core[core != nullptr ? core : pu]++].push_back(pu);
  }
  std::vector<hwloc_obj_t> all;
  for (const auto& [turn, processors] : by_turn)
    all.insert(all.end(), processors.begin(), processors.end());
  return all;
}

/// The elements of a level: for each rank the number of its element, dense from 0. NUMA nodes are
/// beside the tree of hwloc, so they are found by cpuset.
std::vector<int> elements_of(hwloc_topology_t t, hwloc_obj_type_t type,
                             const std::vector<hwloc_obj_t>& processor_of_rank) {
  std::map<unsigned, int> number;
  std::vector<int> element_of;
  for (const hwloc_obj_t pu : processor_of_rank) {
    hwloc_obj_t around = nullptr;
    while ((around = hwloc_get_next_obj_by_type(t, type, around)) != nullptr)
      if (around->cpuset != nullptr && hwloc_bitmap_isset(around->cpuset, pu->os_index)) break;
    if (around == nullptr) return {};
    const auto [at, is_new] =
        number.emplace(around->logical_index, static_cast<int>(number.size()));
    element_of.push_back(at->second);
  }
  return element_of;
}

int elements_in(const std::vector<int>& element_of) {
  return *std::max_element(element_of.begin(), element_of.end()) + 1;
}

}  // namespace

hardware discover(int ranks) {
  const hwloc_handle handle = load();
  hwloc_topology_t t = handle.get();
  const std::vector<hwloc_obj_t> usable = usable_processors(t);
  if (usable.empty()) throw std::runtime_error("hwloc finds no processor");

  // As many processors as ranks if there are enough; neighbours in rank are neighbours in hardware.
  const auto used = std::min(usable.size(), static_cast<std::size_t>(ranks));
  std::vector<hwloc_obj_t> chosen(usable.begin(),
                                  usable.begin() + static_cast<std::ptrdiff_t>(used));
  std::sort(chosen.begin(), chosen.end(),
            [](hwloc_obj_t a, hwloc_obj_t b) { return a->logical_index < b->logical_index; });
  std::vector<hwloc_obj_t> of_rank;
  for (std::size_t r = 0; r < static_cast<std::size_t>(ranks); ++r)
    of_rank.push_back(chosen[r * used / static_cast<std::size_t>(ranks)]);

  // A level counts when it splits an element of the level above, and not into single processors: an
  // element with one rank's core orders nothing.
  std::vector<std::vector<int>> levels{std::vector<int>(static_cast<std::size_t>(ranks), 0)};
  std::vector<std::string> names{"machine"};
  const std::pair<hwloc_obj_type_t, const char*> kinds[] = {{HWLOC_OBJ_PACKAGE, "package"},
                                                            {HWLOC_OBJ_NUMANODE, "numa node"},
                                                            {HWLOC_OBJ_L3CACHE, "L3 cache"},
                                                            {HWLOC_OBJ_L2CACHE, "L2 cache"}};
  for (const auto& [type, name] : kinds) {
    std::vector<int> element_of = elements_of(t, type, of_rank);
    if (element_of.empty() || levels.size() == most_levels) continue;
    const auto elements = static_cast<std::size_t>(elements_in(element_of));
    if (static_cast<int>(elements) <= elements_in(levels.back()) || elements >= used) continue;
    levels.push_back(std::move(element_of));
    names.emplace_back(name);
  }

  hardware found{rma::topology(std::move(levels), /*node_level=*/1), std::move(names), {}, 0, 0};
  for (const hwloc_obj_t pu : of_rank)
    found.processor_of_rank.push_back(static_cast<int>(pu->os_index));
  found.processors = static_cast<int>(usable.size());
  found.cores = std::max(1, hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_CORE));
  return found;
}

}  // namespace lockflight::shm
