// lockflight top: the holders and the waiters of a domain, again and again.
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <map>
#include <optional>
#include <system_error>

#include "base/replaced_file.hpp"
#include "base/visible_text.hpp"
#include "cli/commands.hpp"
#include "cli/domain_name.hpp"
#include "cli/lock_metrics.hpp"
#include "cli/named.hpp"
#include "tool/table.hpp"
#include "tool/text.hpp"
#include "tool/usage.hpp"
#include "tool/values.hpp"

namespace lockflight::cli {
namespace {

using nlohmann::ordered_json;

volatile sig_atomic_t interrupted_by = 0;

void note_interruption(int signal_number) { interrupted_by = signal_number; }

/// While this object exists, keys are read as they are typed, and signals end the display in order:
/// the terminal is left as it was.
class live_terminal {
 public:
  live_terminal() : keys_(isatty(STDIN_FILENO) != 0 && tcgetattr(STDIN_FILENO, &before_) == 0) {
    struct sigaction action {};
    action.sa_handler = note_interruption;
    sigemptyset(&action.sa_mask);
    for (const int each : {SIGINT, SIGTERM, SIGHUP}) sigaction(each, &action, nullptr);
    if (keys_) {
      termios raw = before_;
      raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
      tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
    }
    std::fputs("\033[?1049h\033[?25l", stdout);
  }
  ~live_terminal() {
    std::fputs("\033[?25h\033[?1049l", stdout);
    std::fflush(stdout);
    if (keys_) tcsetattr(STDIN_FILENO, TCSADRAIN, &before_);
  }
  live_terminal(const live_terminal&) = delete;
  live_terminal& operator=(const live_terminal&) = delete;

  /// True if the user wants to end.
  [[nodiscard]] bool wait(std::chrono::milliseconds time) const {
    pollfd keys{.fd = keys_ ? STDIN_FILENO : -1, .events = POLLIN, .revents = 0};
    if (interrupted_by != 0) return true;
    if (poll(&keys, 1, static_cast<int>(time.count())) <= 0) return interrupted_by != 0;
    char key = 0;
    return read(STDIN_FILENO, &key, 1) <= 0 || key == 'q' || key == 'Q';
  }

  [[nodiscard]] static int rows() {
    winsize size{};
    constexpr int usual = 24;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 ? size.ws_row : usual;
  }

 private:
  termios before_{};  // ahead of keys_, whose initializer fills it
  bool keys_;
};

/// A reading of a domain.
struct reading {
  std::string domain;
  std::size_t participants = 0;
  int slots = 0;
  std::vector<domain_lock> in_use;  ///< the longest wait first
  std::vector<lock_circle> circles;
  std::vector<std::string> silent;  ///< hosts that did not answer
  std::size_t locks = 0;
  std::uint64_t repairs = 0;
  double longest_wait_seen_s = 0;
};

class watcher {
 public:
  explicit watcher(domain_name named) : named_(std::move(named)), in_(named_.attach()) {}

  reading read() {
    follow();
    reading now;
    now.domain = in_.name();
    now.participants = in_.participants().size();
    now.slots = in_.options().slots;
    std::vector<domain_lock> all = in_.locks_on_all_hosts(&now.silent);
    now.circles = in_.circles(all);
    for (domain_lock& lock : all) {
      ++now.locks;
      now.repairs += lock.repairs;
      longest_s_ = std::max(longest_s_, longest_wait_s(lock));
      if (!lock.users.empty()) now.in_use.push_back(std::move(lock));
    }
    std::ranges::stable_sort(now.in_use, std::greater<>{}, longest_wait_s);
    now.longest_wait_seen_s = longest_s_;
    return now;
  }

  std::string read_metrics() {
    follow();
    return lock_metrics(in_, in_.locks());
  }

 private:
  /// The domain may have been removed and made anew.
  void follow() {
    if (in_.still_valid()) return;
    try {
      in_ = named_.attach();
    } catch (const domain_error& e) {
      if (e.why != domain_error::reason::missing) throw;
    }
  }

  domain_name named_;
  domain in_;
  double longest_s_ = 0;
};

std::string headline(const reading& now) {
  return fmt::format(
      "{}: {} of {} slots taken, {} of {} locks in use, {} repairs after deaths or stops, longest "
      "wait seen {}",
      now.domain, now.participants, now.slots, now.in_use.size(), now.locks, now.repairs,
      duration(now.longest_wait_seen_s));
}

void print_head(console& out, const reading& now) {
  const std::string silence = silence_text(now.silent);
  if (!silence.empty()) out.line(out.paint(style::bad, silence + ": more locks may be in use"));
  out.line(out.paint(style::heading, headline(now)));
}

std::string who_holds(const domain_lock& lock) {
  const auto holders = holders_of(lock.users);
  if (holders.empty()) return "";
  const lock_user& first = holders.front();
  std::string text = fmt::format("{} {}", first.pid, command_of(first));
  if (const auto word = state_text(first); !word.empty()) text += fmt::format(", {}", word);
  if (holders.size() > 1) text += fmt::format(" and {} more", holders.size() - 1);
  return text;
}

/// "backup", or of a semaphore "gpu (2 of 3)".
std::string name_with_units(const domain_lock& lock) {
  const std::string name = visible(lock.name);
  if (lock.units == 0) return name;
  return fmt::format("{} ({} of {})", name, count_of_held(lock), lock.units);
}

bool is_bad(const domain_lock& lock) {
  const auto holders = holders_of(lock.users);
  return lock.owner_died || (!holders.empty() && (holders.front().dead || holders.front().stopped));
}

void print_table(console& out, const reading& now, std::size_t most_rows) {
  table shown({{.title = "lock", .numeric = false, .most = widest_name},
               {.title = "waiters"},
               {.title = "longest wait"},
               {.title = "held for"},
               {.title = "token", .importance = 1},
               {.title = "repairs", .importance = 2},
               {.title = "holder", .numeric = false, .importance = 3}});
  for (std::size_t i = 0; i < std::min(most_rows, now.in_use.size()); ++i) {
    const domain_lock& lock = now.in_use[i];
    const auto holders = holders_of(lock.users);
    const auto waiters = waiters_of(lock.users);
    shown.add_row({{name_with_units(lock)},
                   {std::to_string(waiters.size())},
                   {waiters.empty() ? "" : duration(longest_wait_s(lock))},
                   {holders.empty() ? "" : duration(seconds_of(holders.front()))},
                   {std::to_string(lock.token)},
                   {std::to_string(lock.repairs)},
                   {who_holds(lock), is_bad(lock) ? style::bad : style::plain}});
  }
  shown.print(out);
}

void print_circles(console& out, const reading& now) {
  for (const lock_circle& each : now.circles)
    out.line(out.paint(style::bad, "They wait in a circle: " + circle_text(each)));
}

std::string in_brackets(std::string_view word) {
  return word.empty() ? "" : fmt::format(" ({})", word);
}

/// For a file or a pipe: all that there is to a lock in one line.
void print_lines(console& out, const reading& now) {
  print_head(out, now);
  for (const domain_lock& lock : now.in_use)
    for (const lock_user& user : lock.users)
      out.line(fmt::format("{}: {} {}{} for {}, {}", visible(lock.name), user.pid,
                           cli::word_of(user), in_brackets(state_text(user)),
                           duration(seconds_of(user)), command_of(user)));
  print_circles(out, now);
}

double rounded_to_ms(double seconds) {
  return static_cast<double>(static_cast<std::int64_t>(seconds * 1e3 + 0.5)) / 1e3;
}

ordered_json json_of(const reading& now) {
  ordered_json locks = ordered_json::array();
  for (const domain_lock& each : now.in_use) locks.push_back(cli::json_of(each));
  ordered_json made{
      {"domain", now.domain},   {"participants", now.participants},
      {"slots", now.slots},     {"locks_made", now.locks},
      {"repairs", now.repairs}, {"longest_wait_seen_s", rounded_to_ms(now.longest_wait_seen_s)},
      {"locks", locks}};
  if (!now.silent.empty()) made["silent"] = now.silent;
  for (const lock_circle& each : now.circles) made["circles"].push_back(cli::json_of(each));
  return made;
}

/// On a terminal: `turns` screens, one a second, or until the user ends it.
void show_screens(console& out, watcher& domain, std::optional<std::uint64_t> turns) {
  const live_terminal terminal;
  constexpr int rows_around = 6;  // silent hosts, headline, gap, titles, gap, keys
  for (std::uint64_t turn = 0; !turns || turn < *turns; ++turn) {
    out.print("\033[H\033[J");
    const reading now = domain.read();
    print_head(out, now);
    out.line();
    print_table(out, now,
                static_cast<std::size_t>(std::max(
                    1, terminal.rows() - rows_around - static_cast<int>(now.circles.size()))));
    print_circles(out, now);
    out.line();
    out.print(out.paint(style::faint, "q ends"));
    out.finish();
    if (terminal.wait(std::chrono::seconds(1))) return;
  }
}

void print_turns(console& out, watcher& domain, std::optional<std::uint64_t> turns, bool json) {
  for (std::uint64_t turn = 0; !turns || turn < *turns; ++turn) {
    if (turn > 0) usleep(1'000'000);
    const reading now = domain.read();
    if (json)
      out.line(json_text(json_of(now), -1));
    else
      print_lines(out, now);
    out.finish();
  }
}

// ---- metrics ----

constexpr const char* standard_output = "-";

void check_metrics_file(const std::string& path) {
  if (!may_be_replaced(path))
    throw refuse("--prometheus", path, "a regular file, or - for standard output");
}

/// Writes the whole file once a second, `turns` times, or until the user ends it.
void write_metrics(watcher& domain, const std::string& path, std::optional<std::uint64_t> turns) {
  constexpr mode_t for_all = 0644;  // the collector is another user; the umask may take it away
  check_metrics_file(path);
  for (std::uint64_t turn = 0; !turns || turn < *turns; ++turn) {
    if (turn > 0) usleep(1'000'000);
    if (!replace_file(path, domain.read_metrics(), for_all))
      throw std::system_error(errno, std::generic_category(),
                              fmt::format("--prometheus {}", shown(path)));
  }
}

int run_metrics(const arguments& given, console& out, watcher& domain,
                std::optional<std::uint64_t> turns) {
  const std::string path = *given.one("--prometheus");
  if (path != standard_output) return write_metrics(domain, path, turns), 0;
  out.print(domain.read_metrics());
  out.finish();
  return 0;
}

void check_metrics_options(const arguments& given) {
  const auto path = given.one("--prometheus");
  if (!path) return;
  if (given.has("--json")) throw refuse("--prometheus", *path, "without --json");
  if (path == standard_output && given.has("--seconds"))
    throw refuse("--seconds", *given.one("--seconds"),
                 "no time beside --prometheus -, which prints once");
}

int run_top(const arguments& given, console& out) {
  constexpr double most_seconds = 1e6;
  std::optional<std::uint64_t> turns;
  if (const auto text = given.one("--seconds")) {
    if (given.has("--once")) throw refuse("--seconds", *text, "--seconds or --once, not both");
    turns = static_cast<std::uint64_t>(
        std::ceil(seconds_number("--seconds", *text, 0.001, most_seconds)));
  }
  if (given.has("--once")) turns = 1;
  check_metrics_options(given);
  watcher domain(*domain_name_from(given));
  if (given.has("--prometheus")) return run_metrics(given, out, domain, turns);
  const bool screens = out.width() > 0 && !given.has("--json") && !given.has("--once");
  if (screens)
    show_screens(out, domain, turns);
  else
    print_turns(out, domain, turns, given.has("--json"));
  return 0;
}

}  // namespace

command top_command() {
  return {
      .description =
          {"Shows once a second the locks in use: who holds them and since when, how many wait, "
           "the longest wait, and how often locks were repaired after deaths or stops. The key q "
           "or Ctrl-C ends it. If standard output is no terminal, it prints a line for each holder "
           "and waiter.",
           "It reads the domain's memory and stops nobody. It does not see a wait that begins and "
           "ends between two readings.",
           "The JSON has one line for each reading: {\"domain\", \"participants\", \"slots\", "
           "\"locks_made\", \"repairs\", \"longest_wait_seen_s\", \"locks\": [LOCK...]}. A LOCK "
           "is that of 'lockflight who --json', and so is \"silent\"; only locks in use are there.",
           json_of_bytes,
           fmt::format(
               "With --prometheus it writes metrics of the domain and its locks to FILE once a "
               "second: how many hold and wait and for how long, exclusive acquires, repairs after "
               "deaths. A reader sees a whole file at any time. FILE has the {} locks at most that "
               "are in use, or were acquired most often. In a cluster's domain the metrics are "
               "those of this host. In a label, control characters of a name are \\xHH as well.",
               most_locks_with_metrics)},
      .options = with_domain_options(
          {domain_argument(fmt::format("the domain, as --domain (default: {})", default_domain))},
          {{.name = "--once", .what = "read once, print, and end"},
           {.name = "--seconds", .value = "N", .what = "end after N seconds"},
           {.name = "--json", .what = "print JSON, one line for each reading"},
           {.name = "--prometheus",
            .value = "FILE",
            .what = "write metrics to FILE, for Prometheus' collector of text files; -: print "
                    "them once",
            .completes = option::offer::files}}),
      .examples = {{"lockflight top", "watch the default domain, until the key q"},
                   {"lockflight top work --mode 0660",
                    "watch the group's domain, if you have one of that name, too"},
                   {"lockflight top --once --json | jq '.locks[] | select(.waiters != [])'",
                    "print the locks that somebody waits for"},
                   {"lockflight top --prometheus "
                    "/var/lib/prometheus/node-exporter/lockflight.prom",
                    "keep the metrics of the default domain there, for node_exporter"}},
      .run = run_top,
  };
}

}  // namespace lockflight::cli
