// lockflight done: until when the work of a name is done, and how it has ended.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/visible_text.hpp"
#include "cli/commands.hpp"
#include "cli/domain_name.hpp"
#include "cli/named.hpp"
#include "cli/periods.hpp"
#include "cli/run_result.hpp"
#include "cli/standard_error.hpp"
#include "tool/usage.hpp"

namespace lockflight::cli {
namespace {

constexpr int is_not_done = 1;

void print_text(console& out, const std::string& name, wall_seconds until, bool is_done,
                const std::optional<run_result>& last) {
  if (is_done)
    out.line(fmt::format("{} is done until {}", in_quotes(name), utc_text(until)));
  else if (until != 0)
    out.line(fmt::format("{} was done until {}", in_quotes(name), utc_text(until)));
  else
    out.line(fmt::format("{} is not done", in_quotes(name)));
  if (last) out.line(text_of(*last));
}

/// Only a holder may change notes: so nobody forgets the note of a run that goes on.
void forget(named_handle& of, const std::string& name) {
  if (!of.acquire(mode::exclusive, limit::at_once()))
    throw tool::refuse("--forget", name, "a name that nobody holds at this moment");
  of.set_done_until(0);
  of.withdraw();
  of.release();
}

int run_done(const arguments& given, console& out) {
  const std::string name = given.one("NAME").value_or("");
  check_lock_name("NAME", name);
  const domain_name where = *domain_name_from(given);
  named_handle noted(where.attach(), name);
  if (given.has("--forget")) {
    forget(noted, name);
    return 0;
  }
  const wall_seconds until = noted.done_until();
  const bool is_done = until > seconds_of_wall_clock();
  const auto last = result_in(noted.published());
  if (given.has("--json")) {
    nlohmann::ordered_json all{
        {"name", name}, {"domain", where.name}, {"done", is_done}, {"until", until}};
    if (last) all["last"] = json_of(*last);
    out.line(json_text(std::move(all), 2));
  } else {
    print_text(out, name, until, is_done, last);
  }
  return is_done ? 0 : is_not_done;
}

}  // namespace

command done_command() {
  return {
      .description =
          {"Shows until when the work of NAME counts as done, as 'lockflight run --every' has noted "
           "it, and how its last COMMAND has ended: a run with --every or --follow keeps that.",
           "With --forget the work counts as not done, and its last result is forgotten, so that "
           "the next run works at once. While a run works it is refused.",
           "The JSON is {\"name\", \"domain\", \"done\", \"until\", \"last\": {\"code\", \"began\", "
           "\"ended\", \"host\", \"command\", \"token\"}}. The moments are seconds since 1970; "
           "\"until\" is 0 if the work was never done, and without a result there is no \"last\".",
           json_of_bytes},
      .options = with_domain_options(
          {{.name = "NAME", .what = "the lock; one that begins with '-' comes after '--'"},
           domain_argument("the domain of the lock, as --domain")},
          {{.name = "--forget", .what = "let the next run work, whatever was done"},
           {.name = "--json", .what = "print one JSON document"}}),
      .examples = {{"lockflight done report", "show whether the report of today is done"},
                   {"lockflight done report etcd:jobs --json | jq .last.code",
                    "print the exit code of the last report of a cluster"},
                   {"lockflight done report --forget", "let the report run again today"}},
      .exit_codes = {{0, "the work is done at present; with --forget: it is forgotten"},
                     {is_not_done, "it is not done"},
                     {2, "bad usage or input; one line on standard error says what is accepted"},
                     {3,
                      "the environment failed, such as an agent or an etcd that does not answer"}},
      .run = run_done,
  };
}

}  // namespace lockflight::cli
