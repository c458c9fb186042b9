// The engine's texts for people.
#include <fmt/format.h>

#include <algorithm>

#include "lab/check/engine/engine.hpp"

namespace lockflight::check {
namespace {

[[nodiscard]] const char* name_of(posted_kind kind) {
  switch (kind) {
    case posted_kind::put:
      return "put";
    case posted_kind::get:
      return "get";
    case posted_kind::add:
      return "add";
    case posted_kind::fetch_add:
      return "fetch-add";
    case posted_kind::swap:
      return "swap";
    case posted_kind::compare_swap:
      return "compare-swap";
    case posted_kind::message:
      return "message";
    case posted_kind::fence:
      return "fence";
  }
  return "";
}

[[nodiscard]] const char* name_of(action a) {
  switch (a) {
    case action::start:
      return "starts";
    case action::load:
      return "load";
    case action::store:
      return "store";
    case action::cpu_fetch_add:
      return "cpu fetch-add";
    case action::cpu_swap:
      return "cpu swap";
    case action::cpu_compare_swap:
      return "cpu compare-swap";
    case action::fence:
      return "fence";
    case action::fence_node:
      return "fence of the node";
    case action::await:
    case action::await_until:
    case action::await_or_death:
    case action::await_until_or_death:
      return "await";
    case action::is_over:
      return "look at the clock";
    case action::poll:
      return "poll";
    case action::pause:
      return "retries";
    case action::receive:
      return "receive";
    case action::try_receive:
      return "try to receive";
    case action::flush:
      return "flush";
    case action::make_room:
      return "stores";
    case action::post:
      return "posts";
    case action::critical:
      return "leaves the critical section";
    case action::rendezvous:
      return "all have left";
    case action::idle:
      return "comes";
    case action::deaths:
      return "counts the dead";
    case action::is_dead:
      return "asks whether dead is";
    case action::acknowledge_death:
      return "acknowledges the death of";
    case action::finished:
      return "finished";
    case action::stopped:
      return "is stopped";
    case action::dead:
      return "is dead";
  }
  return "";
}

}  // namespace

void engine::name_cells(std::uint32_t first, std::uint32_t count, const std::string& name) {
  names_.push_back({first, count, name});
}

void engine::allow_cells(std::uint32_t first, std::uint32_t last) {
  allowed_first_ = first;
  allowed_last_ = last;
}

std::string engine::cell_name(cell_id cell) const {
  if (cell >= cells_.size()) return "no cell";  // number() gave 0 out for a foreign one
  const address a = cells_[cell];
  const std::string name = name_in_block(a);
  return !name.empty() ? name : fmt::format("cell {}@{}", a.index, a.home);
}

std::string engine::name_in_block(address a) const {
  for (const named_block& block : names_)
    if (a.index >= block.first && a.index < block.first + block.count)
      return fmt::format("{}[{}]@{}", block.name, a.index - block.first, a.home);
  return {};
}

// References are shown by their targets, flags in high bits in hexadecimal. A cell is named
// by its block and not by whether it was touched so far: a replay, which touches nothing but what
// its own steps touch, must show the same text.
std::string engine::value_name(word value) const {
  constexpr word small = 1 << 16;
  if (value < small) return std::to_string(value);
  const auto ref = rma::from_word<rma::plain_cell>(value);
  if (ref.home >= 0 && ref.home < fibers_) {
    const std::string cell = name_in_block({ref.home, static_cast<std::uint32_t>(ref.index)});
    if (!cell.empty()) return "&" + cell;
  }
  if (~value < small) return fmt::format("-{}", ~value + 1);
  return fmt::format("{:#x}", value);
}

std::string engine::text_of(word message) const {
  std::string text;
  for (const word w : messages_[message].body) text += (text.empty() ? " (" : ", ") + value_name(w);
  return text + ")";
}

cell_id engine::written_by(step s) const {
  const fiber_state& f = state(s.fiber);
  switch (s.what) {
    case step::kind::drain:
      return f.buffer[0].cell;
    case step::kind::effect:
      // An inbox is described by the message that arrives.
      return f.post[s.index].kind == posted_kind::message ? no_cell : f.post[s.index].cell;
    case step::kind::run:
      return f.cell;
    case step::kind::expire:
    case step::kind::lapse:
    case step::kind::stop:
    case step::kind::death:
      break;
  }
  return no_cell;
}

word engine::value_read(step s) const {
  return memory_->peek(s.fiber, state(s.fiber).cell, s.choice % line_choice);
}

// Of a step that does not read the newest message, or writes behind an older one.
std::string engine::overwritten(step s) {
  return s.choice == 0 ? "" : fmt::format(" (older by {})", s.choice % line_choice);
}

std::string engine::describe(step s) const {
  const fiber_state& f = state(s.fiber);
  if (s.what == step::kind::death) return is_dead(s.fiber) ? "its death becomes known" : "DIES";
  if (s.what == step::kind::stop) return "STOPS";
  if (s.what == step::kind::drain)
    return "store " + cell_name(f.buffer[0].cell) + " := " + value_name(f.buffer[0].value);
  const bool posts_at_once = s.what == step::kind::run && f.next == action::post;
  if (s.what == step::kind::effect || posts_at_once) {
    const posted& p = f.post[posts_at_once ? f.posts - 1u : s.index];
    if (p.kind == posted_kind::message)
      return "message" + text_of(p.a) + " arrives at rank " + std::to_string(p.target);
    if (p.kind == posted_kind::fence)
      return "rank " + std::to_string(p.target) + " is brought to a fence";
    std::string text = std::string(name_of(p.kind)) + " " + cell_name(p.cell);
    const word now = p.half          ? p.read
                     : posts_at_once ? memory_->peek(s.fiber, p.cell, s.choice % line_choice)
                                     : memory_->peek(p, s.choice);
    switch (p.kind) {
      case posted_kind::get:
        break;
      case posted_kind::put:
        return text + " := " + value_name(p.a);
      case posted_kind::add:
        return text + " += " + value_name(p.a);
      case posted_kind::fetch_add:
        text += " += " + value_name(p.a);
        break;
      case posted_kind::swap:
        text += " := " + value_name(p.a);
        break;
      case posted_kind::message:
      case posted_kind::fence:
        break;
      case posted_kind::compare_swap:
        text += " " + value_name(p.a) + " -> " + value_name(p.b);
        break;
    }
    return text + (p.half ? ", writes" : ", was " + value_name(now)) + overwritten(s);
  }
  std::string text = name_of(f.next);
  if (f.next == action::is_over)
    return s.what == step::kind::expire ? "time is over" : "time is not over";
  if (s.what == step::kind::expire)
    return text + " " + cell_name(f.cell) + " = " + value_name(value_read(s)) + overwritten(s) +
           ", time is over";
  if (s.what == step::kind::lapse)
    return text + (f.cell != no_cell ? " " + cell_name(f.cell) : "") + ", the grant's time is over";
  const std::vector<word>& inbox = queues_[memory_->inbox(s.fiber)];
  const bool receives = f.next == action::receive || f.next == action::try_receive;
  if (!inbox.empty() && (receives || !goes_on(s.fiber, s.choice)))
    return (receives                 ? "receives"
            : f.next == action::idle ? "serves"
                                     : text + ", serves") +
           text_of(inbox.front()) + " from rank " + std::to_string(messages_[inbox.front()].from);
  if (f.next == action::deaths) return text + ", " + std::to_string(deaths()) + " are";
  if (f.next == action::is_dead)
    return text + " rank " + std::to_string(f.target) + (is_dead(f.target) ? ", yes" : ", no");
  if (f.next == action::acknowledge_death) return text + " rank " + std::to_string(f.target);
  if (f.cell == no_cell) return text;
  text += " " + cell_name(f.cell);
  switch (f.next) {
    case action::load:
    case action::await:
    case action::await_until:
    case action::await_or_death:
    case action::await_until_or_death:
    case action::poll:
      return text + " = " + value_name(value_read(s)) + overwritten(s);
    case action::store:
      return text + " := " + value_name(f.a) + overwritten(s);
    case action::cpu_fetch_add:
      text += " += " + value_name(f.a);
      break;
    case action::cpu_swap:
      text += " := " + value_name(f.a);
      break;
    case action::cpu_compare_swap:
      text += " " + value_name(f.a) + " -> " + value_name(f.b);
      break;
    default:
      break;
  }
  return text + ", was " + value_name(value_read(s)) + overwritten(s);
}

violation engine::describe_deadlock() const {
  std::string who;
  bool unflushed = false;
  for (rank_t f = 0; f < fibers_; ++f) {
    const fiber_state& s = state(f);
    for (int i = 0; i < s.posts; ++i) {
      const posted& p = s.post[static_cast<std::size_t>(i)];
      if (p.took_effect || p.kind == posted_kind::message || is_dead(f)) continue;
      unflushed = true;
      who += "; rank " + std::to_string(f) + " never flushes its " + name_of(p.kind) + " to " +
             cell_name(p.cell);
    }
    if (s.next == action::finished || s.next == action::rendezvous || s.next == action::idle ||
        is_dead(f) || is_stopped(f))
      continue;
    who += "; rank " + std::to_string(f) + " waits for ever in " + name_of(s.next);
    if (s.cell != no_cell)
      who += " on " + cell_name(s.cell) + ", which is " + value_name(memory_->newest(s.cell));
  }
  const bool all_out =
      world_.all.arrived >=
      fibers_ - std::popcount(static_cast<unsigned>(world_.all.dead | world_.all.stopped));
  return {
      world_.all.stopped != 0 ? "waits for the stopped"
      : all_out               ? "not free"
      : unflushed             ? "lost wake-up"
                              : "deadlock",
      (all_out ? "all have left and the lock cannot be taken" : "no participant can go on") + who};
}

}  // namespace lockflight::check
