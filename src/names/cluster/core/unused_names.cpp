#include "names/cluster/core/unused_names.hpp"

#include <utility>

namespace lockflight::cluster {

std::vector<std::string> unused_names::scan(const host_words& words) {
  constexpr std::size_t at_once = 500;
  if (left_.empty()) {
    before_ = std::exchange(seen_, {});
    left_ = words.names();
  }
  std::vector<std::string> unused;
  for (std::size_t i = 0; i < at_once && !left_.empty(); ++i) {
    const std::string name = std::move(left_.back());
    left_.pop_back();
    const words_seen now{words.ownership_of(name), words.state_of(name)};
    if (now.owned.owned == mode::none) continue;
    const auto before = before_.find(name);
    if (before != before_.end() && before->second == now) unused.push_back(name);
    seen_.emplace(name, now);
  }
  return unused;
}

void unused_names::scanned(instant now, bool is_done) {
  next_scan_ = now + (is_done ? keep_ : scan_every_);
}

}  // namespace lockflight::cluster
