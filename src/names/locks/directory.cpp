#include "names/locks/directory.hpp"

#include <sched.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "fabric/shm/pause.hpp"
#include "names/locks/block.hpp"
#include "names/locks/directory_lock.hpp"
#include "names/locks/semaphore_kind.hpp"
#include "names/locks/value.hpp"

namespace lockflight::detail {
using blocks::line_words;
using rma::word;

namespace {

std::uint32_t class_for(const domain_file& file, const domain_kind& kind,
                        const std::string& canonical, std::uint32_t name_lines) {
  domain_header& h = file.header();
  const std::uint32_t count = h.classes.load();
  for (std::uint32_t i = 0; i < count; ++i) {
    const domain_class& c = blocks::class_at(file, i);
    if (c.name_lines == name_lines && kind.about.name == c.kind && canonical == c.parameters)
      return static_cast<void>(blocks::kind_of_class(file, c)), i;
  }
  if (count >= most_classes || canonical.size() >= sizeof(domain_class::parameters))
    throw domain_error(domain_error::reason::full,
                       "domain " + file.name() + ": no room for another kind of lock");
  domain_class& c = file.of_class(count);
  std::memset(static_cast<void*>(&c), 0, sizeof c);
  kind.about.name.copy(c.kind, sizeof c.kind - 1);
  canonical.copy(c.parameters, sizeof c.parameters - 1);
  c.name_lines = name_lines;
  c.words = kind.words(parse_parameters(canonical)) + name_lines * line_words;
  h.classes.store(count + 1, std::memory_order_release);
  return count;
}

std::uint32_t take_block(domain_file& file, std::uint32_t of_class) {
  domain_class& c = blocks::class_at(file, of_class);
  if (const std::uint32_t line = c.free; line != 0) {
    // This is checked because otherwise a second name could share the block's words.
    if (blocks::class_of_block(file, line) != of_class ||
        blocks::read(file, line, blocks::serial_word) != 0)
      blocks::written_over(file);
    c.free = static_cast<std::uint32_t>(blocks::read(file, line, blocks::next_word));
    return line;
  }
  const std::uint32_t line = blocks::end_of_blocks(file);
  const std::uint32_t end = line + blocks::lines_of(c);
  if (end > last_line)
    throw domain_error(domain_error::reason::full,
                       "domain " + file.name() + ": no room for the words of another lock");
  file.make_room_for_lines(end);
  if (blocks::read(file, line, blocks::serial_word) != 0) blocks::written_over(file);
  blocks::put(file, line, class_word, of_class + 1);  // before anybody walks over the block
  file.header().next_line.store(end, std::memory_order_release);
  return line;
}

/// Initialises the words of a semaphore in a block that another semaphore may have had.
void begin_semaphore_words(const domain_file& file, std::uint32_t line, const unit_set& units) {
  const domain_class& c = blocks::class_at(file, blocks::class_of_block(file, line));
  const semaphore_words words =
      words_of_semaphore(line * line_words, blocks::words_without_name(c));
  // Relaxed: before the lock exists.
  for (const std::uint32_t each : {words.released, words.head_waits, words.agreed})
    file.word(each).store(0, std::memory_order_relaxed);
  file.word(words.units).store(static_cast<word>(units.count()), std::memory_order_relaxed);
  file.word(words.present).store(units.bits(), std::memory_order_relaxed);
  file.word(words.chosen).store(units.is_chosen() ? units.bits() : 0, std::memory_order_relaxed);
}

found_lock make(domain_file& file, std::string_view name, const domain_kind& kind,
                const std::string& canonical) {
  domain_header& h = file.header();
  if (h.count.load() >= file.options().names)
    throw domain_error(domain_error::reason::full, "domain " + file.name() + ": all " +
                                                       std::to_string(file.options().names) +
                                                       " names are taken");
  const std::uint32_t of_class = class_for(file, kind, blocks::parameters_of_class(kind, canonical),
                                           blocks::lines_of_name(name.size()));
  const std::uint32_t line = take_block(file, of_class);
  blocks::write_name(file, line, blocks::class_at(file, of_class), name);
  const thread_identity us = this_thread();
  std::array<word, 2> command{};
  const std::string text = command_of_process();
  std::memcpy(command.data(), text.data(), std::min(text.size(), sizeof command));
  blocks::put(file, line, blocks::maker_word, static_cast<word>(us.pid));
  blocks::put(file, line, blocks::maker_command_word, command[0]);
  blocks::put(file, line, blocks::maker_command_word + 1, command[1]);
  blocks::put(file, line, blocks::died_word, 0);
  blocks::put(file, line, blocks::done_until_word, 0);
  words_in_file(file, line).clear();
  if (is_semaphore(kind)) begin_semaphore_words(file, line, units_of_semaphore(canonical));
  // The block may have had the value of another name.
  if (&kind == &value_kind())
    value_words(file, blocks::describe(file, line)).write({.bytes = "", .is_unknown = true});
  // The lock's own tokens go on from where they are: a handle of the block's last lock may be about
  // to write one.
  blocks::put(file, line, blocks::tokens_before_word,
              h.tokens.load() - blocks::read(file, line, blocks::token_word));
  blocks::put(file, line, blocks::serial_word, h.serials.fetch_add(1) + 1);
  auto& bucket = blocks::bucket_of(file, name);
  blocks::put(file, line, blocks::next_word, bucket.load());
  bucket.store(line, std::memory_order_release);  // from here on the lock exists
  h.count.fetch_add(1);
  return blocks::describe(file, line);
}

}  // namespace

void check_lock_name(std::string_view name) {
  if (is_lock_name(name)) return;
  throw domain_error(
      domain_error::reason::invalid,
      "lock name " + shown(name) + " (accepted: 1 to 255 bytes, none of them NUL or newline)");
}

std::optional<found_lock> find_lock(const domain_file& file, std::string_view name) {
  constexpr int tries = 100;
  for (int i = 0;; ++i) {
    const std::uint64_t before = file.header().changes.load(std::memory_order_acquire);
    const std::uint32_t line = blocks::find_line(file, name);
    if (line != 0) {
      const found_lock found = blocks::describe(file, line);
      if (found.serial != 0) return found;
    }
    // A chain that changes under us can lead elsewhere. The participant that changes it may be
    // stopped, so we do not ask for ever; the caller that wants to make the lock looks again as the
    // one inside.
    if ((file.header().changes.load(std::memory_order_acquire) == before && before % 2 == 0) ||
        i == tries)
      return std::nullopt;
    sched_yield();
  }
}

std::vector<std::pair<std::string, std::uint32_t>> lines_of_locks(const domain_file& file) {
  std::vector<std::pair<std::string, std::uint32_t>> all;
  const std::uint32_t end = blocks::end_of_blocks(file);
  for (std::uint32_t line = first_line; line < end;) {
    const domain_class& c = blocks::class_at(file, blocks::class_of_block(file, line));
    if (blocks::read(file, line, blocks::serial_word) != 0) {
      if (all.size() > file.options().names) blocks::written_over(file);
      all.emplace_back(blocks::name_of(file, line, c), line);
    }
    line += blocks::lines_of(c);
  }
  return all;
}

std::vector<std::pair<std::string, found_lock>> all_locks(const domain_file& file) {
  std::vector<std::pair<std::string, found_lock>> all;
  for (auto& [name, line] : lines_of_locks(file))
    all.emplace_back(std::move(name), blocks::describe(file, line));
  return all;
}

void check_agreement(const domain_file& file, std::string_view name, const found_lock& found,
                     const domain_kind& kind, const std::string& canonical) {
  if (found.kind == &kind && (found.parameters == canonical || found.has_set_units)) return;
  // A caller that gave no parameters takes a lock as it is. Its maker may have been of a release
  // with other defaults.
  if (found.kind == &kind && !is_semaphore(kind) && canonical == kind.canonical({})) return;
  std::array<char, 17> command{};
  const std::array words{blocks::read(file, found.line, blocks::maker_command_word),
                         blocks::read(file, found.line, blocks::maker_command_word + 1)};
  std::memcpy(command.data(), words.data(), sizeof words);
  const std::string by = " (made by process " +
                         std::to_string(blocks::read(file, found.line, blocks::maker_word)) + ", " +
                         visible(command.data()) + ")";
  if (found.kind != &kind || is_semaphore(kind)) {
    const std::string is = described(*found.kind, found.parameters);
    throw domain_error(
        domain_error::reason::disagrees,
        "lock " + shown(name) + " is " + is + by + ", not " + described(kind, canonical) +
            " (accepted: " +
            (is_semaphore(*found.kind) ? is : "kind " + std::string(found.kind->about.name)) +
            ", or another name)");
  }
  throw domain_error(domain_error::reason::disagrees,
                     "lock " + shown(name) + ", a " + std::string(kind.about.name) + by +
                         ", has parameters '" + without_defaults(kind, found.parameters) +
                         "', not '" + without_defaults(kind, canonical) +
                         "' (accepted: those, or another name)");
}

found_lock look_up(attachment& by, std::string_view name, const domain_kind& kind,
                   const std::string& canonical, const time_limit& how_long) {
  domain_file& file = by.file();
  // Other threads may take the room that this one makes, or make room that this one finds.
  constexpr int most_tries = 100;
  constexpr std::uint64_t between_tries = 1'000'000;
  for (int tries = 0;;) {
    if (const auto found = find_lock(file, name)) {
      check_agreement(file, name, *found, kind, canonical);
      return *found;
    }
    try {
      const directory_lock hold(by, how_long);
      const std::uint32_t line = blocks::find_line(file, name);
      if (line == 0) return make(file, name, kind, canonical);
      // The one inside would have found a half forgotten name, and made it whole. Who removes the
      // domain ends all locks (end_all()).
      if (blocks::read(file, line, blocks::serial_word) != 0) continue;
      if (!file.is_current()) file.throw_removed();
      blocks::written_over(file);
    } catch (const domain_error& e) {
      if (e.why != domain_error::reason::full) throw;
      if (make_room(by, how_long)) continue;
      if (++tries == most_tries) throw;
      shm::detail::sleep_for_ns(between_tries);
    }
  }
}

std::uint64_t done_until(const domain_file& file, const found_lock& what) {
  return blocks::read(file, what.line, blocks::done_until_word);
}
void set_done_until(const domain_file& file, const found_lock& what, std::uint64_t seconds) {
  blocks::put(file, what.line, blocks::done_until_word, seconds);
}

void end_all(const domain_file& file) {
  const std::uint32_t end = blocks::end_of_blocks(file);
  for (std::uint32_t line = first_line; line < end;
       line += blocks::lines_of(blocks::class_at(file, blocks::class_of_block(file, line))))
    blocks::put(file, line, blocks::serial_word, 0);
}

const std::atomic<rma::word>& serial_of(const domain_file& file, const found_lock& what) {
  return blocks::at(file, what.line, blocks::serial_word);
}

std::uint32_t place_of_serial(const found_lock& what) {
  return what.line * line_words + blocks::serial_word;
}

lock_numbers numbers_of(const domain_file& file, const found_lock& what) {
  const word own = blocks::read(file, what.line, blocks::token_word);
  const lock::generation_word generation =
      lock::generation_word::from(blocks::read(file, what.line, blocks::present_word));
  const word repairs_without_death =
      blocks::read(file, what.line, class_word) / one_repair_without_death;
  return {own != 0 ? what.tokens_before + own : 0, own,
          generation.get(lock::generation_word::number) - repairs_without_death,
          blocks::read(file, what.line, blocks::died_word) != 0};
}

std::pair<std::string, found_lock> named_at(const domain_file& file, std::uint32_t line) {
  return {blocks::name_of(file, line, blocks::class_at(file, blocks::class_of_block(file, line))),
          blocks::describe(file, line)};
}

std::unique_ptr<any_robust> lock_at(attachment& me, std::uint32_t line) {
  return lock_at(me, blocks::describe(me.file(), line));
}

std::unique_ptr<any_robust> lock_at(attachment& me, const found_lock& what) {
  return what.kind->make(me.me(), what.line * line_words, what.words, what.set);
}

}  // namespace lockflight::detail

namespace lockflight {

bool is_lock_name(std::string_view name) noexcept {
  return !name.empty() && name.size() <= detail::blocks::longest_user_name &&
         name.find_first_of(std::string_view("\0\n", 2)) == std::string_view::npos;
}

}  // namespace lockflight
