// The steps of an agent before it begins.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <asio/post.hpp>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/ignored_signal.hpp"
#include "names/agent/process/process.hpp"
#include "names/agent/process/service_manager.hpp"
#include "names/cluster/client/agent_bell.hpp"

namespace lockflight::cluster {
namespace {

using std::chrono::milliseconds;

std::string host_name() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

double seconds(milliseconds of) { return static_cast<double>(of.count()) / 1'000; }

}  // namespace

std::shared_ptr<detail::domain_file> open_file_as_agent(const agent_options& options) {
  const std::string name = std::string(detail::cluster_prefix) + options.domain;
  auto file = detail::domain_file::open_as_agent(name, options.file);
  if (file->lock_as_agent()) return file;
  throw agent_error(
      fmt::format("domain {}: another agent runs on this host ({})", name, file->place().path));
}

agent_process::agent_process(const agent_options& options, const journal& log)
    : options_(options),
      log_(log),
      start_signals_(std::in_place),
      identity_file_(options.state_folder, options.domain),
      identity_(identity_file_.read()),
      file_(open_file_as_agent(options)),
      words_(file_) {
  clock_watch::require_moving();
  signals_.add(SIGTERM);
  signals_.add(SIGINT);
  if (!is_ignored(SIGHUP)) signals_.add(SIGHUP);
  start_store();
  await_etcd([this] {
    agree_on_ttl();
    secret_ = wait_for(io_, store_->secret());
  });
  check_endpoints();
  await_other_clock();
  words_.begin_with_own_clock(times_.ttl);
  core_.emplace(words_.self(), times_, words_);
  locks_.emplace(file_, [this](const std::string& name) {
    asio::post(io_, [this, name] { lock_taken(name); });
  });
  start_signals_.reset();
}

/// Repeats requests until etcd answers them: etcd may start after the agent, or be slow, or have a
/// new password that the password file does not have yet.
void agent_process::await_etcd(const std::function<void()>& what) {
  constexpr milliseconds first_pause{200}, longest_pause{5'000};
  std::string said;
  for (milliseconds pause = first_pause;; pause = std::min(2 * pause, longest_pause)) {
    try {
      what();
      break;
    } catch (const etcd_error& e) {
      if (!e.may_pass()) throw;
      if (e.what() != said) log_.warn("etcd", std::string("the agent waits for etcd: ") + e.what());
      said = e.what();
    }
    notify_service_manager(extends_start + ("\nSTATUS=waits for etcd: " + said));
    start_signals_->pause(pause);
  }
  if (!said.empty()) log_.info("etcd", "etcd answers, and the agent goes on");
}

/// (!) If the agent before this one read another clock, nothing here tells when the last deadline
/// that it gave is over, but for that it is at most a TTL away. No other host may have the names of
/// this one before. An agent that ends meanwhile has noted nothing, so the next one waits anew.
void agent_process::await_other_clock() {
  using clock = std::chrono::steady_clock;
  if (!words_.has_deadline_of_other_clock(times_.ttl)) return;
  const auto until = clock::now() + std::chrono::microseconds(times_.ttl);
  log_.warn("clock", fmt::format("the agent before this one read another clock, in another time "
                                 "namespace: this one waits for {} s, the time to live, so that no "
                                 "holder of this host is valid any more",
                                 static_cast<double>(times_.ttl) / 1e6));
  constexpr milliseconds step{1'000};
  for (auto now = clock::now(); now < until; now = clock::now()) {
    notify_service_manager(extends_start +
                           ("\nSTATUS=waits until deadlines of another clock are over"));
    start_signals_->pause(std::min(step, std::chrono::ceil<milliseconds>(until - now)));
  }
}

void agent_process::start_store() {
  place_.host = options_.host.empty() ? host_name() : options_.host;
  const std::string port = options_.listen.substr(options_.listen.rfind(':') + 1);
  place_.address = options_.advertise.empty() ? place_.host + ":" + port : options_.advertise;
  etcd_events events;
  events.answered = [this](std::uint64_t number, const answer& what,
                           const std::shared_ptr<const etcd_view>& view) {
    answered(number, what, view);
  };
  events.hint = [this] { handle([](agent& a, instant now, effects& out) { a.hint(now, out); }); };
  events.trouble = [this](const std::string& what) {
    etcd_trouble_ = what;
    log_.warn("etcd", what);
  };
  events.recovered = [this] {
    etcd_trouble_.clear();
    log_.info("etcd", "etcd answers again");
  };
  store_.emplace(io_, etcd_store_options{options_.etcd, options_.domain, words_.self(), place_},
                 std::move(events));
  etcd_status etcd;
  bool is_open = false;
  std::shared_ptr<const etcd_view> view;
  await_etcd([&] {
    etcd = wait_for(io_, store_->others().ping());
    is_open = !wait_for(io_, store_->others().has_authentication());
    view = wait_for(io_, store_->others().read_view());
  });
  if (is_open)
    log_.warn("open_etcd",
              "etcd asks for no user and password: whoever reaches it can take any lock",
              {{"endpoint", etcd.endpoint}});
  check_identity(*view);
}

/// The TTL that holders of this host rely on, or 0 if there are none.
milliseconds agent_process::ttl_of_holders() const {
  return milliseconds(words_.has_deadline_ahead() ? file_->cluster().time_to_live / 1'000 : 0);
}

/// (!) An operator may have removed the note of the TTL while holders rely on the one of before.
void agent_process::require_ttl_of_holders(milliseconds agreed) const {
  const milliseconds before = ttl_of_holders();
  if (before.count() == 0 || before == agreed) return;
  throw agent_error(
      fmt::format("--ttl '{}' (accepted: {}, as this host had it: its last deadline is not over)",
                  seconds(agreed), seconds(before)));
}

/// All agents of a domain have the same TTL, since a host relies on its deadline for its own TTL,
/// and is taken off after the TTL of another. The first agent of the domain decides.
void agent_process::agree_on_ttl() {
  const milliseconds given = options_.ttl;
  milliseconds agreed = ttl_of_holders().count() != 0 ? ttl_of_holders() : usual_ttl;
  if (given.count() != 0) agreed = given;
  require_ttl_of_holders(agreed);
  etcd_client& etcd = store_->others();
  if (!wait_for(io_, etcd.put_if(ttl_note, 0, std::to_string(agreed.count())))) {
    const auto noted = ttl_in(wait_for(io_, etcd.get(ttl_note)), options_.domain);
    // The note was there a moment ago.
    if (!noted) throw etcd_error(fate::unknown, "etcd has lost the note of the time to live");
    agreed = *noted;
    if (given.count() != 0 && agreed != given)
      throw agent_error(
          fmt::format("--ttl '{}' (accepted: {}, as the domain's other agents have, "
                      "or no --ttl)",
                      seconds(given), seconds(agreed)));
  }
  require_ttl_of_holders(agreed);
  times_.ttl = std::chrono::microseconds(agreed).count();
  times_.margin = times_.ttl / 20;
  times_.stagger = times_.ttl / 100;
  times_.longest_absence = 16 * times_.ttl;
  times_.keep = std::chrono::microseconds(options_.keep).count();
  file_->cluster().time_to_live = times_.ttl;
  note_ttl(agreed);
  store_->limit_to(milliseconds(times_.patience() / 1'000));
}

void agent_process::start_links() {
  link_settings made;
  made.self = words_.self();
  made.agent = words_.last_agent();
  made.domain = options_.domain;
  made.address = options_.listen;
  made.key = secret_;
  made.options.keep_alive = milliseconds(times_.ttl / 8 / 1'000);
  link_callbacks calls;
  calls.received = [this](const message& what) {
    ++counts_.messages_received;
    handle([&](agent& a, instant now, effects& out) { a.receive(now, what, out); });
  };
  calls.heard = [this](member_id from) {
    handle([&](agent& a, instant now, effects& out) { a.heard(now, from, out); });
  };
  calls.asked = [this](member_id, const std::string& what) { return answers_->asked(what); };
  calls.told = [this](member_id by, std::uint64_t number, const std::string& what) {
    answers_->told(by, number, what);
  };
  calls.trouble = [this](member_id about, const std::string& what) {
    journal::fields who;
    if (about != 0) who["member"] = text_of(about);  // else it is a stranger
    log_.warn("link", what, who);
  };
  links_.emplace(io_, std::move(made), std::move(calls));
}

void agent_process::start_answers() {
  reports_.emplace(report_sources{options_.domain, place_.host, options_.metrics_file, *file_,
                                  *core_, times_, words_, members_, *links_, etcd_trouble_, counts_,
                                  log_});
  const auto end_doubt = [this] {
    handle([](agent& a, instant now, effects& out) { a.end_doubt(now, out); });
  };
  const auto is_cut_off = [this] { return !etcd_trouble_.empty() || !words_.has_deadline_ahead(); };
  notes_.emplace(io_, note_sources{*file_, words_, members_, store_->others(), options_.etcd,
                                   options_.domain, log_});
  answers_.emplace(io_, answer_sources{*file_, place_.host, members_, *links_, *notes_, log_,
                                       [this] { return json_text_of(reports_->status()); },
                                       end_doubt, is_cut_off});
}

void agent_process::start_bell() {
  bell_.assign(detail::make_bell(*file_).release());
  await_rings();
}

/// Endpoints of etcds that were set up apart may have equal cluster ids, but they have no equal
/// secrets. An endpoint that does not answer now is compared when the agent turns to it.
void agent_process::check_endpoints() {
  for (const std::string& each : options_.etcd.endpoints) {
    etcd_options one = options_.etcd;
    one.endpoints = {each};
    etcd_client client(io_, one, options_.domain);
    client.require(text_of(secret_));
    try {
      static_cast<void>(wait_for(io_, client.get(ttl_note)));
    } catch (const another_etcd& e) {
      throw agent_error(fmt::format("--etcd: its endpoints are not one etcd: {}", e.what()));
    } catch (const etcd_error&) {
      continue;
    }
  }
}

/// An etcd that was restored from a copy, or set up anew, does not know which members trust their
/// deadlines.
void agent_process::check_identity(const etcd_view& view) {
  if (view.keys.cluster && !view.keys.epoch)
    throw agent_error(
        "etcd: the domain has a cluster's number and no epoch: somebody has deleted the epoch. End "
        "the agents of all hosts, and say 'lockflight agent recover' on one of them that was a "
        "member");
  store_identity now = identity_of(view);
  if (identity_) {
    if (const auto why = identity_->refuses(now))
      throw agent_error(
          fmt::format("etcd: {}. It is not the etcd of before, or it was restored or set up anew: "
                      "in that case, end the agents of all hosts, and say 'lockflight agent "
                      "recover' on one of them (this host's note of the etcd before is {})",
                      *why, identity_file_.path()));
    now.ttl = identity_->ttl;
    now.was_member = identity_->was_member;
  }
  if (view.keys.epoch && view.keys.epoch->what.find(words_.self()) != nullptr)
    now.was_member = true;
  if (now.domain.id == 0 && identity_) now.domain = identity_->domain;  // the key is lost
  const bool is_news = !was_checked_ || !is_noted_ || now.epoch != identity_->epoch ||
                       now.domain != identity_->domain || now.was_member != identity_->was_member;
  const bool is_first_ever = !identity_;
  was_checked_ = true;
  identity_ = now;
  if (is_news) note_identity(is_first_ever);
}

/// A recovery waits for the TTL that this host has relied on, whatever its etcd says then.
void agent_process::note_ttl(milliseconds agreed) {
  if (std::exchange(identity_->ttl, agreed) != agreed) note_identity(false);
}

/// Without a note the agent does not begin. An older note still names the cluster, so a host whose
/// disk is full keeps its locks: the agent goes on, and tries again with each answer of etcd.
void agent_process::note_identity(bool is_needed) {
  is_noted_ = identity_file_.write(*identity_);
  if (is_noted_) {
    if (has_warned_of_note_) log_.info("note", identity_file_.path() + ": can be written again");
    has_warned_of_note_ = false;
    return;
  }
  const std::string why =
      fmt::format("{}: cannot be written: {}", identity_file_.path(), std::strerror(errno));
  if (is_needed) throw agent_error(why);
  if (!has_warned_of_note_) log_.warn("note", why);
  has_warned_of_note_ = true;
}

}  // namespace lockflight::cluster
