#include "fabric/wired/segment.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/descriptor.hpp"
#include "base/round_up.hpp"

namespace lockflight::wired::detail {
namespace {

using bells = shm::detail::bells;

constexpr std::size_t page = 4096;

std::string refused(const char* call) {
  return "shared memory: " + std::string(call) + ": " + std::strerror(errno);
}

}  // namespace

shared_mapping::shared_mapping(world& in, const std::vector<int>& first_of, std::size_t bytes)
    : shared_mapping() {  // from here on an exception runs the destructor
  bytes_ = bytes;
  const int me = in.rank();
  const auto first = [&](int r) {
    return static_cast<std::size_t>(r) < first_of.size() ? first_of[static_cast<std::size_t>(r)]
                                                         : -1;
  };
  const bool makes = first(me) == me;
  const descriptor made(makes ? memfd_create("lockflight", MFD_CLOEXEC) : -1);
  std::string why;
  if (makes && (!made || ftruncate(made.get(), static_cast<off_t>(bytes)) != 0))
    why = refused("memfd_create, ftruncate");
  in.agree(why);
  const std::vector<std::string> paths = in.gather(
      makes ? "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(made.get()) : "");
  if (first(me) >= 0) {
    const descriptor opened(
        makes ? -1 : open(paths[static_cast<std::size_t>(first(me))].c_str(), O_RDWR | O_CLOEXEC));
    const int fd = makes ? made.get() : opened.get();
    void* const at =
        fd < 0 ? MAP_FAILED : mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED)
      why = refused("open, mmap");
    else
      at_ = static_cast<std::byte*>(at);
  }
  // The agreement also ensures that the file stays until all have opened it.
  in.agree(why);
}

shared_mapping::~shared_mapping() {
  if (at_ != nullptr) munmap(at_, bytes_);
}

segment::segment(world& in, const std::vector<int>& node_of, bool together, std::uint32_t words,
                 bool only_cpu)
    : in_(in) {
  const std::size_t bytes = std::size_t{words} * sizeof(rma::word);
  const std::size_t piece = round_up(sizeof(bells) + bytes, page);
  const auto ranks = static_cast<int>(node_of.size());
  const auto shares = [&](int a, int b) {
    return together || node_of[static_cast<std::size_t>(a)] == node_of[static_cast<std::size_t>(b)];
  };
  std::vector<int> first_of;
  for (int r = 0; r < ranks; ++r) {
    int first = 0;
    while (!shares(first, r)) ++first;
    first_of.push_back(first);
  }
  const int me = in.rank();
  const bool takes_part = me < ranks;
  std::size_t pieces = 0;
  base_.assign(node_of.size(), nullptr);
  for (int r = 0; takes_part && r < ranks; ++r) pieces += shares(me, r) ? 1 : 0;
  memory_ = shared_mapping(in, first_of, pieces * piece);
  // The kernel's zeroes are the cells' (C22) and the bells'.
  std::byte* at = memory_.data();
  for (int r = 0; takes_part && r < ranks; ++r) {
    if (!shares(me, r)) continue;
    base_[static_cast<std::size_t>(r)] = at + sizeof(bells);
    at += piece;
  }
  if (only_cpu) return;
  std::string mine;
  in.agree(fault_in([&] {
    if (!takes_part) return;
    exposed_ = in.net->expose(base_[static_cast<std::size_t>(me)], bytes);
    mine = exposed_->key();
  }));
  keys_ = in.gather(mine);
}

segment::~segment() {
  if (!in_.over) return;
  static_cast<void>(exposed_.release());  // see world::close_down
  static_cast<void>(memory_.release());
}

}  // namespace lockflight::wired::detail
