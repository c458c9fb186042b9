#include "domain/directory.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>

namespace lockflight::detail {
namespace {

std::uint32_t hash_of(std::string_view name) {
  std::uint64_t sum = 0xcbf29ce484222325ULL;
  for (const char c : name) sum = (sum ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return static_cast<std::uint32_t>(sum ^ sum >> 32);
}

std::string_view name_of(const domain_file& file, const domain_entry& e) {
  if (e.length == 0 || e.length > 255) file.damaged("has been written over");
  return {e.name, e.length};
}

domain_entry& entry_at(const domain_file& file, std::uint32_t number) {
  if (number == 0 || number > file.header().entries || number > file.options().names)
    file.damaged("has been written over");
  return file.entry(number - 1);
}

domain_class& class_at(const domain_file& file, std::uint32_t i) {
  if (i >= file.header().classes || i >= domain_shape::most_classes)
    file.damaged("has been written over");
  domain_class& c = file.of_class(i);
  if (std::memchr(c.kind, 0, sizeof c.kind) == nullptr ||
      std::memchr(c.parameters, 0, sizeof c.parameters) == nullptr || c.words < rma::line_words ||
      c.words % rma::line_words != 0 || c.words > file.shape().words)
    file.damaged("has been written over");
  return c;
}

bool is_a_line(const domain_file& file, std::uint32_t line) {
  return line >= domain_shape::first_block && line % rma::line_words == 0 &&
         line < file.header().next_word && file.header().next_word <= file.shape().words;
}

/// The class of a block, all of whose words there are. Relaxed: written before anybody could know
/// of the block.
std::uint32_t class_of_block(const domain_file& file, std::uint32_t line) {
  if (!is_a_line(file, line)) file.damaged("has been written over");
  const auto found = static_cast<std::uint32_t>(
                         file.word(0, line + class_beside).load(std::memory_order_relaxed)) -
                     1;
  if (std::uint64_t{line} + class_at(file, found).words > file.header().next_word)
    file.damaged("has been written over");
  return found;
}

/// The kind of a class. A lock's words lie as its parameters say, so these must be accepted here
/// too.
const domain_kind& kind_of_class(const domain_file& file, const domain_class& c) {
  try {
    const domain_kind* const kind = find_kind(c.kind);
    const auto set = parse_parameters(c.parameters);
    if (kind != nullptr && kind->canonical(set) == c.parameters &&
        kind->words(file.machine(), set) == c.words)
      return *kind;
  } catch (const domain_error&) {  // not accepted
  }
  file.damaged("has been written over");
}

/// The numbers that the directory goes by. A death leaves all of them right.
void check_numbers(const domain_file& file) {
  const domain_header& h = file.header();
  if (h.entries > file.options().names || h.free_entries > h.entries ||
      h.classes > domain_shape::most_classes || h.next_word < domain_shape::first_block ||
      h.next_word % rma::line_words != 0 || h.next_word > file.shape().words)
    file.damaged("has been written over");
}

void put(const domain_file& file, std::uint32_t index, rma::word value) {
  // Release: a thread that finds it finds what it was made from.
  file.word(0, index).store(value, std::memory_order_release);
}

// What is reachable from the buckets is in use, all else is free.
void rebuild(domain_file& file) {
  domain_header& h = file.header();
  std::vector<bool> used(h.entries);
  std::vector<std::uint32_t> lines;
  for (std::uint32_t b = 0; b < file.shape().buckets_count; ++b)
    for (std::uint32_t n = file.bucket(b).load(); n != 0; n = entry_at(file, n).next.load()) {
      entry_at(file, n);
      if (used[n - 1]) file.damaged("has been written over");
      used[n - 1] = true;
      const domain_entry& e = file.entry(n - 1);
      lines.push_back(e.line);
      // The thread that was to forget it may have done half of that.
      if (!is_a_line(file, e.line)) file.damaged("has been written over");
      put(file, e.line + serial_beside, e.serial);
    }
  h.free_entries = 0;
  for (std::uint32_t i = 0; i < h.entries; ++i)
    if (!used[i]) file.entry(i).next.store(std::exchange(h.free_entries, i + 1));
  h.count.store(static_cast<std::uint32_t>(lines.size()));
  std::sort(lines.begin(), lines.end());
  for (std::uint32_t i = 0; i < h.classes; ++i) class_at(file, i).free = 0;
  for (std::uint32_t line = domain_shape::first_block; line < h.next_word;) {
    domain_class& c = class_at(file, class_of_block(file, line));
    if (!std::binary_search(lines.begin(), lines.end(), line)) {
      put(file, line + serial_beside, 0);
      put(file, line + next_beside, std::exchange(c.free, line));
    }
    line += c.words;
  }
}

/// Has the directory to itself.
class inside {
 public:
  explicit inside(domain_file& file) : file_(file) {
    file.check_size();
    constexpr time_t patience_s = 10;
    timespec until{};
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += patience_s;
    pthread_mutex_t& mutex = file.header().directory;
    const int how = pthread_mutex_timedlock(&mutex, &until);
    if (how == ETIMEDOUT)
      throw domain_error(domain_error::reason::system,
                         "domain " + file.name() +
                             ": somebody has its directory for more than 10 seconds (a stopped "
                             "process?)");
    if (how != 0 && how != EOWNERDEAD) file.damaged("has been written over");
    try {
      check_numbers(file);
      if (how == EOWNERDEAD) rebuild(file);
    } catch (...) {
      pthread_mutex_unlock(&mutex);  // after a death for ever: all others find it damaged too
      throw;
    }
    if (how == EOWNERDEAD) pthread_mutex_consistent(&mutex);
  }
  ~inside() { pthread_mutex_unlock(&file_.header().directory); }
  inside(const inside&) = delete;
  inside& operator=(const inside&) = delete;

 private:
  domain_file& file_;
};

std::atomic<std::uint32_t>& bucket_of(const domain_file& file, std::string_view name) {
  return file.bucket(hash_of(name) & (file.shape().buckets_count - 1));
}

/// The place that leads to the entry, or the end of the bucket's chain.
std::atomic<std::uint32_t>& place_of(const domain_file& file, std::string_view name) {
  std::atomic<std::uint32_t>* at = &bucket_of(file, name);
  file.make_room(at, sizeof *at);
  for (std::uint32_t steps = 0; at->load() != 0; ++steps) {
    if (steps > file.options().names) file.damaged("has been written over");
    domain_entry& e = entry_at(file, at->load());
    if (name_of(file, e) == name) break;
    at = &e.next;
  }
  return *at;
}

found_lock read(const domain_file& file, const domain_entry& e) {
  const domain_class& c = class_at(file, e.of_class);
  if (class_of_block(file, e.line) != e.of_class ||
      file.word(0, e.line + serial_beside).load() != e.serial)
    file.damaged("has been written over");
  return {e.line, e.serial, &kind_of_class(file, c), c.parameters, c.words, e.tokens_before};
}

std::uint32_t class_for(domain_file& file, const domain_kind& kind, const std::string& canonical) {
  domain_header& h = file.header();
  for (std::uint32_t i = 0; i < h.classes; ++i) {
    const domain_class& c = class_at(file, i);
    if (kind.name == c.kind && canonical == c.parameters) return kind_of_class(file, c), i;
  }
  if (h.classes == domain_shape::most_classes ||
      canonical.size() >= sizeof(domain_class::parameters))
    throw domain_error(domain_error::reason::full,
                       "domain " + file.name() + ": no room for another kind of lock");
  domain_class& c = file.of_class(h.classes);
  c = {};
  kind.name.copy(c.kind, sizeof c.kind - 1);
  canonical.copy(c.parameters, sizeof c.parameters - 1);
  c.words = kind.words(file.machine(), parse_parameters(canonical));
  return h.classes++;
}

/// Whether the block has no name; else a second name would share its words.
bool is_nobodys(const domain_file& file, std::uint32_t line) {
  return file.word(0, line + serial_beside).load() == 0;
}

std::uint32_t take_block(domain_file& file, std::uint32_t of_class, bool shares) {
  domain_header& h = file.header();
  domain_class& c = class_at(file, of_class);
  if (c.free != 0) {
    const std::uint32_t line = c.free;
    if (class_of_block(file, line) != of_class || !is_nobodys(file, line))
      file.damaged("has been written over");
    c.free = static_cast<std::uint32_t>(file.word(0, line + next_beside).load());
    return line;
  }
  const std::uint32_t line = h.next_word;
  if (std::uint64_t{line} + c.words > file.shape().words)
    throw domain_error(domain_error::reason::full,
                       "domain " + file.name() + ": no room for the words of another lock");
  // A writer reads counters of readers in every rank's segment.
  for (int r = 0; r < (shares ? file.ranks() : 1); ++r)
    file.make_room(&file.word(r, line), c.words * sizeof(rma::word));
  if (!is_nobodys(file, line)) file.damaged("has been written over");
  put(file, line + class_beside, of_class + 1);  // before anybody walks over the block
  h.next_word = line + c.words;
  return line;
}

}  // namespace

std::string shown(std::string_view name) {
  std::string text = "'";
  text += in_a_line(std::string(name.substr(0, 80)));
  return text + (name.size() > 80 ? "…'" : "'");
}

void check_lock_name(std::string_view name) {
  if (!name.empty() && name.size() <= 255 &&
      name.find_first_of(std::string_view("\0\n", 2)) == std::string_view::npos)
    return;
  throw domain_error(
      domain_error::reason::invalid,
      "lock name " + shown(name) + " (accepted: 1 to 255 bytes, none of them NUL or newline)");
}

found_lock look_up(domain_file& file, std::string_view name, const domain_kind& kind,
                   const std::string& canonical) {
  const inside here(file);
  domain_header& h = file.header();
  if (const std::uint32_t number = place_of(file, name).load(); number != 0) {
    const found_lock found = read(file, entry_at(file, number));
    if (found.kind == &kind && found.parameters == canonical) return found;
    throw domain_error(domain_error::reason::disagrees,
                       "lock " + shown(name) + " is a " + std::string(found.kind->name) +
                           " with parameters '" + found.parameters + "', not a " +
                           std::string(kind.name) + " with '" + canonical + "'");
  }
  if (h.free_entries == 0 && h.entries >= file.options().names)
    throw domain_error(domain_error::reason::full, "domain " + file.name() + ": all " +
                                                       std::to_string(file.options().names) +
                                                       " names are taken");
  std::uint32_t number = h.free_entries;
  file.make_room(&file.entry(number != 0 ? number - 1 : h.entries), sizeof(domain_entry));
  const std::uint32_t of_class = class_for(file, kind, canonical);
  const std::uint32_t line = take_block(file, of_class, kind.shares);
  if (number != 0)
    h.free_entries = entry_at(file, number).next.load();
  else
    number = ++h.entries;
  domain_entry& e = entry_at(file, number);
  e.line = line;
  e.serial = ++h.serials;
  e.of_class = static_cast<std::uint16_t>(of_class);
  e.length = static_cast<std::uint16_t>(name.size());
  name.copy(e.name, sizeof e.name);
  put(file, line + 2, 0);  // nobody died in it
  // The lock's own tokens go on from where they are: a handle of the block's last lock may be about
  // to write one.
  e.tokens_before = h.tokens;
  put(file, line + serial_beside, e.serial);
  auto& bucket = bucket_of(file, name);
  e.next.store(bucket.load());
  bucket.store(number);  // from here on the lock exists
  h.count.fetch_add(1);
  return read(file, e);
}

std::optional<found_lock> find_lock(domain_file& file, std::string_view name) {
  const inside here(file);
  const std::uint32_t number = place_of(file, name).load();
  if (number == 0) return std::nullopt;
  return read(file, entry_at(file, number));
}

std::vector<std::pair<std::string, found_lock>> all_locks(domain_file& file) {
  const inside here(file);
  std::vector<std::pair<std::string, found_lock>> all;
  for (std::uint32_t b = 0; b < file.shape().buckets_count; ++b)
    for (std::uint32_t n = file.bucket(b).load(); n != 0; n = entry_at(file, n).next.load()) {
      const domain_entry& e = entry_at(file, n);
      if (all.size() > file.options().names) file.damaged("has been written over");
      all.emplace_back(name_of(file, e), read(file, e));
    }
  return all;
}

bool forget(domain_file& file, std::string_view name, const found_lock& what) {
  const inside here(file);
  domain_header& h = file.header();
  auto& place = place_of(file, name);
  const std::uint32_t number = place.load();
  if (number == 0 || entry_at(file, number).serial != what.serial) return false;
  h.tokens = std::max(h.tokens, what.tokens_before + file.word(0, what.line + 1).load());
  // First: a handle that gets in after us finds that this is no lock of its any more.
  put(file, what.line + serial_beside, 0);
  domain_entry& e = entry_at(file, number);
  place.store(e.next.load());
  e.next.store(h.free_entries);
  h.free_entries = number;
  h.count.fetch_sub(1);
  return true;
}

void free_block(domain_file& file, const found_lock& what) {
  const inside here(file);
  // A death before us has had all that is free found.
  if (!is_nobodys(file, what.line)) return;
  domain_class& c = class_at(file, class_of_block(file, what.line));
  std::uint32_t steps = 0;
  for (std::uint32_t line = c.free; line != 0;
       line = static_cast<std::uint32_t>(file.word(0, line + next_beside).load())) {
    if (line == what.line) return;
    class_of_block(file, line);
    if (++steps > file.shape().words / rma::line_words) file.damaged("has been written over");
  }
  put(file, what.line + next_beside, std::exchange(c.free, what.line));
}

std::unique_ptr<any_robust> lock_at(attachment& me, std::uint32_t line) {
  domain_file& file = me.file();
  const domain_class& c = class_at(file, class_of_block(file, line));
  return lock_at(me, {line, 0, &kind_of_class(file, c), c.parameters, c.words, 0});
}

std::unique_ptr<any_robust> lock_at(attachment& me, const found_lock& what) {
  return what.kind->make(me.me(), what.line, what.words, parse_parameters(what.parameters));
}

}  // namespace lockflight::detail
