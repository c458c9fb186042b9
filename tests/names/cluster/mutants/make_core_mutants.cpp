// Makes broken copies of the cluster's core: each mutant is the text of a file with a few lines
// replaced, as a table says, in a namespace of its own. What the mutant does not change it shares
// with the core. When a source changes so that the lines are not found any more, this fails.
//
// Usage: make_core_mutants SOURCE_FOLDER TABLE OUTPUT
//
// A table is lines of text; leading blanks do not matter, # begins a comment.
//   mutant NAME      begins a mutant
//   why TEXT         what goes wrong
//   in FILE          the file of src/names/cluster/core that the next lines change
//   - LINE  + LINE   whole lines, but for their indentation: the old ones are found once
#include <algorithm>
#include <filesystem>
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
  std::vector<change> changes;
};

// In the order in which they include each other. The agent is part of each mutant of its parts.
const lines parts{"home", "owner", "membership", "agent", "acquire"};

std::vector<mutant> read_table(const std::string& path) {
  std::vector<mutant> all;
  bool continues = false;  // the lines before were + lines of the same change
  for (const std::string& raw : read_lines(path)) {
    const std::string line = trimmed(raw);
    if (line.empty() || line[0] == '#') continue;
    const std::size_t blank = line.find(' ');
    const std::string word = line.substr(0, blank);
    const std::string rest = blank == std::string::npos ? "" : trimmed(line.substr(blank));
    if (word == "mutant") {
      all.push_back({rest, "", {}});
    } else if (word == "why") {
      all.back().why = rest;
    } else if (word == "in") {
      all.back().changes.push_back({rest, {}, {}});
    } else if (word == "-") {
      change& now = all.back().changes.back();
      if (continues) all.back().changes.push_back({now.file, {}, {}});
      all.back().changes.back().before.push_back(rest);
    } else if (word == "+") {
      all.back().changes.back().after.push_back(rest);
    } else {
      throw std::runtime_error(path + ": " + line);
    }
    continues = word == "+";
  }
  return all;
}

void make(const mutant& of, const change& what, lines& text) {
  if (!apply(what, text))
    throw std::runtime_error(of.name + ": not once in " + what.file + ": " +
                             (what.before.empty() ? "no lines at all" : what.before.front()));
}

/// The part of a file that is in the namespace; its includes are added to `includes`, but for those
/// of files that are copied.
lines inner_part(const lines& text, const std::set<std::string>& copied,
                 std::set<std::string>& includes) {
  lines inside;
  bool is_inside = false;
  for (const std::string& line : text) {
    if (line.starts_with("#include")) {
      const bool is_copied = std::any_of(copied.begin(), copied.end(), [&](const auto& part) {
        return line == "#include \"names/cluster/core/" + part + ".hpp\"";
      });
      if (!is_copied) includes.insert(line);
    }
    if (line == "}  // namespace lockflight::cluster") is_inside = false;
    if (is_inside) inside.push_back(line);
    if (line == "namespace lockflight::cluster {") is_inside = true;
  }
  return inside;
}

void add(const mutant& of, const std::string& folder, std::set<std::string>& includes,
         std::ostream& body) {
  std::set<std::string> copied;
  // A part may have a second source: membership_changes.cpp belongs to the membership.
  for (const change& each : of.changes)
    copied.insert(each.file.substr(0, each.file.find_first_of("._")));
  const bool is_of_client = copied.contains("acquire");
  const bool is_of_agent = copied.size() > (is_of_client ? 1u : 0u);
  if (is_of_agent) copied.insert("agent");
  body << "namespace lockflight::cluster::mutant_" << of.name << " {\n";
  // What is not copied is the core's own.
  if (!is_of_agent) body << "using cluster::agent;\n";
  if (!is_of_client) body << "using cluster::acquire;\n";
  for (const char* const end : {".hpp", ".cpp", "_changes.cpp", "_unused.cpp"}) {
    for (const std::string& part : parts) {
      if (!copied.contains(part)) continue;
      const std::string path = folder + "/" + part + end;
      if (!std::filesystem::exists(path)) continue;  // most parts have not all of these
      lines text = read_lines(path);
      for (const change& each : of.changes)
        if (each.file == part + end) make(of, each, text);
      for (const std::string& line : inner_part(text, copied, includes)) body << line << "\n";
    }
  }
  body << "}  // namespace lockflight::cluster::mutant_" << of.name << "\n";
}

void write(const std::vector<mutant>& all, const std::string& folder, const std::string& path,
           const std::string& table) {
  std::set<std::string> includes{"#include \"names/cluster/core/agent.hpp\"",
                                 "#include \"names/cluster/core/acquire.hpp\""};
  std::ostringstream body;
  for (const mutant& each : all) add(each, folder, includes, body);
  std::ofstream out(path);
  out << "// Made from " << table << ".mutants by make_core_mutants.\n"
      << "#include \"tests/names/cluster/mutants/core_mutant.hpp\"\n";
  for (const std::string& line : includes) out << line << "\n";
  out << body.str() << "namespace lockflight::cluster {\n"
      << "std::vector<core_mutant> mutants_of_" << table << "() {\n  return {\n";
  for (const mutant& each : all)
    out << "      mutant_of<mutant_" << each.name << "::agent, mutant_" << each.name
        << "::acquire>(\"" << each.name << "\", \"" << each.why << "\"),\n";
  out << "  };\n}\n}  // namespace lockflight::cluster\n";
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 4) {
    std::cerr << "usage: make_core_mutants SOURCE_FOLDER TABLE OUTPUT\n";
    return 2;
  }
  const std::string path = argv[2];
  const std::size_t slash = path.rfind('/') + 1;
  write(read_table(path), argv[1], argv[3], path.substr(slash, path.rfind('.') - slash));
} catch (const std::exception& e) {
  std::cerr << e.what() << "\n";
  return 1;
}
