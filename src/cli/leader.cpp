// lockflight leader: who leads an election, and each change of that.
#include "lockflight/election.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/clock.hpp"
#include "base/visible_text.hpp"
#include "cli/commands.hpp"
#include "cli/domain_name.hpp"
#include "cli/guarded.hpp"
#include "cli/named.hpp"
#include "cli/standard_error.hpp"
#include "tool/values.hpp"

namespace lockflight::cli {
namespace {

constexpr int nobody_leads = 1;

/// Prints leaders, each as soon as it leads.
class leader_printer {
 public:
  leader_printer(console& out, std::string name, std::string domain, bool as_json)
      : out_(out), name_(std::move(name)), domain_(std::move(domain)), as_json_(as_json) {}

  void print(const leader& now, int indent) {
    if (as_json_) {
      nlohmann::ordered_json all{{"name", name_}, {"domain", domain_}, {"leads", bool{now}}};
      if (now) all.update({{"value", now.value}, {"term", now.term}});
      out_.line(json_text(std::move(all), indent));
    } else {
      out_.line(now ? visible(now.value) : fmt::format("nobody leads {}", in_quotes(name_)));
    }
    out_.finish();
  }

 private:
  console& out_;
  std::string name_, domain_;
  bool as_json_;
};

/// Prints the leader of now, if there is one, and each later one, until the time is over.
void watch(election& of, leader_printer& printer, limit patience) {
  constexpr int in_one_line = -1;
  const std::uint64_t until_ns =
      patience.is_for_ever() ? UINT64_MAX : now_ns() + patience.nanoseconds();
  leader last = of.leader_now();
  printer.print(last, in_one_line);
  for (std::uint64_t now = now_ns(); now < until_ns; now = now_ns()) {
    const leader next =
        of.await_change(last, patience.is_for_ever() ? patience : limit::of_ns(until_ns - now));
    if (next == last) continue;
    printer.print(next, in_one_line);
    last = next;
  }
}

int run_leader(const arguments& given, console& out) {
  speak_as("leader");
  const std::string name = given.one("NAME").value_or("");
  check_lock_name("NAME", name);
  const domain_name where = *domain_name_from(given);
  std::optional<limit> patience;
  if (const auto text = given.one("--timeout"))
    patience = limit::of_ns(
        static_cast<std::uint64_t>(seconds_number("--timeout", *text, 0, most_wait_s) * 1e9));
  election observed(where.open(), name);
  leader_printer printer(out, name, where.name, given.has("--json"));
  if (given.has("--watch")) {
    watch(observed, printer, patience.value_or(limit::for_ever()));
    return 0;
  }
  leader now = observed.leader_now();
  if (!now && patience) now = observed.await_change(now, *patience);
  constexpr int indent = 2;
  if (now || given.has("--json"))
    printer.print(now, indent);
  else
    say(fmt::format("nobody leads {}", in_quotes(name)));
  return now ? 0 : nobody_leads;
}

}  // namespace

command leader_command() {
  return {
      .description =
          {"Prints the value of the leader of NAME, such as its address. A leader is a holder of "
           "the lock NAME that has published a value: 'lockflight run --leader --value VALUE', or "
           "an election of the C++, C or Python interface. This command is no candidate, takes no "
           "lock and delays nobody.",
           "With --watch it prints the leader, and then a line for each change, at once when it "
           "comes; 'nobody leads NAME' if there is none. Leaders that follow each other quickly may "
           "be one change. A leader that has died is no leader any more after about a second, in a "
           "cluster when its host is taken off, or when the next one leads.",
           "The JSON is {\"name\", \"domain\", \"leads\"} and, if somebody leads, \"value\" and "
           "\"term\", which is the leader's fencing token; with --watch one such document in each "
           "line.",
           json_of_bytes},
      .options = with_domain_options(
          {{.name = "NAME", .what = "the election; one that begins with '-' comes after '--'"},
           domain_argument("the domain of the election, as --domain")},
          {{.name = "--watch", .what = "print each change, until this is ended by a signal"},
           {.name = "--timeout",
            .value = "S",
            .what = "wait for a leader, for S seconds at most; with --watch: end after S seconds"},
           {.name = "--json", .what = "print JSON"}}),
      .examples = {{"lockflight leader scheduler etcd:jobs", "print the scheduler's address"},
                   {"curl \"http://$(lockflight leader scheduler etcd:jobs --timeout 30)/health\"",
                    "wait for a scheduler, and ask it"},
                   {"lockflight leader scheduler etcd:jobs --watch --json | ./reload-proxy",
                    "tell a program of each change"}},
      .exit_codes = {{0, "somebody leads; with --watch: the time is over"},
                     {nobody_leads, "nobody leads, or nobody did in time"},
                     {2, "bad usage or input; one line on standard error says what is accepted"},
                     {3,
                      "the environment failed, such as an agent or an etcd that does not answer"}},
      .run = run_leader,
  };
}

}  // namespace lockflight::cli
