// Names that nobody uses (docs/cluster.md): a host gives back what its clients have not used for a
// while, and a home forgets what no host owns. So a domain file has room for new names, and the
// death of a host makes no alarm about names that it had not used for long.
#include <algorithm>

#include "names/cluster/core/agent.hpp"

namespace lockflight::cluster {

void agent::scan_for_unused_names(instant now, effects& out) {
  if (now < unused_.next_scan() || retires_) return;
  // While the members change there is more urgent work.
  if (!epoch_.settled) return unused_.scanned(now, false);
  if (!forgets_words_) {
    give_back_unused_names(now, out);
    forget_names_as_home(now, out);
    forgets_words_ = unused_.is_end_of_pass() && scanned_until_.empty();
    if (forgets_words_)
      std::erase_if(owners_, [&](const auto& each) {
        return each.second.is_quiet() && !owner::claim_of(each.first, words_);
      });
  }
  const bool is_done = forgets_words_ && words_.forget_unused();
  if (is_done) forgets_words_ = false;
  unused_.scanned(now, is_done);
}

void agent::give_back_unused_names(instant now, effects& out) {
  outbox to = outbox_of(out);
  for (const std::string& name : unused_.scan(words_))
    words_.if_unused(name, [&] { owner_of(name).give_back_unused(home_for(name), words_, to); });
  finish(now, out);
}

void agent::forget_names_as_home(instant now, effects& out) {
  constexpr int at_once = 500;
  outbox to = outbox_of(out);
  auto at = homes_.upper_bound(scanned_until_);
  for (int i = 0; i < at_once && at != homes_.end(); ++i) {
    scanned_until_ = at->first;
    const bool is_unused = at->second.is_unused(epoch_);
    if (is_unused) at->second.ask_hosts_to_forget(to);
    if (!is_unused || at->second.is_remembered()) {
      ++at;
      continue;
    }
    // An agent that restarts forgets this token. But then there is another epoch, whose tokens are
    // greater.
    at->second.end(to);
    forgotten_ = std::max(forgotten_, at->second.last());
    words_.erase_record(at->first);
    at = homes_.erase(at);
  }
  if (at == homes_.end()) scanned_until_.clear();
  finish(now, out);
}

}  // namespace lockflight::cluster
