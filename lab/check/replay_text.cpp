#include "lab/check/replay_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/number.hpp"

namespace lockflight::check {
namespace {

[[nodiscard]] std::string text_of(const std::vector<step>& schedule) {
  std::string text;
  for (const step s : schedule) {
    switch (s.what) {
      case step::kind::run:
        text += static_cast<char>('a' + s.fiber);
        break;
      case step::kind::expire:
        text += static_cast<char>('q' + s.fiber);
        break;
      case step::kind::death:
        text += static_cast<char>('Q' + s.fiber);
        break;
      case step::kind::stop:
        text += static_cast<char>('I' + s.fiber);
        break;
      case step::kind::lapse:
        text += static_cast<char>('i' + s.fiber);
        break;
      case step::kind::drain:
        text += static_cast<char>('0' + s.fiber);
        break;
      case step::kind::effect:
        text += static_cast<char>('A' + s.fiber);
        text += static_cast<char>('a' + s.index);
        break;
    }
    // Two letters for the two halves of a choice.
    if (s.choice != 0) {
      text += '+';
      text += static_cast<char>('a' + s.choice % 16);
      text += static_cast<char>('a' + s.choice / 16);
    }
  }
  return text;
}

[[noreturn]] void refuse(const std::string& part) {
  throw bad_request("--replay: cannot read '" + part +
                    "' (accepted: the line that `lockflight check` prints after 'replay')");
}

[[nodiscard]] bool is_half(char c) { return c >= 'a' && c < 'a' + 16; }

// Effects are a pair of letters: the participant in upper case, the operation in lower case. A
// choice is a plus sign and two letters behind its step.
[[nodiscard]] std::vector<step> schedule_of(const std::string& text) {
  std::vector<step> schedule;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c >= 'a' && c < 'a' + most_fibers) {
      schedule.push_back({step::kind::run, static_cast<std::uint8_t>(c - 'a'), 0});
    } else if (c >= 'q' && c < 'q' + most_fibers) {
      schedule.push_back({step::kind::expire, static_cast<std::uint8_t>(c - 'q'), 0});
    } else if (c >= 'Q' && c < 'Q' + most_fibers) {
      schedule.push_back({step::kind::death, static_cast<std::uint8_t>(c - 'Q'), 0});
    } else if (c >= 'I' && c < 'I' + most_fibers) {
      schedule.push_back({step::kind::stop, static_cast<std::uint8_t>(c - 'I'), 0});
    } else if (c >= 'i' && c < 'i' + most_fibers) {
      schedule.push_back({step::kind::lapse, static_cast<std::uint8_t>(c - 'i'), 0});
    } else if (c >= '0' && c < '0' + most_fibers) {
      schedule.push_back({step::kind::drain, static_cast<std::uint8_t>(c - '0'), 0});
    } else if (c >= 'A' && c < 'A' + most_fibers && i + 1 < text.size() && text[i + 1] >= 'a' &&
               text[i + 1] < 'a' + most_posted) {
      schedule.push_back({step::kind::effect, static_cast<std::uint8_t>(c - 'A'),
                          static_cast<std::uint8_t>(text[++i] - 'a')});
    } else if (c == '+' && !schedule.empty() && i + 2 < text.size() && is_half(text[i + 1]) &&
               is_half(text[i + 2])) {
      schedule.back().choice =
          static_cast<std::uint8_t>(text[i + 1] - 'a' + 16 * (text[i + 2] - 'a'));
      i += 2;
    } else {
      refuse(text.substr(i, 8));
    }
  }
  return schedule;
}

[[nodiscard]] std::int64_t number_in(const std::string& text) {
  const auto value = read_number<std::int64_t>(text);
  if (!value) refuse(text);
  return *value;
}

[[nodiscard]] int small_number_in(const std::string& text) {
  const std::int64_t value = number_in(text);
  if (value < 0 || value > 1'000'000) refuse(text);
  return static_cast<int>(value);
}

[[nodiscard]] std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  for (std::size_t from = 0; from <= text.size();) {
    const std::size_t end = std::min(text.find(at, from), text.size());
    parts.push_back(text.substr(from, end - from));
    from = end + 1;
  }
  return parts;
}

/// "T_R:2,T_DC:1"; empty is no setting.
[[nodiscard]] settings settings_in(const std::string& text) {
  settings set;
  if (text.empty()) return set;
  for (const std::string& one : split(text, ',')) {
    const auto read = catalogue::parse_assignment(one, ':');
    if (!read) refuse(one);
    set.insert(*read);
  }
  return set;
}

}  // namespace

std::string to_replay_text(const report& of) {
  const request& r = of.asked;
  std::vector<std::string> set;
  for (const auto& [name, value] : r.set) set.push_back(fmt::format("{}:{}", name, value));
  std::string switches;
  if (!r.how.delayed_effects) switches += 'e';
  if (!r.how.store_buffering) switches += 's';
  if (!r.how.reordering) switches += 'o';
  if (!r.how.report_mixed) switches += 'm';
  const std::string endless =
      r.starvation == watched::nobody
          ? ""
          : fmt::format("starvation={};repeats={};", name_of(r.starvation), of.found.repeats);
  std::string parts;
  if (r.how.memory == memory_kind::views) parts += "memory=views;";
  if (r.how.deaths > 0) parts += fmt::format("deaths={};", r.how.deaths);
  if (r.how.stops > 0) parts += fmt::format("stops={};", r.how.stops);
  if (r.how.most_overtaken) parts += fmt::format("most_overtaken={};", *r.how.most_overtaken);
  for (const part_row& row : part_rows)
    if (r.*row.count > 0) parts += fmt::format("{}={};", row.key, r.*row.count);
  return fmt::format(
      "lock={};{}rounds={};levels={};node_level={};retries={};off={};set={};{}steps={}", r.lock,
      parts,
      r.rounds_of.empty() ? std::to_string(r.rounds)
                          : fmt::format("{}", fmt::join(r.rounds_of, ",")),
      of.levels, r.node_level, r.how.retries, switches, fmt::join(set, ","), endless,
      text_of(of.found.schedule));
}

replayed from_replay_text(const std::string& text) {
  // The refused text is quoted in the error, so it must be one line.
  const auto odd =
      std::find_if(text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; });
  if (odd != text.end()) refuse(text.substr(0, static_cast<std::size_t>(odd - text.begin())) + "…");
  request r;
  std::map<std::string, std::string> parts;
  for (const std::string& one : split(text, ';')) {
    const std::size_t equals = one.find('=');
    if (equals == std::string::npos) refuse(one);
    parts[one.substr(0, equals)] = one.substr(equals + 1);
  }
  const auto part = [&](const char* name) -> const std::string& {
    const auto found = parts.find(name);
    if (found == parts.end()) refuse("no " + std::string(name) + "= in it");
    return found->second;
  };
  r.lock = part("lock");
  if (parts.contains("memory")) {
    if (parts["memory"] != "views") refuse("memory=" + parts["memory"]);
    r.how.memory = memory_kind::views;
  }
  if (parts.contains("deaths")) r.how.deaths = small_number_in(parts["deaths"]);
  if (parts.contains("stops")) r.how.stops = small_number_in(parts["stops"]);
  if (parts.contains("most_overtaken"))
    r.how.most_overtaken = small_number_in(parts["most_overtaken"]);
  for (const part_row& row : part_rows)
    r.*row.count = parts.contains(row.key) ? small_number_in(parts[row.key]) : 0;
  for (const std::string& one : split(part("rounds"), ','))
    r.rounds_of.push_back(small_number_in(one));
  r.rounds = std::max(1, *std::max_element(r.rounds_of.begin(), r.rounds_of.end()));
  if (r.rounds_of.size() == 1 && r.rounds_of.front() > 0) r.rounds_of.clear();
  r.levels = part("levels");
  r.node_level = small_number_in(part("node_level"));
  r.how.retries = small_number_in(part("retries"));
  for (const char c : part("off")) {
    if (c == 'e')
      r.how.delayed_effects = false;
    else if (c == 's')
      r.how.store_buffering = false;
    else if (c == 'o')
      r.how.reordering = false;
    else if (c == 'm')
      r.how.report_mixed = false;
    else
      refuse(part("off"));
  }
  r.set = settings_in(part("set"));
  std::size_t repeats = 0;
  if (parts.contains("starvation")) {
    r.starvation = watched_named(part("starvation"));
    repeats = static_cast<std::size_t>(small_number_in(part("repeats")));
  }
  return {r, schedule_of(part("steps")), repeats};
}

}  // namespace lockflight::check
