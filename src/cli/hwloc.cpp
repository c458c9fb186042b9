// The functions of hwloc that look at a machine, which load the library when one is called: only
// `lockflight topo` calls any, and a run of a command under a lock would load it for nothing.
#ifdef LOCKFLIGHT_HWLOC

#include <dlfcn.h>
#include <hwloc.h>

#include <stdexcept>
#include <string>

namespace {

void* library() {
  static void* const loaded = dlopen(LOCKFLIGHT_HWLOC, RTLD_NOW | RTLD_LOCAL);
  if (loaded == nullptr)
    throw std::runtime_error(std::string("the machine cannot be looked at without hwloc: ") +
                             dlerror());
  return loaded;
}

/// The library's function of the same name.
template <class Function>
Function* original(Function& /*ours*/, const char* name) {
  void* const found = dlsym(library(), name);
  if (found == nullptr) throw std::runtime_error(std::string(LOCKFLIGHT_HWLOC " has no ") + name);
  return reinterpret_cast<Function*>(found);
}

}  // namespace

#define LOCKFLIGHT_PASS_ON(result, name, parameters, arguments) \
  result name parameters { return original(name, #name) arguments; }

LOCKFLIGHT_PASS_ON(hwloc_bitmap_t, hwloc_bitmap_alloc, (), ())
LOCKFLIGHT_PASS_ON(void, hwloc_bitmap_free, (hwloc_bitmap_t set), (set))
LOCKFLIGHT_PASS_ON(int, hwloc_bitmap_isset, (hwloc_const_bitmap_t set, unsigned id), (set, id))
LOCKFLIGHT_PASS_ON(int, hwloc_get_cpubind, (hwloc_topology_t t, hwloc_cpuset_t set, int flags),
                   (t, set, flags))
LOCKFLIGHT_PASS_ON(unsigned, hwloc_get_nbobjs_by_depth, (hwloc_topology_t t, int depth), (t, depth))
LOCKFLIGHT_PASS_ON(hwloc_obj_t, hwloc_get_obj_by_depth,
                   (hwloc_topology_t t, int depth, unsigned number), (t, depth, number))
LOCKFLIGHT_PASS_ON(int, hwloc_get_type_depth, (hwloc_topology_t t, hwloc_obj_type_t type),
                   (t, type))
LOCKFLIGHT_PASS_ON(void, hwloc_topology_destroy, (hwloc_topology_t t), (t))
LOCKFLIGHT_PASS_ON(int, hwloc_topology_init, (hwloc_topology_t * t), (t))
LOCKFLIGHT_PASS_ON(int, hwloc_topology_is_thissystem, (hwloc_topology_t t), (t))
LOCKFLIGHT_PASS_ON(int, hwloc_topology_load, (hwloc_topology_t t), (t))
LOCKFLIGHT_PASS_ON(int, hwloc_topology_restrict,
                   (hwloc_topology_t t, hwloc_const_bitmap_t set, unsigned long flags),
                   (t, set, flags))

#endif
