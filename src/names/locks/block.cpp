#include "names/locks/block.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/fnv.hpp"

namespace lockflight::detail::blocks {

std::uint32_t hash_of(std::string_view name) {
  const std::uint64_t sum = fnv1a(name);
  return static_cast<std::uint32_t>(sum ^ sum >> 32);
}

namespace {
word name_head(std::string_view name) { return word{hash_of(name)} << 32 | name.size(); }
}  // namespace

void written_over(const domain_file& file) { file.throw_damaged("has been written over"); }

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

std::uint32_t end_of_blocks(const domain_file& file) {
  const std::uint32_t end = file.header().next_line.load(std::memory_order_acquire);
  if (end < first_line || end > last_line) written_over(file);
  return end;
}

std::uint32_t class_of_block(const domain_file& file, std::uint32_t line) {
  if (line < first_line || line >= end_of_blocks(file)) written_over(file);
  const auto found = static_cast<std::uint32_t>(read(file, line, class_word)) - 1;
  if (std::uint64_t{line} + lines_of(class_at(file, found)) > end_of_blocks(file))
    written_over(file);
  return found;
}

/// The kind of a class. A lock's words lie as its parameters say, so these must be accepted here
/// too.
kind_of_blocks kind_of_class(const domain_file& file, const domain_class& c) {
  try {
    const domain_kind* const kind = find_kind(c.kind);
    auto set = parse_parameters(c.parameters);
    if (kind != nullptr && kind->canonical(set) == c.parameters &&
        kind->words(set) + c.name_lines * line_words == c.words)
      return {*kind, std::move(set)};
  } catch (const domain_error&) {  // not accepted
  }
  written_over(file);
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

std::string parameters_of_class(const domain_kind& kind, const std::string& canonical) {
  return is_semaphore(kind) ? parameters_of_semaphores : canonical;
}

found_lock describe(const domain_file& file, std::uint32_t line) {
  const domain_class& c = class_at(file, class_of_block(file, line));
  kind_of_blocks its = kind_of_class(file, c);
  found_lock found{.line = line,
                   .serial = read(file, line, serial_word),
                   .kind = &its.kind,
                   .parameters = c.parameters,
                   .set = std::move(its.set),
                   .words = words_without_name(c),
                   .tokens_before = read(file, line, tokens_before_word)};
  if (is_semaphore(its.kind)) {
    const semaphore_words words = words_of_semaphore(line * line_words, found.words);
    found.parameters = parameters_of_semaphore(units_in(file, words));
    found.has_set_units = set_units_in(file, words).has_value();
  }
  return found;
}

}  // namespace lockflight::detail::blocks
