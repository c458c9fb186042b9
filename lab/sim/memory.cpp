#include "lab/sim/memory.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <string>
#include <system_error>

namespace lockflight::sim {

memory::memory(std::uint32_t ranks, std::uint32_t words_each)
    : words_each_(words_each),
      ranks_(ranks),
      bytes_(sizeof(cache_line) * ranks_ *
             ((words_each + cache_line::words - 1) / cache_line::words)) {
  void* const mapped = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED)
    throw std::system_error(errno, std::generic_category(),
                            "memory of " + std::to_string(ranks) + " simulated ranks, " +
                                std::to_string(bytes_ >> 20) + " MiB of addresses");
  // Ranks are visited in any order: a huge page would be committed for one cache line.
  madvise(mapped, bytes_, MADV_NOHUGEPAGE);
  lines_ = static_cast<cache_line*>(mapped);
}

memory::~memory() { munmap(lines_, bytes_); }

}  // namespace lockflight::sim
