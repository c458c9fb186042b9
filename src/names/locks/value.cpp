#include "names/locks/value.hpp"

#include <array>
#include <cstring>

#include "base/number.hpp"
#include "names/locks/block.hpp"

namespace lockflight::detail {
namespace {

using rma::word;

constexpr std::string_view bytes_parameter = "bytes";
constexpr std::string_view value_suffix = "\nv";

// A place begins with the token, and with the length and the lifetime.
constexpr std::uint32_t words_before_bytes = 2;
constexpr word is_unknown = word{1} << 61;
constexpr word has_value = word{1} << 62;
constexpr word lasts_with_hold = word{1} << 63;
constexpr word flags = is_unknown | has_value | lasts_with_hold;

/// The bytes that the classes of blocks have room for. Few sizes are few classes.
constexpr std::array<std::size_t, 3> sizes{1'008, 16'368, 65'520};
static_assert(sizes.back() >= most_value_bytes);

/// A lock whose words are few. The directory takes it to remove a value that nobody uses.
const domain_kind& lock_kind() {
  static const domain_kind& kind = kind_named("spin");
  return kind;
}

constexpr std::uint32_t words_of_place(std::size_t bytes) {
  return words_before_bytes + static_cast<std::uint32_t>(bytes / sizeof(word));
}
constexpr std::uint32_t words_of_value(std::size_t bytes) {
  return rma::line_words + 2 * words_of_place(bytes);
}
static_assert(words_of_value(sizes[0]) % rma::line_words == 0 &&
                  words_of_value(sizes[1]) % rma::line_words == 0 &&
                  words_of_value(sizes[2]) % rma::line_words == 0,
              "blocks are made of lines");

std::size_t bytes_of(const lock::parameter_values& set) {
  if (set.empty()) return sizes.front();
  for (const std::size_t each : sizes)
    if (set.size() == 1 && set.begin()->first == bytes_parameter &&
        set.begin()->second == static_cast<std::int64_t>(each))
      return each;
  throw domain_error(domain_error::reason::invalid, "parameters of a value (accepted: its size)");
}

std::string text_of_size(std::size_t bytes) {
  return std::string(bytes_parameter) + "=" + std::to_string(bytes);
}

domain_kind make_value_kind() {
  domain_kind made = lock_kind();
  made.about.name = "value";
  made.about.source = "lockflight";
  made.canonical = [](const lock::parameter_values& set) { return text_of_size(bytes_of(set)); };
  made.words = [](const lock::parameter_values& set) {
    return lock_kind().words({}) + words_of_value(bytes_of(set));
  };
  made.make = [](domain_participant& me, std::uint32_t first, std::uint32_t words,
                 const lock::parameter_values& set) {
    return lock_kind().make(me, first, words - words_of_value(bytes_of(set)), {});
  };
  return made;
}

}  // namespace

const domain_kind& value_kind() {
  static const auto* const made = new domain_kind(make_value_kind());
  return *made;
}

std::string name_of_value(std::string_view lock) {
  return std::string(lock) + std::string(value_suffix);
}

bool is_name_of_value(std::string_view name) { return name.ends_with(value_suffix); }

std::string parameters_of_value(std::size_t bytes) {
  for (const std::size_t each : sizes)
    if (bytes <= each) return text_of_size(each);
  return text_of_size(sizes.back());
}

void check_value(std::string_view lock, std::size_t bytes) {
  if (bytes <= most_value_bytes) return;
  throw domain_error(domain_error::reason::invalid,
                     "lock " + shown(lock) + ": a value of " + std::to_string(bytes) +
                         " bytes (accepted: at most " + std::to_string(most_value_bytes) + ")");
}

// ---- the words ----

value_words::value_words(const domain_file& file, const found_lock& block)
    : file_(file), line_(block.line) {
  const std::size_t bytes = bytes_of(block.set);
  first_ = block.line * rma::line_words + block.words - words_of_value(bytes);
  words_ = words_of_place(bytes);
}

std::size_t value_words::capacity() const { return (words_ - words_before_bytes) * sizeof(word); }

std::uint32_t value_words::place(word number) const {
  return first_ + rma::line_words + static_cast<std::uint32_t>(number % 2) * words_;
}

word value_words::read_number() const {
  // Acquire: the place that the number says was filled before.
  return file_.word(first_).load(std::memory_order_acquire);
}

std::optional<stored_value> value_words::read() const {
  constexpr int tries = 1'000;
  for (int i = 0; i < tries; ++i) {
    const word before = read_number();
    const std::uint32_t at = place(before);
    stored_value found;
    found.token = file_.word(at).load(std::memory_order_relaxed);
    const word head = file_.word(at + 1).load(std::memory_order_relaxed);
    const std::size_t length = head & ~flags;
    if (length > capacity()) return std::nullopt;
    found.until = (head & lasts_with_hold) != 0 ? lasts::with_hold : lasts::with_name;
    found.bytes.resize(length);
    for (std::size_t done = 0; done < length; done += sizeof(word)) {
      const auto i_of_word = static_cast<std::uint32_t>(done / sizeof(word));
      const word part =
          file_.word(at + words_before_bytes + i_of_word).load(std::memory_order_relaxed);
      std::memcpy(found.bytes.data() + done, &part, std::min(sizeof part, length - done));
    }
    // Acquire fence: the number is read after the words of the place.
    std::atomic_thread_fence(std::memory_order_acquire);
    if (file_.word(first_).load(std::memory_order_relaxed) != before) continue;
    if ((head & has_value) == 0) found = {};
    found.is_unknown = (head & is_unknown) != 0;
    return found;
  }
  return std::nullopt;
}

void value_words::write(const stored_value& what) const {
  // Relaxed: on one machine the writer before held the lock that this one holds; in a cluster it is
  // the agent's own thread.
  const word next = file_.word(first_).load(std::memory_order_relaxed) + 1;
  const std::uint32_t at = place(next);
  // Release fence: a reader that sees a word of this publication sees the number before it, too, so
  // that it does not take the place for that of the publication before the last.
  std::atomic_thread_fence(std::memory_order_release);
  file_.word(at).store(what.token, std::memory_order_relaxed);
  const word head = (what.is_unknown ? is_unknown : 0) | (what.token != 0 ? has_value : 0) |
                    (what.until == lasts::with_hold ? lasts_with_hold : 0) | what.bytes.size();
  file_.word(at + 1).store(head, std::memory_order_relaxed);
  for (std::size_t done = 0; done < what.bytes.size(); done += sizeof(word)) {
    word part = 0;
    std::memcpy(&part, what.bytes.data() + done, std::min(sizeof part, what.bytes.size() - done));
    file_.word(at + words_before_bytes + static_cast<std::uint32_t>(done / sizeof(word)))
        .store(part, std::memory_order_relaxed);
  }
  // Release: the place is filled before the number says so. A sleeper has armed its bell before it
  // reads the number for the last time, so the read-modify-write comes before the ring.
  file_.word(first_).exchange(next, std::memory_order_acq_rel);
  file_.bell_of_line(first_ / rma::line_words).ring_after_rmw();
}

void value_words::wake() const {
  // The readers look at the serial of the block, which was changed before.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  file_.bell_of_line(first_ / rma::line_words).ring();
}

// ---- the block ----

std::optional<found_lock> find_value(const domain_file& file, std::string_view lock) {
  auto found = find_lock(file, name_of_value(lock));
  if (found && found->kind != &value_kind()) blocks::written_over(file);
  return found;
}

found_lock room_for_value(attachment& by, std::string_view lock, std::size_t bytes,
                          const time_limit& how_long) {
  const auto is_large_enough = [&](const found_lock& block) {
    return value_words(by.file(), block).capacity() >= bytes;
  };
  const std::string name = name_of_value(lock);
  for (;;) {
    const auto found = find_value(by.file(), lock);
    if (found && is_large_enough(*found)) return *found;
    if (found) {
      // Another participant may have removed it meanwhile, or takes its lock for a moment to do so.
      static_cast<void>(forget(by, name, *found, true, how_long));
      value_words(by.file(), *found).wake();
      if (!how_long.sleep(10'000)) throw directory_is_busy();
      continue;
    }
    static_cast<void>(look_up(by, name, value_kind(), parameters_of_value(bytes), how_long));
  }
}

}  // namespace lockflight::detail
