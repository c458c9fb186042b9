// Makes broken locks out of the locks' own sources: each mutant is the text of a lock with a few
// lines replaced, as a table says. So the tested text is the shipped one, except for those lines;
// and when a source changes so that they are not found any more, the mutant's test says so.
//
// Usage: make_mutants PROJECT_DIR TABLE OUTPUT
//
// A mutant is a namespace with copies of the files that it changes and of those that include them;
// the others are the lock's own, read and instantiated once for all mutants.
//
// clang-format off
// A table is lines of text; leading blanks do not matter, # begins a comment.
//   lock CLASS FILE...     the lock's class in lockflight::lock and its files, in the order of
//                          inclusion: of include/lockflight/lock, with their folder if of rma, and
//                          with their path from the root if of lab or tests
//   inside CLASS FILE      the lock inside a robust one, for the mutants from here on
//   subject EXPRESSION     in place of check::make_subject; SPACE stands for the mutant's namespace
//   mutant NAME            begins a mutant
//   why TEXT               what goes wrong
//   base NAME              the mutant that is changed further, and must pass where this one fails;
//                          else the lock itself
//   check KEY=VALUE ...    the bound: fields of check::request, `off` as in a replay string,
//                          `random`, the number of random schedules instead of all, `depth` and
//                          `seed` of those, and parameters of the lock
//   expect PROPERTY        what the checker must find; `ok` if it must find nothing
//   in FILE                the file that the next lines change
//   - LINE  + LINE         whole lines, but for their indentation: the old ones are found once
// clang-format on
#include <algorithm>
#include <fstream>
#include <iostream>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/lab/mutants/change.hpp"

namespace {

using lockflight::mutants::change;
using lockflight::mutants::lines;
using lockflight::mutants::read_lines;
using lockflight::mutants::trimmed;

struct mutant {
  std::string name;
  std::string why;
  std::string base;
  std::string inside;  // "" for a lock that has none
  std::string bound;
  std::string expected;
  std::vector<change> changes;
};

struct table {
  std::string lock;
  lines files;
  std::string inside;
  lines inside_files;
  std::string subject;  // "" for the usual one
  std::vector<mutant> mutants;
};

[[nodiscard]] lines words_of(const std::string& text) {
  std::istringstream in(text);
  lines words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

[[nodiscard]] mutant& last_of(table& into) {
  if (into.mutants.empty()) throw std::runtime_error("no mutant yet");
  return into.mutants.back();
}

[[nodiscard]] std::vector<change> changes_of(const table& in, const std::string& name) {
  for (const mutant& m : in.mutants)
    if (m.name == name) return m.changes;
  throw std::runtime_error("no mutant '" + name + "' before this one");
}

void add_line(table& into, std::string& file, const std::string& text) {
  const std::size_t blank = std::min(text.find(' '), text.size());
  const std::string key = text.substr(0, blank);
  const std::string value = trimmed(text.substr(blank));
  if (key == "lock") {
    const lines words = words_of(value);
    into.lock = words.at(0);
    into.files.assign(words.begin() + 1, words.end());
    file = into.files.back();
  } else if (key == "inside") {
    const lines words = words_of(value);
    into.inside = words.at(0);
    into.inside_files.push_back(words.at(1));
  } else if (key == "subject") {
    into.subject = value;
  } else if (key == "mutant") {
    std::string base = into.inside.empty() ? into.lock : into.lock + "_" + into.inside;
    if (!into.subject.empty()) base.clear();  // a test of its own has the intact one
    into.mutants.push_back({value, "", base, into.inside, "", "", {}});
    file = into.files.back();
  } else if (key == "why") {
    std::string& why = last_of(into).why;
    why += (why.empty() ? "" : " ") + value;
  } else if (key == "base") {
    last_of(into).base = value;
    last_of(into).changes = changes_of(into, value);
  } else if (key == "check") {
    last_of(into).bound = value;
  } else if (key == "expect") {
    last_of(into).expected = value;
  } else if (key == "in") {
    file = value;
  } else if (key == "-") {
    std::vector<change>& all = last_of(into).changes;
    if (all.empty() || all.back().file != file || !all.back().after.empty())
      all.push_back({file, {}, {}});
    all.back().before.push_back(value);
  } else if (key == "+") {
    last_of(into).changes.at(last_of(into).changes.size() - 1).after.push_back(value);
  } else {
    throw std::runtime_error("what is '" + key + "'?");
  }
}

[[nodiscard]] table read_table(const std::string& path) {
  table made;
  std::string file;
  int number = 0;
  for (const std::string& line : read_lines(path)) {
    ++number;
    const std::string text = trimmed(line);
    if (text.empty() || text.front() == '#') continue;
    try {
      add_line(made, file, text);
    } catch (const std::exception& e) {
      throw std::runtime_error(path + ":" + std::to_string(number) + ": " + e.what());
    }
  }
  return made;
}

/// A C++ string literal.
[[nodiscard]] std::string literal_of(const std::string& text) {
  std::string made = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') made += '\\';
    made += c;
  }
  return made + "\"";
}

/// "spin" of "tests/lab/mutants/spin.mutants".
[[nodiscard]] std::string name_of(const std::string& table) {
  const std::string file = table.substr(table.rfind('/') + 1);
  return file.substr(0, file.rfind('.'));
}

/// Files of lab, tests and rma are named with that folder, all others are below
/// include/lockflight/lock.
[[nodiscard]] std::string folder_of(const std::string& file) {
  if (file.starts_with("lab/") || file.starts_with("tests/")) return "";
  return file.starts_with("rma/") ? "lockflight/" : "lockflight/lock/";
}

class writer {
 public:
  /// `name` is the table's.
  writer(const std::string& project_dir, std::string name, table from)
      : name_(std::move(name)), from_(std::move(from)) {
    for (const std::string& file : from_.files) {
      const std::string folder = folder_of(file);
      sources_.push_back(
          read_lines(project_dir + (folder.empty() ? "/" : "/include/") + folder + file));
      for (const std::string& line : sources_.back())
        if (line.starts_with("#include")) includes_.insert(line);
      includes_.insert(include_of(file));
    }
    for (const std::string& file : from_.inside_files) includes_.insert(include_of(file));
  }

  void write(std::ostream& out) const {
    out << "// Made by make_mutants.\n"
           "#include \"lockflight/lock/about.hpp\"\n#include \"tests/lab/mutants/mutant.hpp\"\n";
    for (const std::string& line : includes_) out << line << '\n';
    std::string list;
    for (const mutant& m : from_.mutants) list += write_mutant(m, out);
    out << "\nnamespace lockflight::mutants {\n\nstd::vector<mutant> mutants_of_" << name_
        << "() {\n  return {\n"
        << list << "  };\n}\n\n}  // namespace lockflight::mutants\n";
  }

 private:
  [[nodiscard]] static std::string include_of(const std::string& file) {
    return "#include \"" + folder_of(file) + file + "\"";
  }

  [[nodiscard]] static bool includes_one_of(const lines& source,
                                            const std::set<std::string>& files) {
    return std::ranges::any_of(files, [&](const std::string& file) {
      return std::ranges::find(source, include_of(file)) != source.end();
    });
  }

  /// Writes the mutant's source; returns its entry in the list.
  [[nodiscard]] std::string write_mutant(const mutant& m, std::ostream& out) const {
    std::vector<lines> sources = sources_;
    std::set<std::string> copied;
    std::string stale;
    for (const change& c : m.changes) {
      const auto at = std::find(from_.files.begin(), from_.files.end(), c.file);
      if (at == from_.files.end() ||
          !apply(c, sources[static_cast<std::size_t>(at - from_.files.begin())]))
        stale = c.file + " does not have, or not once: " + c.before.front();
      copied.insert(c.file);
    }
    const std::string space = "lockflight::lock::mutant_" + m.name;
    if (stale.empty())
      for (std::size_t i = 0; i < sources.size(); ++i) {
        // The lock itself always, since its class is the mutant's.
        if (!copied.contains(from_.files[i]) && !includes_one_of(sources_[i], copied) &&
            i + 1 < sources.size())
          continue;
        copied.insert(from_.files[i]);
        write_source(sources[i], space, out);
      }
    return "      {.name = " + literal_of(m.name) + ", .lock = " + literal_of(from_.lock) +
           ", .why = " + literal_of(m.why) + ", .base = " + literal_of(m.base) +
           ", .bound = " + literal_of(m.bound) + ", .expected = " + literal_of(m.expected) +
           ", .stale = " + literal_of(stale) +
           ",\n       .broken = " + (stale.empty() ? subject_of(m, space) : "{}") + "},\n";
  }

  [[nodiscard]] std::string subject_of(const mutant& m, const std::string& space) const {
    std::string made = from_.subject;
    for (std::size_t at; (at = made.find("SPACE")) != std::string::npos;)
      made.replace(at, std::string("SPACE").size(), space);
    if (!made.empty()) return made;
    const std::string lock = space + "::" + from_.lock;
    if (m.inside.empty()) return "check::make_subject<" + lock + "<check::port>>()";
    const std::string inside = "lockflight::lock::" + m.inside;
    return "check::make_subject_of<" + inside + ", " + lock + "<" + inside + ", check::port>>()";
  }

  static void write_source(const lines& source, const std::string& space, std::ostream& out) {
    for (const std::string& line : source) {
      if (line.starts_with("#")) continue;
      if (line == "namespace lockflight::lock {")
        out << "namespace " << space << " {\n";
      else if (line == "namespace lockflight::rma {")
        out << "namespace " << space << "::rma {\nusing namespace lockflight::rma;\n";
      else if (line == "namespace lockflight::check {")
        out << "namespace " << space << " {\nusing namespace lockflight::lock;\n}\nnamespace "
            << space << "::check {\nusing namespace lockflight::check;\nnamespace lock = " << space
            << ";\n";
      else
        out << line << '\n';
    }
  }

  std::string name_;
  table from_;
  std::vector<lines> sources_;
  std::set<std::string> includes_;
};

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc != 4) throw std::runtime_error("usage: make_mutants PROJECT_DIR TABLE OUTPUT");
    std::ofstream out(argv[3]);
    writer(argv[1], name_of(argv[2]), read_table(argv[2])).write(out);
    if (!out.flush()) throw std::runtime_error(std::string("cannot write ") + argv[3]);
  } catch (const std::exception& e) {
    std::cerr << "make_mutants: " << e.what() << '\n';
    return 2;
  }
}
