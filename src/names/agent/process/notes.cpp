#include "names/agent/process/notes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/number.hpp"
#include "names/agent/etcd/values.hpp"
#include "names/cluster/client/elsewhere.hpp"
#include "names/locks/semaphore_kind.hpp"
#include "names/locks/set_units.hpp"

namespace lockflight::cluster {
namespace {

using detail::line_of;
using detail::stored_value;
using fields = std::vector<std::string>;

constexpr std::string_view done_notes = "done/";
constexpr std::string_view value_notes = "value/";

std::string done_note_of(const std::string& name) { return std::string(done_notes) + name; }
std::string value_note_of(const std::string& name) { return std::string(value_notes) + name; }

/// Takes the part of a text before the next blank, or all of it.
std::string_view take_word(std::string_view& text) {
  const std::size_t blank = std::min(text.find(' '), text.size());
  const std::string_view word = text.substr(0, blank);
  text.remove_prefix(std::min(blank + 1, text.size()));
  return word;
}

// ---- until when the work of a name is done ----

struct work_note {
  std::uint64_t until = 0;
  std::uint64_t token = 0;
};

std::string entry_of(const work_note& what) { return fmt::format("{} {}", what.until, what.token); }

/// The note of these two numbers, from etcd or from a client.
work_note work_from(std::string_view until, std::string_view token) {
  const auto end = read_number<std::uint64_t>(until);
  const auto writer = read_number<std::uint64_t>(token);
  if (!end || !writer)
    throw bad_entry(
        fmt::format("a note about work is \"{} {}\"; expected two numbers", until, token));
  return {*end, *writer};
}

/// The note that etcd has. There is none before the first work.
work_note work_from(const std::optional<etcd_note>& there) {
  if (!there) return {};
  std::string_view text = there->text;
  const std::string_view until = take_word(text);
  return work_from(until, text);
}

// ---- values ----

/// "TOKEN LASTS HOST INCARNATION" and a new line before the bytes. A value that was withdrawn has
/// no bytes, and "none" for the lifetime; its token still says which holder was the last one.
constexpr std::string_view none = "none";

std::string entry_of(const value_note& what, bool is_withdrawn) {
  return fmt::format("{} {} {} {}\n{}", what.what.token,
                     is_withdrawn ? none : detail::text_of(what.what.until), text_of(what.host.id),
                     what.host.incarnation, what.what.bytes);
}

struct value_in_etcd {
  value_note note;
  bool is_withdrawn = false;
  revision changed = 0;  ///< 0: there is no such key
};

value_in_etcd value_from(const std::optional<etcd_note>& there) {
  if (!there) return {.note = {}, .is_withdrawn = true};
  std::string_view text = there->text;
  const std::size_t end = text.find('\n');
  std::string_view head = text.substr(0, end);
  const auto token = read_number<std::uint64_t>(take_word(head));
  const std::string_view until = take_word(head);
  const auto host = read_member_id(take_word(head));
  const auto incarnation = read_number<incarnation_number>(head);
  if (end == text.npos || !token || !host || !incarnation ||
      (until != none && !detail::lasts_from(until)))
    throw bad_entry(fmt::format("a value begins with {}; expected \"TOKEN LASTS HOST INCARNATION\"",
                                in_quotes(text.substr(0, std::min<std::size_t>(end, 80)))));
  value_in_etcd found{.note = {{"", *token}, {*host, *incarnation}}, .changed = there->changed};
  found.is_withdrawn = until == none;
  found.note.what.until = detail::lasts_from(until).value_or(lasts::with_name);
  if (!found.is_withdrawn) found.note.what.bytes = text.substr(end + 1);
  return found;
}

// ---- answers ----

/// A reason why a question failed.
struct failure {
  std::string why;
  bool may_pass = false;
};

std::string answer_of(fields last, const failure& how) {
  last.insert(last.begin(), std::string(detail::end_of_answer));
  constexpr std::size_t why_at = 2;
  last.insert(last.begin() + why_at, how.why);
  return (how.may_pass ? line_of({std::string(detail::again_answer)}) : "") + line_of(last);
}

[[nodiscard]] failure later_holder() { return {"a later holder has noted it", false}; }
[[nodiscard]] failure at_this_moment() { return {"another holder notes it at this moment", true}; }

bool are_set_units(const work_note& what) { return (what.until & detail::set_units_mark) != 0; }

/// The note that the question asks to write; nothing if it asks to read. An operator who sets units
/// leaves the token as it is, and a holder leaves such units as they are.
std::optional<work_note> wanted_note(const fields& question, const work_note& noted) {
  constexpr std::size_t of_operator = 3;
  constexpr std::size_t of_holder = 4;
  if (question[0] == detail::units_question && question.size() == of_operator)
    return work_from(question[2], std::to_string(noted.token));
  if (question.size() != of_holder || are_set_units(noted)) return std::nullopt;
  return work_from(question[2], question[3]);
}

/// Reads the note of the question's name, and writes it if the question says so.
asio::awaitable<std::string> answer_about_work(etcd_client& etcd, const fields& question) {
  const std::string note = done_note_of(question[1]);
  const std::optional<etcd_note> there = co_await etcd.get(note);
  const work_note noted = work_from(there);
  const std::string until = std::to_string(noted.until);
  const auto wanted = wanted_note(question, noted);
  if (!wanted) co_return answer_of({until}, {});
  if (wanted->token < noted.token) co_return answer_of({until}, later_holder());
  const auto written = co_await etcd.put_if(note, there ? there->changed : 0, entry_of(*wanted));
  co_return answer_of({until}, written ? failure{} : at_this_moment());
}

/// True if a client may have asked about such a lock, and for such a value.
bool is_good(const fields& question) {
  constexpr std::size_t bytes_at = 4;
  const bool has_value = question[0] == detail::value_question && question.size() > bytes_at;
  return is_lock_name(detail::user_name_of(question[1]).name) &&
         (!has_value || question[bytes_at].size() <= most_value_bytes);
}

}  // namespace

notes::notes(asio::io_context& io, note_sources from) : io_(io), from_(std::move(from)) {
  for (const std::string& each : from_.words.names_with_values()) kept_.try_emplace(each);
}

void notes::begin_watch() {
  watch_.emplace(
      io_, from_.watched, domain_keys(from_.domain).of_names(),
      [this](const etcd_changes& what) { changed(what); }, etcd_watch::again::from_where_it_was);
}

// ---- questions ----

bool notes::answer(const fields& question, questions::reply to) {
  const bool is_known =
      question[0] == detail::done_question || question[0] == detail::units_question ||
      question[0] == detail::value_question || question[0] == detail::observe_question;
  if (question.size() < 2 || !is_known || !is_good(question)) return false;
  answer_in_turn(question, std::move(to));
  return true;
}

/// A question that has waited for longer than its client does is dropped.
void notes::answer_in_turn(const fields& question, questions::reply to) {
  const auto begun = std::chrono::steady_clock::now();
  requests_.add([this, question, begun, to = std::move(to)]() -> asio::awaitable<void> {
    if (std::chrono::steady_clock::now() - begun > detail::note_answer_within) co_return;
    std::string said;
    try {
      said = co_await answer_to(question);
    } catch (const etcd_error& e) {
      said = answer_of({"0"}, {e.what(), e.may_pass()});
    } catch (const std::exception& e) {
      said = answer_of({"0"}, {e.what(), false});
    }
    to(std::move(said));
  });
}

asio::awaitable<std::string> notes::answer_to(fields question) {
  if (question[0] == detail::done_question)
    co_return co_await answer_about_work(from_.etcd, question);
  if (question[0] == detail::units_question) {
    std::string said = co_await answer_about_work(from_.etcd, question);
    co_await learn_units_of(question[1]);  // the asking process sees them with the answer
    co_return said;
  }
  constexpr std::size_t of_withdrawal = 3;
  constexpr std::size_t of_publication = 5;
  const std::string& name = question[1];
  if (question[0] == detail::observe_question) {
    make_room(name);
    keep(name, co_await read_value(name));
    co_return answer_of({"0"}, {});
  }
  const value_in_etcd there = value_from(co_await from_.etcd.get(value_note_of(name)));
  const auto said = [&](const failure& how) {
    const bool is_there = !there.is_withdrawn && has_host(there.note);
    return answer_of({std::to_string(is_there ? there.note.what.token : 0),
                      std::string(detail::text_of(there.note.what.until)),
                      is_there ? there.note.what.bytes : ""},
                     how);
  };
  if (question.size() != of_withdrawal && question.size() != of_publication) co_return said({});
  const auto token = read_number<std::uint64_t>(question[2]);
  const bool is_withdrawn = question.size() == of_withdrawal;
  const auto until = is_withdrawn ? lasts::with_name : detail::lasts_from(question[3]);
  if (!token || !until) throw bad_entry("a value without a token or a lifetime");
  if (!from_.words.is_held_with(name, *token) && !is_over_here(there.note, *token))
    throw bad_entry("nobody on this host holds it with that token");
  if (*token < there.note.what.token) co_return said(later_holder());
  value_note made{{is_withdrawn ? "" : question[4], *token, *until},
                  {from_.words.self(), from_.words.incarnation()}};
  const auto written =
      co_await from_.etcd.put_if(value_note_of(name), there.changed, entry_of(made, is_withdrawn));
  if (!written) co_return said(at_this_moment());
  if (is_withdrawn) made = {};
  // (!) The agent knows the value before anything fails: else nobody withdraws it.
  if (made.what.until == lasts::with_hold) {
    kept_[name] = made;
    make_room(name);
  }
  keep(name, made);
  co_return said({});
}

// ---- what the domain file has ----

/// True unless the value lasts with its hold, and its host was taken off the members since. A host
/// that is cut off does not learn which others were taken off.
bool notes::has_host(const value_note& what) const {
  if (what.what.until == lasts::with_name) return true;
  if (is_own(what))
    return what.host.incarnation == from_.words.incarnation() && from_.words.has_deadline_ahead();
  if (!from_.members || !from_.members->keys.epoch) return true;
  const member* const there = from_.members->keys.epoch->what.find(what.host.id);
  return there != nullptr && there->who == what.host;
}

asio::awaitable<std::optional<value_note>> notes::read_value(std::string name) {
  const value_in_etcd there = value_from(co_await from_.etcd.get(value_note_of(name)));
  if (there.is_withdrawn) co_return std::nullopt;
  co_return there.note;
}

/// The watch may have missed changes before it began.
void notes::changed(const etcd_changes& what) {
  const std::string before = domain_keys(from_.domain).end();
  for (const std::string& key : what.keys)
    if (key.starts_with(before)) read_again(key.substr(before.size()));
  if (!what.are_unknown) return;
  std::vector<std::string> kept;  // the first part of a coroutine may change `kept_`
  for (const auto& [name, value] : kept_) kept.push_back(name);
  for (const std::string& name : kept) read_again(value_note_of(name));
  for (const std::string& name : detail::semaphores_in(from_.file)) read_again(done_note_of(name));
}

/// Reads the note, if the domain file is to have what it says, unless that is about to be done.
void notes::read_again(const std::string& note) {
  const bool is_value = note.starts_with(value_notes);
  if (is_value && !kept_.contains(note.substr(value_notes.size()))) return;
  if (!is_value && !detail::is_semaphore_of(from_.file, note.substr(done_notes.size()))) return;
  if (!read_again_.insert(note).second) return;
  requests_.add([this, note]() { return read_and_keep(note); });
}

asio::awaitable<void> notes::read_and_keep(std::string note) {
  read_again_.erase(note);
  try {
    if (note.starts_with(value_notes)) {
      const std::string name = note.substr(value_notes.size());
      keep(name, co_await read_value(name));
    } else {
      co_await learn_units_of(note.substr(done_notes.size()));
    }
  } catch (const std::exception& e) {
    // (!) A watch that goes on does not name the note again.
    unread_.insert(note);
    from_.log.warn("note", fmt::format("the note {}: {}", in_quotes(note), e.what()));
  }
}

asio::awaitable<void> notes::learn_units_of(std::string name) {
  const work_note noted = work_from(co_await from_.etcd.get(done_note_of(name)));
  detail::learn_units(from_.file, name, noted.until);
}

/// From now on the domain file has the value, if it has room for values of that name. Values that
/// nobody here observes, and that need not be withdrawn, are forgotten.
void notes::keep(const std::string& name, const std::optional<value_note>& there) {
  const value_note now = there.value_or(value_note{});
  const bool is_to_be_withdrawn =
      now.what.token != 0 && now.what.until == lasts::with_hold && is_own(now);
  if (!is_to_be_withdrawn && !from_.words.has_value(name)) {
    kept_.erase(name);
    return;
  }
  kept_[name] = now;
  store(name, has_host(now) ? now.what : stored_value{});
}

void notes::make_room(const std::string& name) {
  try {
    from_.words.make_room_for_value(name);
  } catch (const domain_error& e) {
    from_.log.warn("value", e.what());
  }
}

void notes::store(const std::string& name, const stored_value& what) {
  try {
    from_.words.store_value(name, what);
  } catch (const domain_error& e) {
    from_.log.warn("value", e.what());
  }
}

/// True if the value is this host's own, of that token: the agent withdraws what its holder has
/// left.
bool notes::is_over_here(const value_note& value, std::uint64_t token) const {
  return is_own(value) && value.what.token == token && value.what.until == lasts::with_hold;
}

/// True if the holder that has published the value is gone, so that this agent withdraws it. While
/// this host is cut off, nobody knows: it may go on with the hold.
bool notes::is_over(const std::string& name, const value_note& value) const {
  if (value.what.token == 0 || value.what.until != lasts::with_hold || !is_own(value)) return false;
  if (!from_.words.has_deadline_ahead()) return false;
  return !has_host(value) || !from_.words.is_held_with(name, value.what.token);
}

void notes::each_second() {
  for (const std::string& note : std::exchange(unread_, {})) read_again(note);
  std::vector<std::string> over;
  for (const auto& [name, value] : kept_) {
    if (value.what.until == lasts::with_hold)
      store(name, has_host(value) ? value.what : stored_value{});
    if (is_over(name, value)) over.push_back(name);
  }
  for (const std::string& name : over)
    if (withdrawn_.insert(name).second)
      requests_.add([this, name]() { return withdraw_if_over(name); });
}

asio::awaitable<void> notes::withdraw_if_over(std::string name) {
  withdrawn_.erase(name);
  const auto value = kept_.find(name);
  if (value == kept_.end() || !is_over(name, value->second)) co_return;
  const fields withdrawal{std::string(detail::value_question), name,
                          std::to_string(value->second.what.token)};
  try {
    static_cast<void>(co_await answer_to(withdrawal));
  } catch (const std::exception&) {  // the next second tries again
  }
}

}  // namespace lockflight::cluster
