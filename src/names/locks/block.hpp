// A block of the directory: the words of one lock, which has a name. Its lines are the two of the
// robust lock, those of the lock inside, and those of the name. Blocks of one class (kind,
// parameters and lines of the name) are alike. Hash chains lead through the blocks themselves.
//
// The words read here may have been written over: each index is checked, and domain_error (damaged)
// is thrown.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "lockflight/lock/robust/generation.hpp"
#include "names/cluster/client/words.hpp"
#include "names/file/file.hpp"
#include "names/locks/directory.hpp"
#include "names/locks/semaphore_kind.hpp"

namespace lockflight::detail::blocks {

using rma::line_words;
using rma::word;

// The words that robust locks leave to us.

constexpr lock::generation_cells block{.line = {0, 0}};
constexpr std::uint32_t present_word = block.generation().index;
constexpr std::uint32_t died_word = block.died().index;
constexpr std::uint32_t serial_word = block.beside().index;
static_assert(class_word == serial_word + 1);         // 1 + the class, as long as there is a block
constexpr std::uint32_t next_word = serial_word + 2;  // the line of the next of the chain, or free
constexpr std::uint32_t tokens_before_word = serial_word + 3;
constexpr std::uint32_t token_word = block.token().index;
constexpr std::uint32_t maker_word = block.beside_b().index;  // its process
constexpr std::uint32_t maker_command_word = maker_word + 1;  // two words
constexpr std::uint32_t done_until_word = maker_word + 5;     // after those of words_in_file
static_assert(done_until_word == words_in_file::state_at + 1 && done_until_word < 2 * line_words);

constexpr std::size_t longest_user_name = 255;
constexpr std::size_t longest_name = longest_user_name + longest_unit_suffix;
constexpr std::uint32_t least_lines = 3;  // of a block: a robust lock's two, and one of its name

[[nodiscard]] std::uint32_t hash_of(std::string_view name);

/// The name follows a word that has its length and its hash.
constexpr std::uint32_t lines_of_name(std::size_t length) {
  return static_cast<std::uint32_t>((length + 7) / 8 + line_words) / line_words;
}

[[noreturn]] void written_over(const domain_file& file);

[[nodiscard]] inline std::atomic<word>& at(const domain_file& file, std::uint32_t line,
                                           std::uint32_t i) {
  return file.word(line * line_words + i);
}
[[nodiscard]] inline word read(const domain_file& file, std::uint32_t line, std::uint32_t i) {
  return at(file, line, i).load(std::memory_order_acquire);
}
inline void put(const domain_file& file, std::uint32_t line, std::uint32_t i, word value) {
  // Release: a thread that reads this word sees the words that were written before it.
  at(file, line, i).store(value, std::memory_order_release);
}

[[nodiscard]] domain_class& class_at(const domain_file& file, std::uint32_t i);
[[nodiscard]] inline std::uint32_t lines_of(const domain_class& c) { return c.words / line_words; }
[[nodiscard]] inline std::uint32_t words_without_name(const domain_class& c) {
  return c.words - c.name_lines * line_words;
}
/// The line from which on there is no block.
[[nodiscard]] std::uint32_t end_of_blocks(const domain_file& file);
/// The number of the class of a block.
[[nodiscard]] std::uint32_t class_of_block(const domain_file& file, std::uint32_t line);
/// A class's kind and its parameters.
struct kind_of_blocks {
  const domain_kind& kind;
  lock::parameter_values set;
};
[[nodiscard]] kind_of_blocks kind_of_class(const domain_file& file, const domain_class& c);
/// The parameters that all semaphores have as those of their class, whatever their N, so that they
/// are one class. N is among the words of each.
[[nodiscard]] std::string parameters_of_class(const domain_kind& kind,
                                              const std::string& canonical);

[[nodiscard]] std::string name_of(const domain_file& file, std::uint32_t line,
                                  const domain_class& c);
void write_name(const domain_file& file, std::uint32_t line, const domain_class& c,
                std::string_view name);

/// The beginning of the chain that has the name.
[[nodiscard]] std::atomic<std::uint32_t>& bucket_of(const domain_file& file, std::string_view name);
/// The line of the block of that name, or 0.
[[nodiscard]] std::uint32_t find_line(const domain_file& file, std::string_view name);
/// The lock that a block has.
[[nodiscard]] found_lock describe(const domain_file& file, std::uint32_t line);

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

}  // namespace lockflight::detail::blocks
