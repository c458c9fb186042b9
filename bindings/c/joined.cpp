#include "bindings/c/joined.hpp"

#include <utility>

#include "bindings/c/participant.hpp"

namespace lockflight::capi {
namespace {

/// A base class, so that it is constructed before the participant and destroyed after it.
struct has_place {
  std::unique_ptr<place> in;
};

class joined_participant final : has_place, public participant_on<fabric::networked_port> {
 public:
  joined_participant(std::unique_ptr<place> where, std::uint32_t words_per_rank, profile with)
      : has_place{std::move(where)}, participant_on(in->port(), words_per_rank, std::move(with)) {}

  [[nodiscard]] bool leaves() const override { return true; }
};

}  // namespace

lockflight_participant* joined(std::unique_ptr<place> in, std::uint32_t words_per_rank,
                               profile tuned) {
  return new joined_participant(std::move(in), words_per_rank, std::move(tuned));
}

}  // namespace lockflight::capi
