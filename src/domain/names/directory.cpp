#include "domain/names/directory.hpp"

#include <sched.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <ctime>

#include "base/fnv.hpp"
#include "domain/cluster/words.hpp"
#include "domain/names/semaphore_kind.hpp"
#include "fabric/shm/pause.hpp"
#include "lockflight/lock/robust/generation.hpp"
#include "lockflight/lock/robust/record.hpp"

namespace lockflight::detail {
namespace {

using rma::line_words;
using rma::word;

// ---- a block: the words that robust locks leave to us, and the name ----

constexpr lock::generation_cells block{.line = {0, 0}};
constexpr std::uint32_t present_word = block.generation().index;
constexpr std::uint32_t died_word = block.died().index;
constexpr std::uint32_t serial_word = block.beside().index;
constexpr std::uint32_t class_word = serial_word + 1;  // 1 + the class, as long as there is a block
constexpr std::uint32_t next_word = serial_word + 2;   // the line of the next of the chain, or free
constexpr std::uint32_t tokens_before_word = serial_word + 3;
constexpr std::uint32_t token_word = block.token().index;
constexpr std::uint32_t maker_word = block.beside_b().index;  // its process
constexpr std::uint32_t maker_command_word = maker_word + 1;  // two words
constexpr std::uint32_t done_until_word = maker_word + 5;     // after those of words_in_file
static_assert(done_until_word == words_in_file::state_at + 1 && done_until_word < 2 * line_words);

constexpr std::size_t longest_user_name = 255;
constexpr std::size_t longest_name = longest_user_name + longest_unit_suffix;
constexpr std::uint32_t least_lines = 3;  // of a block: a robust lock's two, and one of its name

std::uint32_t hash_of(std::string_view name) {
  const std::uint64_t sum = fnv1a(name);
  return static_cast<std::uint32_t>(sum ^ sum >> 32);
}

/// The name follows a word that has its length and its hash.
constexpr std::uint32_t lines_of_name(std::size_t length) {
  return static_cast<std::uint32_t>((length + 7) / 8 + line_words) / line_words;
}
word name_head(std::string_view name) { return word{hash_of(name)} << 32 | name.size(); }

[[noreturn]] void written_over(const domain_file& file) {
  file.throw_damaged("has been written over");
}

std::atomic<word>& at(const domain_file& file, std::uint32_t line, std::uint32_t i) {
  return file.word(line * line_words + i);
}
word read(const domain_file& file, std::uint32_t line, std::uint32_t i) {
  return at(file, line, i).load(std::memory_order_acquire);
}
void put(const domain_file& file, std::uint32_t line, std::uint32_t i, word value) {
  // Release: a thread that finds it finds what it was made from.
  at(file, line, i).store(value, std::memory_order_release);
}

domain_class& class_at(const domain_file& file, std::uint32_t i) {
  if (i >= file.header().classes.load(std::memory_order_acquire) || i >= most_classes)
    written_over(file);
  domain_class& c = file.of_class(i);
  if (std::memchr(c.kind, 0, sizeof c.kind) == nullptr ||
      std::memchr(c.parameters, 0, sizeof c.parameters) == nullptr || c.words < 2 * line_words ||
      c.words % line_words != 0 || c.words > lines_of_piece * line_words || c.name_lines < 1 ||
      c.name_lines > lines_of_name(longest_name))
    written_over(file);
  return c;
}

std::uint32_t lines_of(const domain_class& c) { return c.words / line_words; }

std::uint32_t end_of_blocks(const domain_file& file) {
  const std::uint32_t end = file.header().next_line.load(std::memory_order_acquire);
  if (end < first_line || end > last_line) written_over(file);
  return end;
}

/// The class of a block.
std::uint32_t class_of_block(const domain_file& file, std::uint32_t line) {
  if (line < first_line || line >= end_of_blocks(file)) written_over(file);
  const auto found = static_cast<std::uint32_t>(read(file, line, class_word)) - 1;
  if (std::uint64_t{line} + lines_of(class_at(file, found)) > end_of_blocks(file))
    written_over(file);
  return found;
}

/// The kind of a class. A lock's words lie as its parameters say, so these must be accepted here
/// too.
const domain_kind& kind_of_class(const domain_file& file, const domain_class& c) {
  try {
    const domain_kind* const kind = find_kind(c.kind);
    const auto set = parse_parameters(c.parameters);
    if (kind != nullptr && kind->canonical(set) == c.parameters &&
        kind->words(set) + c.name_lines * line_words == c.words)
      return *kind;
  } catch (const domain_error&) {  // not accepted
  }
  written_over(file);
}

std::uint32_t words_without_name(const domain_class& c) {
  return c.words - c.name_lines * line_words;
}

std::string name_of(const domain_file& file, std::uint32_t line, const domain_class& c) {
  const std::uint32_t first = words_without_name(c);
  const std::size_t length = read(file, line, first) & 0xffffffff;
  if (length == 0 || length > longest_name || lines_of_name(length) > c.name_lines)
    written_over(file);
  std::string name(length, '\0');
  for (std::size_t i = 0; i < length; i += sizeof(word)) {
    const word part = read(file, line, first + 1 + static_cast<std::uint32_t>(i / sizeof(word)));
    std::memcpy(name.data() + i, &part, std::min(sizeof part, length - i));
  }
  return name;
}

void write_name(const domain_file& file, std::uint32_t line, const domain_class& c,
                std::string_view name) {
  const std::uint32_t first = words_without_name(c);
  put(file, line, first, name_head(name));
  for (std::size_t i = 0; i < name.size(); i += sizeof(word)) {
    word part = 0;
    std::memcpy(&part, name.data() + i, std::min(sizeof part, name.size() - i));
    put(file, line, first + 1 + static_cast<std::uint32_t>(i / sizeof(word)), part);
  }
}

std::atomic<std::uint32_t>& bucket_of(const domain_file& file, std::string_view name) {
  return file.bucket(hash_of(name) % buckets);
}

/// Calls `visit(line, class)` for each block of a chain, until it returns true.
template <class Visit>
void walk(const domain_file& file, std::uint32_t first, Visit visit) {
  // A reader may come from a chain into a list of free blocks, so it may see all that there are.
  const std::uint32_t most_steps = (end_of_blocks(file) - first_line) / least_lines;
  std::uint32_t steps = 0;
  for (std::uint32_t line = first; line != 0;
       line = static_cast<std::uint32_t>(read(file, line, next_word))) {
    if (++steps > most_steps) written_over(file);
    if (visit(line, class_at(file, class_of_block(file, line)))) return;
  }
}

/// The line of the block of that name, or 0.
std::uint32_t find_line(const domain_file& file, std::string_view name) {
  const word head = name_head(name);
  std::uint32_t found = 0;
  walk(file, bucket_of(file, name).load(std::memory_order_acquire),
       [&](std::uint32_t line, const domain_class& c) {
         if (read(file, line, words_without_name(c)) != head || name_of(file, line, c) != name)
           return false;
         found = line;
         return true;
       });
  return found;
}

/// What all semaphores have as the parameters of their class, whatever their N, so that they are
/// one class. N is among the words of each.
std::string parameters_of_class(const domain_kind& kind, const std::string& canonical) {
  return is_semaphore(kind) ? parameters_of_semaphore(0) : canonical;
}

std::string parameters_of_block(const domain_file& file, std::uint32_t line, const domain_class& c,
                                const domain_kind& kind) {
  if (!is_semaphore(kind)) return c.parameters;
  const semaphore_words words = words_of_semaphore(line * line_words, words_without_name(c));
  const word units = file.word(words.units).load(std::memory_order_acquire);
  if (units < 1 || units > most_units) written_over(file);
  return parameters_of_semaphore(static_cast<int>(units));
}

found_lock describe(const domain_file& file, std::uint32_t line) {
  const domain_class& c = class_at(file, class_of_block(file, line));
  const domain_kind& kind = kind_of_class(file, c);
  return {.line = line,
          .serial = read(file, line, serial_word),
          .kind = &kind,
          .parameters = parameters_of_block(file, line, c, kind),
          .words = words_without_name(c),
          .tokens_before = read(file, line, tokens_before_word)};
}

// ---- changes ----

// What is reachable from the buckets is in use, all else is free.
void rebuild(const domain_file& file) {
  std::vector<std::uint32_t> used;
  for (std::uint32_t b = 0; b < buckets; ++b)
    walk(file, file.bucket(b).load(), [&](std::uint32_t line, const domain_class&) {
      used.push_back(line);
      if (used.size() > file.options().names) written_over(file);
      return false;
    });
  std::sort(used.begin(), used.end());
  file.header().count.store(static_cast<std::uint32_t>(used.size()));
  for (std::uint32_t i = 0; i < file.header().classes.load(); ++i) class_at(file, i).free = 0;
  const std::uint32_t end = end_of_blocks(file);
  for (std::uint32_t line = first_line; line < end;) {
    domain_class& c = class_at(file, class_of_block(file, line));
    const bool is_used = std::binary_search(used.begin(), used.end(), line);
    // The thread that was to forget it may have done half of that.
    if (is_used && read(file, line, serial_word) == 0)
      put(file, line, serial_word, file.header().serials.fetch_add(1) + 1);
    if (!is_used) {
      put(file, line, serial_word, 0);
      put(file, line, next_word, std::exchange(c.free, line));
    }
    line += lines_of(c);
  }
}

/// The right to change the directory, which one participant has at a time.
class directory_lock {
 public:
  directory_lock(attachment& by, const time_limit& how_long) : file_(by.file()) {
    file_.check();
    domain_header& h = file_.header();
    const word us = word{file_.slot(by.slot()).life_now().incarnation} << 32 |
                    (static_cast<word>(by.slot()) + 1);
    constexpr std::uint64_t ms = 1'000'000;
    // Also for an attempt, since the right is held for microseconds.
    const time_limit until{
        std::min(std::max(how_long.until_ns, now_ns() + 100 * ms), now_ns() + 10'000 * ms),
        how_long.is_interrupted};
    for (std::uint64_t pause = ms / 20;; pause = std::min(2 * pause, 2 * ms)) {
      word now = 0;
      bool after_a_death = false;
      signals_.emplace();
      if (!h.directory.compare_exchange_strong(now, us)) {
        const word holder = now;
        after_a_death = is_gone(holder) && h.directory.compare_exchange_strong(now, us);
        if (!after_a_death) {
          signals_.reset();
          if (!until.sleep(pause)) {
            if (how_long.until_ns != UINT64_MAX) throw directory_is_busy();
            refuse(holder);
          }
          continue;
        }
      }
      enter(after_a_death || h.changes.load() % 2 != 0);
      return;
    }
  }
  ~directory_lock() {
    domain_header& h = file_.header();
    h.changes.fetch_add(1, std::memory_order_release);
    h.directory.store(0, std::memory_order_release);
  }
  directory_lock(const directory_lock&) = delete;
  directory_lock& operator=(const directory_lock&) = delete;

 private:
  void enter(bool after_a_death) {
    domain_header& h = file_.header();
    try {
      if (h.changes.load() % 2 == 0) h.changes.fetch_add(1, std::memory_order_acq_rel);
      if (after_a_death) rebuild(file_);
    } catch (...) {
      h.directory.store(0, std::memory_order_release);  // all others find it damaged too
      throw;
    }
  }
  [[nodiscard]] int slot_of(word holder) const {
    const auto slot = static_cast<std::uint32_t>(holder) - 1;
    if (slot > static_cast<std::uint32_t>(file_.steward())) written_over(file_);
    return static_cast<int>(slot);
  }
  [[nodiscard]] bool is_gone(word holder) const {
    const int slot = slot_of(holder);
    return file_.slot(slot).life_now().incarnation != static_cast<std::uint32_t>(holder >> 32) ||
           file_.slot(slot).state() == slot_state::free || examine(file_, slot, thoroughness::full);
  }
  [[noreturn]] void refuse(word holder) const {
    const int slot = slot_of(holder);
    throw domain_error(domain_error::reason::system,
                       "domain " + file_.name() + ": " + process_text(file_, slot) +
                           " is changing its directory and does not go on (" +
                           (is_stopped(file_.slot(slot)) ? "it is stopped" : "it is slow") + ")");
  }

  domain_file& file_;
  std::optional<signals_held> signals_;
};

std::uint32_t class_for(const domain_file& file, const domain_kind& kind,
                        const std::string& canonical, std::uint32_t name_lines) {
  domain_header& h = file.header();
  const std::uint32_t count = h.classes.load();
  for (std::uint32_t i = 0; i < count; ++i) {
    const domain_class& c = class_at(file, i);
    if (c.name_lines == name_lines && kind.about.name == c.kind && canonical == c.parameters)
      return kind_of_class(file, c), i;
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
  domain_class& c = class_at(file, of_class);
  if (const std::uint32_t line = c.free; line != 0) {
    // Else a second name would share its words.
    if (class_of_block(file, line) != of_class || read(file, line, serial_word) != 0)
      written_over(file);
    c.free = static_cast<std::uint32_t>(read(file, line, next_word));
    return line;
  }
  const std::uint32_t line = end_of_blocks(file);
  const std::uint32_t end = line + lines_of(c);
  if (end > last_line)
    throw domain_error(domain_error::reason::full,
                       "domain " + file.name() + ": no room for the words of another lock");
  file.make_room_for_lines(end);
  if (read(file, line, serial_word) != 0) written_over(file);
  put(file, line, class_word, of_class + 1);  // before anybody walks over the block
  file.header().next_line.store(end, std::memory_order_release);
  return line;
}

/// Of a block that another semaphore may have had.
void begin_semaphore_words(const domain_file& file, std::uint32_t line, int units) {
  const domain_class& c = class_at(file, class_of_block(file, line));
  const semaphore_words words = words_of_semaphore(line * line_words, words_without_name(c));
  for (const std::uint32_t each : {words.released, words.head_waits, words.agreed})
    file.word(each).store(0, std::memory_order_relaxed);  // before the lock exists
  file.word(words.units).store(static_cast<word>(units), std::memory_order_relaxed);
}

found_lock make(domain_file& file, std::string_view name, const domain_kind& kind,
                const std::string& canonical) {
  domain_header& h = file.header();
  if (h.count.load() >= file.options().names)
    throw domain_error(domain_error::reason::full, "domain " + file.name() + ": all " +
                                                       std::to_string(file.options().names) +
                                                       " names are taken");
  const std::uint32_t of_class =
      class_for(file, kind, parameters_of_class(kind, canonical), lines_of_name(name.size()));
  const std::uint32_t line = take_block(file, of_class);
  write_name(file, line, class_at(file, of_class), name);
  const thread_identity us = this_thread();
  std::array<word, 2> command{};
  const std::string text = command_of_process();
  std::memcpy(command.data(), text.data(), std::min(text.size(), sizeof command));
  put(file, line, maker_word, static_cast<word>(us.pid));
  put(file, line, maker_command_word, command[0]);
  put(file, line, maker_command_word + 1, command[1]);
  put(file, line, died_word, 0);
  put(file, line, done_until_word, 0);
  words_in_file(file, line).clear();
  if (is_semaphore(kind)) begin_semaphore_words(file, line, units_of_semaphore(canonical));
  // The lock's own tokens go on from where they are: a handle of the block's last lock may be about
  // to write one.
  put(file, line, tokens_before_word, h.tokens.load() - read(file, line, token_word));
  put(file, line, serial_word, h.serials.fetch_add(1) + 1);
  auto& bucket = bucket_of(file, name);
  put(file, line, next_word, bucket.load());
  bucket.store(line, std::memory_order_release);  // from here on the lock exists
  h.count.fetch_add(1);
  return describe(file, line);
}

/// Frees the block of a name that nobody uses. False if the name has another lock by now.
bool take_out(const domain_file& file, std::string_view name, const found_lock& what) {
  domain_header& h = file.header();
  std::uint32_t before = 0;
  std::uint32_t line = 0;
  walk(file, bucket_of(file, name).load(), [&](std::uint32_t at, const domain_class&) {
    if (at == what.line) return line = at, true;
    return before = at, false;
  });
  if (line == 0 || read(file, line, serial_word) != what.serial) return false;
  h.tokens.store(std::max(h.tokens.load(), what.tokens_before + read(file, line, token_word)));
  // First: a handle that acquires after us finds that this is not its lock any more.
  put(file, line, serial_word, 0);
  const word next = read(file, line, next_word);
  if (before == 0)
    bucket_of(file, name).store(static_cast<std::uint32_t>(next), std::memory_order_release);
  else
    put(file, before, next_word, next);
  h.count.fetch_sub(1);
  domain_class& c = class_at(file, class_of_block(file, line));
  // A reader that is at this block goes on to free ones, and finds that something has changed.
  put(file, line, next_word, std::exchange(c.free, line));
  return true;
}

/// Forgets the units of a semaphore whose queue the caller holds, so that nobody takes a unit
/// meanwhile. Null if that was done, else why not.
const char* forget_units(attachment& by, std::string_view name, const found_lock& what,
                         bool on_request, const time_limit& how_long) {
  for (int unit = 0; unit < units_of_semaphore(what.parameters); ++unit) {
    const std::string name_of_it = name_of_unit(name, unit);
    const auto found = find_lock(by.file(), name_of_it);
    if (!found) continue;
    if (const char* const why_not = forget(by, name_of_it, *found, on_request, how_long))
      return why_not;
  }
  return nullptr;
}

/// Whether the name's work counts as done at present, by the wall clock, which its users go by.
bool is_done_now(const domain_file& file, std::uint32_t line) {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return read(file, line, done_until_word) > static_cast<word>(now.tv_sec);
}

/// Frees the blocks of some names that nobody uses, the oldest first: only of kinds that have an
/// attempt, since the others can be waited for alone. Whether there were any.
bool make_room(attachment& by, const time_limit& how_long) {
  constexpr std::size_t at_once = 1024;
  std::size_t freed = 0;
  std::vector<std::uint32_t> in_use;
  const domain_file& file = by.file();
  for_each_slot(file, [&](int i) {
    for (std::uint32_t k = 0; k < records; ++k)
      if (const auto of = lock::record::from(file.slot(i).words[first_record + k].load());
          of.get(lock::record::phase) != lock::record::idle)
        in_use.push_back(static_cast<std::uint32_t>(of.get(lock::record::lock)));
  });
  std::sort(in_use.begin(), in_use.end());
  auto all = all_locks(file);
  std::erase_if(all, [&](const auto& one) {
    return std::binary_search(in_use.begin(), in_use.end(), one.second.line) ||
           !one.second.kind->can.tries || is_done_now(file, one.second.line);
  });
  std::sort(all.begin(), all.end(),
            [](const auto& a, const auto& b) { return a.second.serial < b.second.serial; });
  for (const auto& [name, found] : all)
    if (forget(by, name, found, false, how_long) == nullptr && ++freed == at_once) break;
  return freed > 0;
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
    const std::uint32_t line = find_line(file, name);
    if (line != 0) {
      const found_lock found = describe(file, line);
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
  const std::uint32_t end = end_of_blocks(file);
  for (std::uint32_t line = first_line; line < end;) {
    const domain_class& c = class_at(file, class_of_block(file, line));
    if (read(file, line, serial_word) != 0) {
      if (all.size() > file.options().names) written_over(file);
      all.emplace_back(name_of(file, line, c), line);
    }
    line += lines_of(c);
  }
  return all;
}

std::vector<std::pair<std::string, found_lock>> all_locks(const domain_file& file) {
  std::vector<std::pair<std::string, found_lock>> all;
  for (auto& [name, line] : lines_of_locks(file))
    all.emplace_back(std::move(name), describe(file, line));
  return all;
}

void check_agreement(const domain_file& file, std::string_view name, const found_lock& found,
                     const domain_kind& kind, const std::string& canonical) {
  if (found.kind == &kind && found.parameters == canonical) return;
  std::array<char, 17> command{};
  const std::array words{read(file, found.line, maker_command_word),
                         read(file, found.line, maker_command_word + 1)};
  std::memcpy(command.data(), words.data(), sizeof words);
  const std::string by = " (made by process " + std::to_string(read(file, found.line, maker_word)) +
                         ", " + visible(command.data()) + ")";
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
  // Others may take the room that we make, or make room that we then find.
  constexpr int most_tries = 100;
  constexpr std::uint64_t between_tries = 1'000'000;
  for (int tries = 0;;) {
    if (const auto found = find_lock(file, name)) {
      check_agreement(file, name, *found, kind, canonical);
      return *found;
    }
    try {
      const directory_lock hold(by, how_long);
      const std::uint32_t line = find_line(file, name);
      if (line == 0) return make(file, name, kind, canonical);
      // The one inside would have found a half forgotten name, and made it whole.
      if (read(file, line, serial_word) == 0) written_over(file);
    } catch (const domain_error& e) {
      if (e.why != domain_error::reason::full) throw;
      if (make_room(by, how_long)) continue;
      if (++tries == most_tries) throw;
      shm::detail::sleep_for_ns(between_tries);
    }
  }
}

const char* forget(attachment& by, std::string_view name, const found_lock& what, bool on_request,
                   const time_limit& how_long) {
  // The agent writes to the words of names that nobody on this host uses.
  if (by.file().is_of_cluster() && !by.file().is_agent())
    return "the agent alone forgets names of a cluster's domain";
  const auto lock = lock_at(by, what);
  // A lock without attempts is waited for, mostly not for long, since nobody uses it.
  const std::function<bool()> is_late = [&] { return now_ns() >= how_long.until_ns; };
  by.port().set_interrupt(&is_late);
  const bool has =
      lock->acquire(mode::exclusive, what.kind->can.tries ? limit::at_once() : limit::for_ever());
  by.port().set_interrupt(nullptr);
  if (!has) return "somebody holds or awaits it";
  const char* why_not = nullptr;
  try {
    // In a cluster the name's own words say whether a holder died. And a waiter of a semaphore may
    // have died at the head of the queue, which guards nothing.
    const bool marks_deaths = !by.file().is_of_cluster() && !is_semaphore(*what.kind);
    if (lock->owner_died() && !on_request && marks_deaths) {
      why_not = "a holder died in it";
    } else if (is_done_now(by.file(), what.line) && !on_request) {
      why_not = "its work counts as done, and would be done again";
    } else if (by.file().is_of_cluster() && !words_in_file(by.file(), what.line).are_unused()) {
      why_not = "this host owns it among the hosts of the cluster";
    } else {
      if (is_semaphore(*what.kind)) why_not = forget_units(by, name, what, on_request, how_long);
      if (why_not == nullptr) {
        const directory_lock hold(by, how_long);
        if (!take_out(by.file(), name, what)) why_not = "the name has another lock by now";
      }
    }
  } catch (...) {
    lock->release(mode::exclusive);
    throw;
  }
  lock->release(mode::exclusive);
  static_cast<void>(by.port().taken_events());
  return why_not;
}

std::uint64_t done_until(const domain_file& file, const found_lock& what) {
  return read(file, what.line, done_until_word);
}
void set_done_until(const domain_file& file, const found_lock& what, std::uint64_t seconds) {
  put(file, what.line, done_until_word, seconds);
}

void end_all(const domain_file& file) {
  const std::uint32_t end = end_of_blocks(file);
  for (std::uint32_t line = first_line; line < end;
       line += lines_of(class_at(file, class_of_block(file, line))))
    put(file, line, serial_word, 0);
}

const std::atomic<rma::word>& serial_of(const domain_file& file, const found_lock& what) {
  return at(file, what.line, serial_word);
}

std::uint32_t place_of_serial(const found_lock& what) {
  return what.line * line_words + serial_word;
}

lock_numbers numbers_of(const domain_file& file, const found_lock& what) {
  const word own = read(file, what.line, token_word);
  const lock::generation_word generation =
      lock::generation_word::from(read(file, what.line, present_word));
  return {own != 0 ? what.tokens_before + own : 0, own,
          generation.get(lock::generation_word::number), read(file, what.line, died_word) != 0};
}

std::pair<std::string, found_lock> named_at(const domain_file& file, std::uint32_t line) {
  return {name_of(file, line, class_at(file, class_of_block(file, line))), describe(file, line)};
}

std::unique_ptr<any_robust> lock_at(attachment& me, std::uint32_t line) {
  return lock_at(me, describe(me.file(), line));
}

std::unique_ptr<any_robust> lock_at(attachment& me, const found_lock& what) {
  return what.kind->make(me.me(), what.line * line_words, what.words,
                         parse_parameters(what.parameters));
}

}  // namespace lockflight::detail

namespace lockflight {

bool is_lock_name(std::string_view name) noexcept {
  return !name.empty() && name.size() <= detail::longest_user_name &&
         name.find_first_of(std::string_view("\0\n", 2)) == std::string_view::npos;
}

}  // namespace lockflight
