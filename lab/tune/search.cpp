#include "lab/tune/search.hpp"

#include <algorithm>
#include <array>
#include <set>

#include "lockflight/rma/assert.hpp"

namespace lockflight::tune {
namespace {

class climber {
 public:
  climber(const setting& start, const compare& hold) : best_(start), hold_(hold), tried_{start} {}

  /// Moves one parameter. Returns whether a step gained.
  bool move(const axis& along) {
    constexpr std::array<std::ptrdiff_t, 3> strides{4, 2, 1};
    bool gained = false;
    std::array<bool, 2> is_flat{false, false};  // upwards, downwards
    for (const std::ptrdiff_t stride : strides)
      for (const bool down : {false, true}) {
        if (is_flat[down]) continue;
        const walk went = go(along, down ? -stride : stride, stride == strides.front());
        is_flat[down] = went.flat;
        gained = gained || went.gained;
        if (went.gained) break;  // in one direction; the other leads back
      }
    return gained;
  }

  [[nodiscard]] bool spent() const { return spent_; }
  [[nodiscard]] const setting& best() const { return best_; }

 private:
  struct walk {
    bool gained = false;
    bool flat = false;  ///< the first step has changed nothing
  };

  /// Steps of `by` rungs, as long as they gain. `over_even`: also over values that are neither
  /// better nor worse, behind which there may be a better one.
  walk go(const axis& along, std::ptrdiff_t by, bool over_even) {
    walk went;
    const auto last = static_cast<std::ptrdiff_t>(along.rungs.size()) - 1;
    const std::ptrdiff_t from = rung_of(along);
    std::ptrdiff_t at = from;
    while (!spent_) {
      const bool is_first = at == from;
      const std::ptrdiff_t next = std::clamp(at + by, std::ptrdiff_t{0}, last);
      if (next == at) break;
      at = next;
      const std::optional<verdict> is = try_out(along, at);
      went.flat = is_first && is == verdict::same;
      if (is == verdict::better)
        went.gained = true;
      else if (is != verdict::even || !over_even)
        break;
    }
    return went;
  }

  std::optional<verdict> try_out(const axis& along, std::ptrdiff_t rung) {
    setting candidate = best_;
    candidate[along.name] = along.rungs[static_cast<std::size_t>(rung)];
    // A candidate that was tried before was not better then, and the steps around it have been
    // tried too.
    if (!tried_.insert(candidate).second) return verdict::worse;
    const std::optional<verdict> is = hold_(candidate, best_, along.name);
    if (!is) spent_ = true;
    if (is == verdict::better) best_ = candidate;
    return is;
  }

  [[nodiscard]] std::ptrdiff_t rung_of(const axis& along) const {
    const auto at = std::lower_bound(along.rungs.begin(), along.rungs.end(), best_.at(along.name));
    rma::ensure(at != along.rungs.end() && *at == best_.at(along.name),
                "the start is on the ladder");
    return at - along.rungs.begin();
  }

  setting best_;
  const compare& hold_;
  std::set<setting> tried_;
  bool spent_ = false;
};

}  // namespace

const char* to_string(verdict is) {
  switch (is) {
    case verdict::better:
      return "better";
    case verdict::even:
      return "even";
    case verdict::same:
      return "same";
    case verdict::worse:
      return "worse";
  }
  return "";
}

std::vector<std::int64_t> ladder(std::int64_t least, std::int64_t most, std::int64_t from) {
  std::set<std::int64_t> rungs{least, most, from};
  for (std::int64_t down = from / 2; down > 0 && down >= least; down /= 2) rungs.insert(down);
  for (std::int64_t up = std::max<std::int64_t>(from, 1); up <= most; up *= 2) {
    if (up >= least) rungs.insert(up);
    if (up > most / 2) break;  // before it overflows
  }
  return {rungs.begin(), rungs.end()};
}

found climb(const std::vector<axis>& axes, const setting& start, const compare& hold) {
  climber search(start, hold);
  for (bool gained = true; gained && !search.spent();) {
    gained = false;
    for (const axis& along : axes) gained = search.move(along) || gained;
    if (axes.size() < 2) break;  // a single parameter depends on no other
  }
  return {search.best(), !search.spent()};
}

}  // namespace lockflight::tune
