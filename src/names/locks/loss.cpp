#include "names/locks/loss.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <limits>
#include <mutex>
#include <string>
#include <system_error>
#include <vector>

#include "base/descriptor.hpp"
#include "base/thread_without_signals.hpp"
#include "lockflight/domain.hpp"
#include "names/cluster/client/words.hpp"
#include "names/file/fork.hpp"

namespace lockflight::detail {

/// `incarnation` is that of the host when the watch began; 0 in the domain of one machine.
struct hold_watch::hold {
  std::shared_ptr<domain_file> file;
  cluster::incarnation_number incarnation = 0;
  std::stop_source loss;
};

namespace {

constexpr cluster::instant never = std::numeric_limits<cluster::instant>::max();
/// Without inotify, in microseconds.
constexpr cluster::instant looks_each = 200'000;
/// The changes of a domain file after which it may not be the domain any more. A process that maps
/// it changes nothing of this.
constexpr std::uint32_t changes = IN_ATTRIB | IN_MODIFY | IN_MOVE_SELF | IN_DELETE_SELF;

/// False if the file was removed, or is no domain any more.
bool is_in_place(const domain_file& file) {
  try {
    file.check();
    return file.is_current();
  } catch (const domain_error&) {
    return false;
  }
}

/// The moment at which a hold is told that it is lost.
cluster::instant moment_of(const hold_watch::hold& what) {
  if (!is_in_place(*what.file)) return 0;
  if (!what.file->is_of_cluster()) return never;
  return told_at(*what.file, what.incarnation);
}

[[noreturn]] void refuse(const char* what) {
  throw domain_error(domain_error::reason::system,
                     std::string("the loss of a hold cannot be watched: ") + what + ": " +
                         std::generic_category().message(errno));
}

/// The thread of this process that watches holds, and what it waits for.
class loss_watch {
 public:
  loss_watch()
      : timer_(timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK)),
        bell_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        news_(inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {
    if (!timer_) refuse("a timer");
    if (!bell_) refuse("a descriptor");
  }

  /// The one of this process. It is never destroyed, since its thread does not end.
  [[nodiscard]] static loss_watch& of_this_process();

  void start() {
    try {
      thread_without_signals([this] { watch(); }).detach();
    } catch (const std::system_error& e) {
      errno = e.code().value();
      refuse("a thread");
    }
  }

  void begin(const std::shared_ptr<hold_watch::hold>& what) {
    const std::scoped_lock hold(mutex_);
    holds_.push_back(what);
    // The watch is there before the file is looked at, so that no change is missed.
    const bool has_news = follow(what->file);
    const cluster::instant next = std::min(moment_of(*what), has_news ? never : first_look());
    if (next < set_to_) ring();
  }

  void end(const std::shared_ptr<hold_watch::hold>& what) {
    const std::scoped_lock hold(mutex_);
    std::erase(holds_, what);
  }

 private:
  struct followed {
    std::weak_ptr<domain_file> file;
    int by = -1;  // a watch of inotify; -1: there is none
  };

  [[noreturn]] void watch() {
    while (true) {
      // Functions of the program run here: without the mutex.
      for (const auto& each : take_lost()) each->loss.request_stop();
      std::array<pollfd, 3> awaited{pollfd{timer_.get(), POLLIN, 0}, pollfd{bell_.get(), POLLIN, 0},
                                    pollfd{news_.get(), POLLIN, 0}};
      poll(awaited.data(), awaited.size(), -1);
      std::array<char, 4096> unread;
      for (const pollfd& each : awaited)
        if (each.revents != 0)
          while (read(each.fd, unread.data(), unread.size()) > 0) {
          }
    }
  }

  /// Takes the holds that are lost out of the list, and sets the timer for the others.
  [[nodiscard]] std::vector<std::shared_ptr<hold_watch::hold>> take_lost() {
    const std::scoped_lock hold(mutex_);
    std::vector<std::shared_ptr<hold_watch::hold>> lost;
    const cluster::instant now = boot_time();
    set_to_ = never;
    std::erase_if(holds_, [&](const auto& each) {
      const cluster::instant moment = moment_of(*each);
      if (moment <= now) return lost.push_back(each), true;
      set_to_ = std::min(set_to_, moment);
      return false;
    });
    std::erase_if(files_, [&](const followed& each) {
      if (!each.file.expired()) return false;
      if (each.by >= 0) inotify_rm_watch(news_.get(), each.by);
      return true;
    });
    const bool looks = !holds_.empty() &&
                       std::ranges::any_of(files_, [](const auto& each) { return each.by < 0; });
    if (looks) set_to_ = std::min(set_to_, first_look());
    set_timer();
    return lost;
  }

  void set_timer() {
    constexpr cluster::instant second = 1'000'000;
    // A moment of 0 stops the timer.
    const cluster::instant at = set_to_ == never ? 0 : std::max<cluster::instant>(set_to_, 1);
    const itimerspec once{.it_interval = {},
                          .it_value = {.tv_sec = static_cast<time_t>(at / second),
                                       .tv_nsec = static_cast<long>(at % second * 1'000)}};
    timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &once, nullptr);
  }

  /// True if the kernel tells of changes of that file.
  [[nodiscard]] bool follow(const std::shared_ptr<domain_file>& file) {
    const auto known = std::ranges::find_if(
        files_, [&](const followed& each) { return each.file.lock() == file; });
    if (known != files_.end()) return known->by >= 0;
    const int by = news_ ? inotify_add_watch(news_.get(), file->place().path.c_str(), changes) : -1;
    files_.push_back({file, by});
    return by >= 0;
  }

  [[nodiscard]] static cluster::instant first_look() { return boot_time() + looks_each; }
  void ring() {
    const std::uint64_t one = 1;
    static_cast<void>(write(bell_.get(), &one, sizeof one));
  }

  descriptor timer_;
  descriptor bell_;
  descriptor news_;  // none where the kernel refuses it
  std::mutex mutex_;
  std::vector<std::shared_ptr<hold_watch::hold>> holds_;
  std::vector<followed> files_;
  cluster::instant set_to_ = never;  // the timer
};

loss_watch& loss_watch::of_this_process() {
  static loss_watch* ours = nullptr;
  static std::uint64_t of_image = 0;  // a child has no thread of its parent, and begins anew
  const std::uint64_t now = image();
  const std::scoped_lock hold(process_mutex());
  if (of_image != now) {
    auto made = std::make_unique<loss_watch>();
    made->start();
    ours = made.release();
    of_image = now;
  }
  return *ours;
}

}  // namespace

hold_watch::hold_watch(const std::shared_ptr<domain_file>& file)
    : hold_(std::make_shared<hold>(
          hold{file, file->is_of_cluster() ? file->cluster().incarnation.load() : 0, {}})),
      image_(image()) {
  loss_watch::of_this_process().begin(hold_);
}

hold_watch::~hold_watch() {
  if (image_ == image()) loss_watch::of_this_process().end(hold_);
}

std::stop_token hold_watch::token() const { return hold_->loss.get_token(); }

void hold_watch::tell() { hold_->loss.request_stop(); }

}  // namespace lockflight::detail
