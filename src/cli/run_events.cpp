#include "cli/run_events.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "base/clock.hpp"
#include "base/number.hpp"
#include "cli/named.hpp"
#include "cli/standard_error.hpp"
#include "tool/usage.hpp"

namespace lockflight::cli {
namespace {

using nlohmann::ordered_json;

ordered_json json_of(const obstacle& what) {
  ordered_json fields{{"name", what.name}};
  add_users(what.users, fields);
  if (!what.silent.empty()) fields["silent"] = what.silent;
  if (!what.missing_answer.empty()) fields["missing_answer"] = what.missing_answer;
  return fields;
}

}  // namespace

run_events::run_events(int to, const std::vector<std::string>& names)
    : to_(to), names_(names), began_ns_(now_ns()) {}

void run_events::write(const char* event, ordered_json fields) {
  ordered_json line{
      {"event", event}, {"seconds", json_seconds(now_ns() - began_ns_)}, {"names", names_}};
  line.update(fields);
  constexpr std::chrono::milliseconds for_a_reader{100};
  constexpr int in_one_line = -1;
  if (!write_within(to_, json_text(std::move(line), in_one_line) + "\n", for_a_reader)) to_ = -1;
}

void run_events::waits(const domain& in, named_handle& held,
                       std::chrono::milliseconds hosts_answer_within) {
  constexpr std::uint64_t second = 1'000'000'000;
  if (!is_wanted() || has_said_that_it_waits_ || now_ns() - began_ns_ < second) return;
  if (hosts_answer_within.count() <= 0) return;
  has_said_that_it_waits_ = true;
  write("waits", json_of(obstacle_of(in, held, hosts_answer_within)));
}

void run_events::has_lock(const named_handle& held) {
  if (!is_wanted()) return;
  const bool is_alone = held.held() == mode::exclusive;
  ordered_json fields{{"tokens", is_alone ? held.tokens() : std::vector<std::uint64_t>{}},
                      {"owner_died", held.owner_died()}};
  if (held.unit() >= 0) {
    fields["unit"] = held.unit();
    fields["units_held"] = held.units_held();
  }
  write("acquired", std::move(fields));
}

void run_events::was_not_free(const obstacle& what) {
  if (is_wanted()) write("not_free", json_of(what));
}

void run_events::is_done_until(wall_seconds moment) {
  if (is_wanted()) write("done", {{"until", moment}});
}

void run_events::follows(const run_result& of) {
  if (is_wanted()) write("follows", json_of(of));
}

void run_events::command_runs_again(std::chrono::nanoseconds after) {
  if (is_wanted())
    write("retry", {{"after", json_seconds(static_cast<std::uint64_t>(after.count()))}});
}

void run_events::was_interrupted(int signal_number) {
  if (is_wanted()) write("interrupted", {{"signal", signal_number}});
}

void run_events::command_has_ended(const ending& its) {
  if (is_wanted()) write("ended", {{"code", its.code}, {"ran", its.ran}});
}

void run_events::ends_soon(std::chrono::nanoseconds in) {
  if (is_wanted()) write("ends_soon", {{"ends_in", json_seconds(nanoseconds_of(in))}});
}

void run_events::has_lost_lock(const char* why) {
  if (is_wanted()) write("lost", {{"why", why}});
}

void run_events::has_released() {
  if (is_wanted()) write("released");
}

int events_descriptor(const std::string& argument, const std::string& text) {
  const auto refused = [&] {
    return tool::refuse(argument, text,
                        "the number of a descriptor that is open for writing, from 3 on, such as 3 "
                        "with '3>events' behind it in the shell");
  };
  const auto number = read_number<int>(text);
  if (!number || *number <= STDERR_FILENO) throw refused();
  const int flags = fcntl(*number, F_GETFL);
  if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY || (flags & O_PATH) != 0) throw refused();
  fcntl(*number, F_SETFD, FD_CLOEXEC);
  return *number;
}

}  // namespace lockflight::cli
