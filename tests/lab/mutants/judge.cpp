// Judges generated mutants (tests/lab/mutants/mutate.py): each is searched for in all pairs of ways
// to acquire its lock, in several ways, and at every bound of the lock's own table, until a rule is
// broken. Each search is short at first. If none finds the mutant, the plain pairs and the table's
// searches that hit their limit are repeated with a larger one.
//
// Usage: mutants_judge TABLES_DIR JOBS [BOUND...]
//
// Prints a line for each mutant: its name, `killed` or `survived`, the rule, the search, and the
// seconds, with tabs between them. With BOUNDs these are searched instead.
//
// Each mutant is judged in a process of its own, since it may break anything: a loop that never
// ends, or an access out of bounds, is found as well.
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <map>
#include <string_view>

#include "tests/lab/check/pairs.hpp"
#include "tests/lab/mutants/generated.hpp"
#include "tests/lab/mutants/searches.hpp"

namespace lockflight::mutants {
namespace {

/// The limits of one search.
struct effort {
  std::uint64_t most_states;
  std::uint64_t most_executions;  // of a random search
  int most_cpu_seconds;           // before it is called endless
};
constexpr std::array efforts{effort{20'000, 1'000, 20}, effort{200'000, 10'000, 60}};

using clock = std::chrono::steady_clock;

// A search that does not come back ends the process.
void allow_seconds(int cpu_seconds) {
  const itimerval most{.it_interval = {}, .it_value = {.tv_sec = cpu_seconds, .tv_usec = 0}};
  setitimer(ITIMER_VIRTUAL, &most, nullptr);
}

// The searches of pairs: as they are, with posts in order, in the other memory, and of what must
// end in any number of rounds.
[[nodiscard]] std::vector<named_search> pairs_for(const mutant& m) {
  std::vector<named_search> made;
  const auto add = [&](const check::request& asked, const char* more) {
    std::string name = more;
    for (const check::part_row& row : check::part_rows)
      if (asked.*row.count > 0) name += row.key + ("=" + std::to_string(asked.*row.count)) + " ";
    made.push_back({name + asked.levels, asked, std::string_view(more).empty()});
  };
  if (m.lock == "robust" || m.broken.make == nullptr) {
    for (check::request pair : check::pairs_of(m.broken, 1)) {
      add(pair, "");
      if (m.lock != "robust")
        continue;  // the checker's semaphore does nothing about a stopped head
      pair.how.stops = 1;
      add(pair, "stops=1 ");
    }
    return made;
  }
  const std::vector<check::request> pairs = check::pairs_of(m.broken);
  for (const check::request& pair : pairs) add(pair, "");
  for (check::request pair : pairs) {
    if (pair.levels != "2x1") continue;
    pair.how.reordering = false;
    add(pair, "off=o ");
  }
  for (check::request pair : pairs) {
    const bool is_beside = !pair.levels.empty();
    const int tries = pair.try_writers + pair.try_readers;
    if (!is_beside || pair.timed_writers + pair.timed_readers + pair.upgraders > 0) continue;
    if (pair.upgrading_readers > 0) continue;
    pair.starvation = tries > 0 ? check::watched::tries : check::watched::leaving;
    add(pair, tries > 0 ? "starvation=tries " : "starvation=leaving ");
  }
  for (check::request pair : pairs) {
    pair.how.memory = check::memory_kind::views;
    add(pair, "memory=views ");
  }
  return made;
}

// Not each lock promises that its attempts end: the intact one has to pass.
[[nodiscard]] check::verdict of_intact(const mutant& m, const check::request& asked) {
  if (asked.starvation == check::watched::nobody) return check::verdict::ok;
  for (const check::subject& s : check::subjects())
    if (s.about.name == m.broken.about.name) return check::run(s, asked).found.what;
  return check::verdict::ok;
}

struct verdict {
  bool killed = false;
  std::string rule, search;
  double seconds = 0;
};

// Runs a search. False if it was too large.
[[nodiscard]] bool search(const mutant& m, named_search each, const effort& most, verdict& made) {
  allow_seconds(most.most_cpu_seconds);
  each.asked.until.shorten = false;
  const std::uint64_t wanted = each.asked.random_until.executions;
  each.asked.random_until.executions = std::min(wanted, most.most_executions);
  each.asked.until.most_states = most.most_states;
  made.search = each.name;
  try {
    const check::report found = check::run(m.broken, each.asked);
    check::verdict what = found.found.what;
    if (what == check::verdict::violation) {
      what = of_intact(m, each.asked);
      made.killed = what == check::verdict::ok;
      if (made.killed) made.rule = found.found.broken->property;
    }
    const bool is_whole = each.asked.random && wanted <= most.most_executions;
    return what != check::verdict::bound || is_whole;
  } catch (const check::bad_request&) {
    return true;  // the search is not for this lock
  } catch (const std::exception& e) {
    made.killed = true;
    made.rule = std::string("exception: ") + e.what();
    return true;
  }
}

// The child's exit codes.
enum end : int { is_decided, is_undecided };

[[nodiscard]] std::vector<named_search> searches_for(const mutant& m, const std::string& table,
                                                     const std::vector<std::string>& bounds) {
  std::vector<named_search> searches;
  for (const std::string& bound : bounds) searches.push_back({bound, request_of(bound)});
  if (!bounds.empty()) return searches;
  searches = pairs_for(m);
  for (named_search& each : searches_of_table(table)) searches.push_back(std::move(each));
  return searches;
}

void print(const std::string& name, const verdict& v) {
  char line[512];
  const int n = std::snprintf(line, sizeof line, "%s\t%s\t%s\t%s\t%.1f\n", name.c_str(),
                              v.killed ? "killed" : "survived", v.rule.substr(0, 120).c_str(),
                              v.search.c_str(), v.seconds);
  static_cast<void>(!write(STDOUT_FILENO, line, static_cast<std::size_t>(n)));
}

// Judges a mutant with one effort, and prints the verdict if there is one.
[[nodiscard]] end judge(const mutant& m, const std::vector<named_search>& searches,
                        const effort& most) {
  const auto began = clock::now();
  const bool is_first = &most == &efforts.front();
  const bool is_last = &most == &efforts.back();
  verdict made;
  bool some_too_large = false;
  for (const named_search& each : searches) {
    if (!is_first && !each.is_repeated) continue;
    if (!search(m, each, most, made) && each.is_repeated) some_too_large = true;
    if (made.killed) break;
  }
  made.seconds = std::chrono::duration<double>(clock::now() - began).count();
  if (!made.killed && some_too_large && !is_last) return is_undecided;
  print(m.name, made);
  return is_decided;
}

struct judged {
  const mutant* what;
  std::string table;  // its path
};

// Waits for a child. Its mutant is judged again, if it is undecided.
void await_one(std::map<pid_t, judged>& running, std::vector<judged>& undecided) {
  int status = 0;
  const pid_t ended = wait(&status);
  const auto at = running.find(ended);
  if (at == running.end()) return;
  if (WIFSIGNALED(status))
    print(at->second.what->name,
          {.killed = true,
           .rule = WTERMSIG(status) == SIGVTALRM ? "does not end" : strsignal(WTERMSIG(status)),
           .search = "",
           .seconds = 0});
  else if (WEXITSTATUS(status) == is_undecided)
    undecided.push_back(at->second);
  running.erase(at);
}

// All with the first effort, and then what is left with the next one.
int judge_all(const std::string& tables, std::size_t jobs, const std::vector<std::string>& bounds) {
  std::vector<std::vector<mutant>> of_tables;
  std::vector<judged> left;
  for (const generated_table& table : generated_tables()) of_tables.push_back(table.make());
  for (std::size_t i = 0; i < of_tables.size(); ++i)
    for (const mutant& m : of_tables[i]) {
      if (!m.stale.empty())
        print(m.name, {.killed = false, .rule = m.stale, .search = "stale", .seconds = 0});
      else
        left.push_back({&m, tables + "/" + generated_tables()[i].name + ".mutants"});
    }
  for (const effort& most : efforts) {
    std::vector<judged> undecided;
    std::map<pid_t, judged> running;
    for (const judged& each : left) {
      while (running.size() >= jobs) await_one(running, undecided);
      const pid_t child = fork();
      if (child < 0) return std::perror("fork"), 3;
      if (child == 0) _exit(judge(*each.what, searches_for(*each.what, each.table, bounds), most));
      running[child] = each;
    }
    while (!running.empty()) await_one(running, undecided);
    left = std::move(undecided);
  }
  return 0;
}

}  // namespace
}  // namespace lockflight::mutants

int main(int argc, char** argv) {
  if (argc < 3) {
    std::cerr << "usage: mutants_judge TABLES_DIR JOBS [BOUND...]\n";
    return 2;
  }
  return lockflight::mutants::judge_all(argv[1], static_cast<std::size_t>(std::atoi(argv[2])),
                                        {argv + 3, argv + argc});
}
