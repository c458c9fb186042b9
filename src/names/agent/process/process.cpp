#include "names/agent/process/process.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>

#include "names/agent/process/service_manager.hpp"
#include "names/cluster/client/agent_bell.hpp"
#include "names/cluster/client/elsewhere.hpp"
#include "names/locks/semaphore_kind.hpp"

namespace lockflight::cluster {

using detail::boot_time;
using std::chrono::microseconds;

agent_process::~agent_process() {
  locks_.reset();  // its thread posts events to the others
  // No agent listens at these sockets any more. The next agent makes them anew.
  unlink(detail::bell_path_of(*file_).c_str());
  unlink(detail::question_path_of(*file_).c_str());
}

void agent_process::run() {
  await_signals();
  handle([](agent& a, instant now, effects& out) { a.start(now, out); });
  start_links();
  start_bell();
  start_answers();
  store_->begin_watch();
  notes_->begin_watch();
  each_second();
  log_.info("started", "the agent runs",
            {{"member", text_of(words_.self())},
             {"listens", links_->address()},
             {"advertises", place_.address},
             {"ttl_s", static_cast<double>(times_.ttl) / 1e6},
             {"file", file_->place().path}});
  io_.run();
  if (failure_) throw agent_error(*failure_);
  log_.info("ended", "the agent has ended");
}

// ---- the state machine ----

/// Handles an event and its consequences. If the domain file or etcd's keys cannot be used any
/// more, the agent ends: no message that follows from the event may leave.
void agent_process::handle(const std::function<void(agent& of, instant now, effects& out)>& event) {
  if (failure_) return;
  try {
    effects out;
    const epoch_number before = core_->epoch();
    const incarnation_number was = words_.incarnation();
    const bool was_member = words_.registered() != 0;  // not if it has left in order
    event(*core_, clock_.read(), out);
    carry_out(out);
    if (words_.incarnation() != was && was_member && !out.has_left)
      log_.warn("another",
                std::exchange(has_lost_key_, false)
                    ? "this host comes back as another one, since its key was deleted"
                    : "this host was taken off the members, and comes back as another one",
                {{"incarnation", words_.incarnation()},
                 {"advertises", place_.address},
                 {"not_heard_by", members_.hosts_that_miss(words_.self())}});
    if (core_->epoch() == before || core_->epoch() == 0) return;
    if (before == 0) notify_service_manager("READY=1\nSTATUS=member of the cluster");
    log_.info("epoch", fmt::format("moves from epoch {} to {}", before, core_->epoch()),
              {{"members",
                members_ && members_->keys.epoch ? members_->keys.epoch->what.members.size() : 0}});
  } catch (const clock_failure& e) {
    distrust_clock(e.what());
  } catch (const std::exception& e) {
    end_with(e.what());
  }
}

void agent_process::carry_out(const effects& out) {
  for (const message& each : out.messages) {
    ++counts_.messages_sent;
    links_->send(each);
  }
  // A host waits for each message but `taken`, which goes out when these are on their way.
  for (const message& each : out.messages)
    if (!std::holds_alternative<taken>(each.what)) links_->flush(each.to);
  for (const submitted& each : out.transactions) {
    ++counts_.transactions;
    store_->submit(each);
  }
  for (const std::string& name : out.host_locks_released) locks_->release(name);
  if (out.wakes_clients) words_.wake_clients();
  if (out.stops == stop::replaced) end_with("another agent of this host has taken its place");
  if (out.stops == stop::copied)
    end_with(fmt::format(
        "somebody else has renewed as member {}: a host with a copy of this host's domain "
        "file {}, or this host itself, if etcd was restored from a copy since. Remove "
        "that file on one of the two hosts, and start its agent again",
        text_of(words_.self()), file_->place().path));
  if (out.has_lost_key && !std::exchange(has_lost_key_, true))
    log_.warn("deleted",
              "somebody has deleted this host's key in etcd: the host stays out until the time to "
              "live of its last renewal is over");
  if (out.has_left) {
    log_.info("left", "this host has given back all names, and is no member any more");
    return end();
  }
  set_timer();
  // lock_taken() gives the name back and releases the lock before the loop takes the next lock. A
  // thread can hold only a few robust locks at a time, and a host that leaves gives back all its
  // names in one event.
  for (const wanted_host_lock& each : out.host_locks_wanted) {
    if (!each.again) ++counts_.revocations;
    if (each.if_free ? locks_->take_if_free(each.name, each.as) : locks_->take(each.name, each.as))
      lock_taken(each.name);
    else if (each.if_free && locks_->is_awaited(each.name))
      handle(
          [&](agent& a, instant now, effects& more) { a.host_lock_awaited(now, each.name, more); });
  }
}

void agent_process::lock_taken(const std::string& name) {
  handle([&](agent& a, instant now, effects& out) { a.host_lock_taken(now, name, out); });
}

void agent_process::set_timer() {
  const instant at = core_->wake_at();
  if (at == std::numeric_limits<instant>::max() || at == timer_at_) return;
  timer_at_ = at;
  // The timer's clock stands still while the machine sleeps, so it is not set far ahead.
  const instant set_at = boot_time();
  const instant wait = std::clamp<instant>(at - set_at, 0, times_.patience());
  timer_.expires_after(microseconds(wait));
  timer_.async_wait([this, set_at, wait](const asio::error_code& error) {
    if (error) return;
    try {
      clock_watch::ended(set_at, wait);
    } catch (const clock_failure& e) {
      return distrust_clock(e.what());
    }
    timer_at_.reset();
    if (core_->wake_at() > boot_time()) return set_timer();
    handle([](agent& a, instant now, effects& out) { a.timer(now, out); });
  });
}

void agent_process::answered(std::uint64_t number, const answer& what,
                             const std::shared_ptr<const etcd_view>& view) {
  if (failure_) return;
  try {
    check_identity(*view);
  } catch (const std::exception& e) {
    return end_with(e.what());
  }
  if (members_.learn(view)) {
    // The peers are set before messages that follow from the answer are sent: messages queued for
    // an agent that has ended must not reach the next agent of its host.
    std::vector<peer> peers;
    for (const auto& [id, keys] : view->keys.members) {
      const auto address = view->addresses.find(id);
      if (id == words_.self() || !keys.member || address == view->addresses.end()) continue;
      peers.push_back({id, keys.member->what.agent, address->second});
    }
    links_->set_peers(peers);
  }
  warn_of_last_epochs();
  handle([&](agent& a, instant now, effects& out) { a.answered(now, number, what, out); });
}

/// Warns once in each of the last epochs.
void agent_process::warn_of_last_epochs() {
  if (!members_->keys.epoch) return;
  const epoch_number number = members_->keys.epoch->what.number;
  const epoch_number left = last_epoch - number;
  if (left >= few_epochs || warned_of_epoch_ == number) return;
  warned_of_epoch_ = number;
  log_.warn("epochs",
            left > 0
                ? "the changes of members that are possible in this domain are nearly used up: "
                  "set up a domain of another name"
                : "no member can come, go or restart any more in this domain, since all epochs "
                  "are used up: set up a domain of another name",
            {{"left", left}});
}

// ---- clients ----

void agent_process::await_rings() {
  bell_.async_wait(asio::posix::stream_descriptor::wait_read,
                   [this](const asio::error_code& error) {
                     if (error) return;
                     read_rings();
                     await_rings();
                   });
}

void agent_process::read_rings() {
  std::array<char, 512> bytes{};  // names in the directory are shorter
  // A bounded number at a time, so that clients do not keep the agent from its links.
  constexpr int at_once = 256;
  for (int i = 0; i < at_once; ++i) {
    const ssize_t length =
        recv(bell_.native_handle(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_TRUNC);
    if (length < 0) break;
    // Every user of the domain may send anything.
    const std::string name(bytes.data(), std::min(static_cast<std::size_t>(length), bytes.size()));
    if (is_lock_name(detail::user_name_of(name).name)) rung(name);
  }
  ring_if_missed();
}

void agent_process::rung(const std::string& name) {
  ++counts_.rings;
  handle([&](agent& a, instant now, effects& out) { a.rung(now, name, out); });
}

/// Rings for all names if a client could not ring.
void agent_process::ring_if_missed() {
  if (words_.take_missed_rings())
    for (const std::string& name : words_.names()) rung(name);
}

// ---- each second ----

/// Looks after the files and sockets that other programs may remove, and reports.
void agent_process::each_second() {
  constexpr auto period = std::chrono::seconds(1);
  reports_->write_metrics();
  if (core_->epoch() == 0) notify_service_manager(extends_start);
  if (!file_->is_current()) return end_with(file_->place().path + ": has been removed");
  try {
    make_sockets_again();
  } catch (const domain_error& e) {
    return end_with(e.what());
  }
  reports_->warn_of_namesakes();
  notes_->each_second();
  status_timer_.expires_after(period);
  status_timer_.async_wait([this](const asio::error_code& error) {
    if (!error) each_second();
  });
}

/// A program that cleans up old files may have removed the sockets beside the domain file. Then
/// nobody could ring, and waiters would wait for ever.
void agent_process::make_sockets_again() {
  const auto is_missing = [](const std::string& path) {
    return access(path.c_str(), F_OK) != 0 && errno == ENOENT;
  };
  if (is_missing(detail::question_path_of(*file_))) answers_->listen_again();
  if (is_missing(detail::bell_path_of(*file_))) {
    bell_.close();
    start_bell();
    log_.warn("bell", detail::bell_path_of(*file_) + ": has been removed, and is made anew");
  }
  ring_if_missed();
}

// ---- the end ----

void agent_process::await_signals() {
  signals_.async_wait([this](const asio::error_code& error, int which) {
    if (error) return;
    if (which == SIGHUP) return make_way();
    if (retires_) return end();  // the agent was told so twice
    retire();
    await_signals();
  });
}

/// Ends, so that the next agent can begin: the host stays a member, and its clients keep what they
/// hold if that agent renews in time.
void agent_process::make_way() {
  notify_service_manager("STOPPING=1");
  log_.info("restarts",
            "the agent ends, and this host stays a member until the time to live is over");
  end();
}

/// Other hosts need not wait then until this host is taken off. A client that stays inside keeps
/// its name until the time to live is over, and so does an agent that etcd does not answer: the
/// agent ends all the same.
void agent_process::retire() {
  retires_ = true;
  notify_service_manager("STOPPING=1");
  log_.info("retires", "this host leaves the cluster, and gives back its names");
  retires_until_.expires_after(microseconds(times_.ttl));
  retires_until_.async_wait([this](const asio::error_code& error) {
    if (error) return;
    log_.warn("kept",
              "a name is in use on this host, or etcd does not answer: the others go on when "
              "the time to live is over");
    end();
  });
  handle([](agent& a, instant now, effects& out) { a.retire(now, out); });
}

/// Holders read the same clock, so none of them may rely on it any more.
void agent_process::distrust_clock(const std::string& why) {
  words_.set_deadline(0);
  words_.wake_clients();
  end_with(why);
}

void agent_process::end_with(const std::string& why) {
  if (failure_) return;
  failure_ = why;
  end();
}

void agent_process::end() { io_.stop(); }

}  // namespace lockflight::cluster
