#include "lab/check/memory/memory.hpp"

#include "lab/check/memory/tso.hpp"
#include "lab/check/memory/views.hpp"

namespace lockflight::check {

std::unique_ptr<memory> make_memory(memory_kind kind, world& all, const memory_options& how) {
  switch (kind) {
    case memory_kind::tso:
      return std::make_unique<tso_memory>(all, how.buffers_stores);
    case memory_kind::views:
      return std::make_unique<views_memory>(all, how.tracks_relaxed);
  }
  return nullptr;
}

}  // namespace lockflight::check
