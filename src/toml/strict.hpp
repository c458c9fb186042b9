// TOML that is read strictly: a key that is not asked for, a value of another type and one out of
// range are refused with a line that names the file, the line in it, the key, the value and what is
// accepted.
#pragma once

// Broken files may fail the parser's assertions, or its assumptions with NDEBUG. Without either
// the parser refuses these files too.
#pragma push_macro("NDEBUG")
#undef NDEBUG
#define TOML_ASSERT(expression) static_cast<void>(0)
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")

#include <algorithm>
#include <array>
#include <charconv>
#include <concepts>
#include <cstdint>
#include <functional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/joined.hpp"

namespace lockflight::strict_toml {

/// The value between quotes.
[[nodiscard]] inline std::string shown(const toml::node& node) {
  if (const auto text = node.value_exact<std::string>()) return "'" + *text + "'";
  if (const auto number = node.value_exact<double>()) {
    std::array<char, 32> text{};
    const auto end = std::to_chars(text.data(), text.data() + text.size(), *number).ptr;
    const std::string shortest(text.data(), end);
    // As TOML has it, where 4.0 is no whole number.
    const bool is_whole = shortest.find_first_not_of("-0123456789") == std::string::npos;
    return "'" + shortest + (is_whole ? ".0'" : "'");
  }
  std::ostringstream out;
  node.visit([&](const auto& value) { out << value; });
  return "'" + out.str() + "'";
}

/// The file as one table. What is wrong is thrown as `Error`, made from a line of text.
template <std::constructible_from<std::string> Error>
[[nodiscard]] toml::table parsed(std::string_view text, const std::string& path);

/// A table of a file, whose `name` is empty at the root.
template <std::constructible_from<std::string> Error>
class table {
 public:
  /// The table and the path outlive this object.
  table(const toml::table& from, const std::string& path, std::string name = "")
      : table_(from), path_(path), name_(std::move(name)) {}

  // ---- keys that may be there ----

  /// Null if it is not there.
  [[nodiscard]] const toml::node* find(std::string_view key) {
    known_.emplace(key);
    return table_.get(key);
  }
  [[nodiscard]] bool has(std::string_view key) { return find(key) != nullptr; }
  /// Keys that end so, beside a key that is known, are strings that are not read.
  void may_have_notes(std::string_view suffix) { notes_ = suffix; }

  // ---- keys that must be there ----

  const toml::node& needed(std::string_view key, const std::string& accepted = "") {
    const toml::node* const found = find(key);
    if (found == nullptr)
      fail(table_,
           full(key) + " is missing" + (accepted.empty() ? "" : " (accepted: " + accepted + ")"));
    return *found;
  }
  std::string text(std::string_view key) {
    const toml::node& found = needed(key);
    const auto value = found.value_exact<std::string>();
    if (!value || value->empty()) refuse(found, key, "a string that is not empty");
    return *value;
  }
  template <class Words>
  std::string word_of(std::string_view key, const Words& accepted) {
    const toml::node& found = needed(key);
    const auto value = found.value_exact<std::string>();
    if (!value || std::find(accepted.begin(), accepted.end(), *value) == accepted.end())
      refuse(found, key, joined(accepted));
    return *value;
  }
  std::int64_t whole(std::string_view key, std::int64_t least, std::int64_t most) {
    return whole(needed(key), key, least, most);
  }
  std::vector<std::int64_t> wholes(std::string_view key, std::int64_t least, std::int64_t most) {
    const toml::node& found = needed(key);
    const toml::array* const array = found.as_array();
    if (array == nullptr || array->empty()) refuse(found, key, "an array of whole numbers");
    std::vector<std::int64_t> values;
    for (const toml::node& node : *array) values.push_back(whole(node, key, least, most));
    return values;
  }
  /// `accepted` says what is, if the bounds do not.
  double number(std::string_view key, double least, double most, std::string accepted = "") {
    const toml::node& found = needed(key);
    const auto value = found.is_number() ? found.value<double>() : std::nullopt;
    if (!value || !(*value >= least && *value <= most)) {
      std::ostringstream bounds;
      bounds << least << " to " << most;
      refuse(found, key, accepted.empty() ? bounds.str() : accepted);
    }
    return *value;
  }
  bool flag(std::string_view key) {
    const toml::node& found = needed(key);
    if (!found.is_boolean()) refuse(found, key, "true or false");
    return *found.value<bool>();
  }
  const toml::table& subtable(std::string_view key, const std::string& accepted = "") {
    const toml::node& found = needed(key, accepted);
    if (!found.is_table()) refuse(found, key, "a table");
    return *found.as_table();
  }
  /// The same as a reader of its own, with this table's name before its own.
  table open(std::string_view key, const std::string& accepted = "") {
    return {subtable(key, accepted), path_, full(key)};
  }

  std::int64_t whole(const toml::node& found, std::string_view key, std::int64_t least,
                     std::int64_t most) const {
    const auto value = found.value_exact<std::int64_t>();
    if (!value || *value < least || *value > most)
      refuse(found, key,
             "a whole number, " + std::to_string(least) + " to " + std::to_string(most));
    return *value;
  }

  /// Refuses keys that were not asked for.
  void finish() const {
    for (const auto& [key, node] : table_) {
      std::string_view name = key.str();
      if (known_.contains(name)) continue;
      if (!notes_.empty() && name.ends_with(notes_) && node.is_string()) {
        name.remove_suffix(notes_.size());
        if (known_.contains(name)) continue;
      }
      fail(node, "unknown key '" + full(key.str()) + "' (accepted: " + joined(known_) + ")");
    }
  }

  [[noreturn]] void refuse(const toml::node& at, std::string_view key,
                           const std::string& accepted) const {
    fail(at, full(key) + " " + shown(at) + " (accepted: " + accepted + ")");
  }
  [[noreturn]] void fail(const toml::node& at, const std::string& why) const {
    throw_at(at.source().begin.line, path_, why);
  }
  [[noreturn]] static void throw_at(std::uint32_t line, const std::string& path,
                                    const std::string& why) {
    std::string text = path + ":" + std::to_string(line) + ": " + why;
    // The text stays one line, whatever the file's keys and strings contain.
    for (char& c : text)
      if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
    throw Error(text);
  }
  [[nodiscard]] const toml::table& from() const { return table_; }
  /// The key with the names of the tables around it.
  [[nodiscard]] std::string full(std::string_view key) const {
    return name_.empty() ? std::string(key) : name_ + "." + std::string(key);
  }

 private:
  const toml::table& table_;
  const std::string& path_;
  std::string name_;
  std::set<std::string, std::less<>> known_;
  std::string notes_;
};

template <std::constructible_from<std::string> Error>
toml::table parsed(std::string_view text, const std::string& path) {
  try {
    return toml::parse(text);
  } catch (const toml::parse_error& e) {
    table<Error>::throw_at(e.source().begin.line, path, std::string(e.description()));
  }
}

}  // namespace lockflight::strict_toml
