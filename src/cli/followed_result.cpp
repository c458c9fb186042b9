#include "cli/followed_result.hpp"

#include <utility>

namespace lockflight::cli {

followed_result::answer followed_result::look(named_handle& of,
                                              std::optional<wall_seconds> done_until,
                                              limit patience) {
  const auto published = named_control(of).published(patience);
  if (!published) return answer::none;
  auto last = result_in(*published);
  const std::uint64_t token = last ? last->token : 0;
  if (!token_at_first_) token_at_first_ = token;
  const bool is_news = last && token != *token_at_first_;
  const bool is_of_period = done_until && last && last->until == *done_until;
  if (!is_news && !is_of_period) return answer::nothing;
  result_ = std::move(last);
  return answer::found;
}

}  // namespace lockflight::cli
