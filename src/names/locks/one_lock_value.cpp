// The value of a handle's name (named_handle::publish).
#include <algorithm>

#include "fabric/shm/pause.hpp"
#include "names/locks/one_lock.hpp"
#include "names/locks/users.hpp"
#include "names/locks/value.hpp"

namespace lockflight::detail {
namespace {

/// A waiter looks whether the holder of a value lives, once in that time.
constexpr std::uint64_t examines_every_ns = 1'000'000'000;
/// The time in which a value moves to a larger block, and how often a waiter looks meanwhile.
constexpr std::uint64_t grows_within_ns = 100'000'000;
constexpr int most_misses = 50;
/// The pause between two questions to an agent that has not stored the value.
constexpr std::uint64_t asks_again_after_ns = 100'000'000;

/// True if the value counts: one that lasts with its hold needs the holder of that token. In a
/// cluster's domain the agents withdraw it.
bool counts(domain_file& file, std::string_view lock, const stored_value& value) {
  if (value.until == lasts::with_name || file.is_of_cluster()) return true;
  const auto found = find_lock(file, lock);
  return found && numbers_of(file, *found).token == value.token && is_held_alone(file, *found);
}

published_value seen_by_users(stored_value found) {
  if (found.token == 0) return {};
  return {std::move(found.bytes), found.token, found.until};
}

}  // namespace

bool one_lock::publish(const std::optional<std::string_view>& bytes, lasts until, limit patience) {
  need_exclusive();
  if (valid_for() == 0)
    throw domain_error(domain_error::reason::not_held,
                       "lock " + shown(name()) + ": a value for a hold that is lost");
  stored_value made{std::string(bytes.value_or("")), token(), until};
  check_value(name(), made.bytes.size());
  const time_limit how_long = limit_of_note(patience);
  if (file_->is_of_cluster()) return notes().publish(made, !bytes, how_long);
  if (!bytes && !find_value(*file_, name())) return true;
  if (!bytes) made = {};
  try {
    value_words(*file_, room_for_value(*me_, name(), made.bytes.size(), how_long)).write(made);
  } catch (const directory_is_busy&) {
    throw domain_error(
        domain_error::reason::system,
        "lock " + shown(name()) + ": another process changes the directory and does not go on");
  }
  return true;
}

std::optional<published_value> one_lock::published(limit patience) {
  const bool may_move = held_ == mode::none && (!me_ || me_->is_ours());
  if (may_move && !file_->is_current() && !move_to_present_domain(limit_of_note(patience)))
    return std::nullopt;
  std::optional<stored_value> found;
  if (file_->is_of_cluster()) {
    found = notes().value(limit_of_note(patience));
    if (!found) return std::nullopt;
  } else {
    found = value_here();
  }
  return seen_by_users(*std::move(found));
}

// The value that this host's file has.
stored_value one_lock::value_here() {
  constexpr int tries = 100;
  for (int i = 0; i < tries; ++i) {
    const auto block = find_value(*file_, name());
    if (!block) break;
    if (auto found = value_in(*block)) return *std::move(found);
  }
  return {};
}

// Nothing if the block has become another one's.
std::optional<stored_value> one_lock::value_in(const found_lock& block) {
  auto found = value_words(*file_, block).read();
  if (!found || serial_of(*file_, block).load(std::memory_order_acquire) != block.serial)
    return std::nullopt;
  if (!counts(*file_, name(), *found)) found = stored_value{};
  return found;
}

published_value one_lock::await_published(const published_value& seen, limit patience) {
  const std::uint64_t until_ns = shm::detail::ns_from_now(patience.nanoseconds());
  const time_limit how_long{until_ns, interrupt_ ? &interrupt_ : nullptr};
  for (int misses = 0;; ++misses) {
    try {
      if (!me_) use(attach_thread(file_, how_long));
      if (!me_) return seen;
      if (!me_->is_ours()) wrong_thread();
      if (auto other = await_other_value(seen, {until_ns}, misses < most_misses))
        return *std::move(other);
      if (now_ns() >= until_ns) return seen;
    } catch (const directory_is_busy&) {
      return seen;
    } catch (const domain_error& e) {
      if (e.why != domain_error::reason::removed || held_ != mode::none) throw;
      if (!move_to_present_domain(how_long)) return seen;
    }
  }
}

// Nothing if the time is over, or the words have moved: the agent of a cluster's domain forgets
// those of names that its host does not use.
std::optional<published_value> one_lock::await_other_value(const published_value& seen,
                                                           rma::deadline until, bool may_grow) {
  domain_port& port = me_->port();
  const time_limit how_long{until.at, interrupt_ ? &interrupt_ : nullptr};
  // A value that needs a larger block has none for a moment, and then one that is not filled.
  may_grow = may_grow && seen.token != 0 && !file_->is_of_cluster();
  const auto present = may_grow ? find_value(*file_, name()) : std::nullopt;
  if (may_grow && (!present || value_words(*file_, *present).is_empty())) {
    static_cast<void>(how_long.sleep(grows_within_ns / most_misses));
    return std::nullopt;
  }
  const found_lock block = room_for_value(*me_, name(), 0, how_long);
  const value_words words(*file_, block);
  const port_interrupt ends(port, interrupt_);
  const rma::plain_cell serial{0, place_of_serial(block)};
  bool has_asked = false;
  for (;;) {
    const rma::word number = words.read_number();
    auto now = value_in(block);
    if (!now) return std::nullopt;
    if (file_->is_of_cluster() && now->is_unknown) {
      // The agent may have had no room for the value.
      if (has_asked && !how_long.sleep(asks_again_after_ns)) return std::nullopt;
      has_asked = true;
      if (!notes().observe(how_long)) return std::nullopt;
      continue;
    }
    if (published_value found = seen_by_users(*std::move(now)); found != seen) return found;
    if (port.is_over(until)) return std::nullopt;
    const rma::lifeline line{serial, block.serial, port.deaths(), false};
    static_cast<void>(port.await_until_or_death(
        words.number(), rma::differs_from(number),
        rma::earlier(port, until, port.deadline_in(examines_every_ns)), line));
    if (port.was_interrupted())
      throw domain_error(domain_error::reason::interrupted,
                         "lock " + shown(name()) + ": the wait for its value was interrupted");
  }
}

}  // namespace lockflight::detail
