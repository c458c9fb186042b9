#include "names/locks/loss.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <limits>
#include <mutex>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

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
  const domain_slot_page& slot;
  hold_name name;
  std::stop_source loss;
  bool has_ended = false;  // guarded by the mutex of the watch
};

namespace {

constexpr cluster::instant never = std::numeric_limits<cluster::instant>::max();
/// Without inotify, in microseconds.
constexpr cluster::instant poll_period = 200'000;
/// The changes of a domain file after which it may not be the domain any more. A process that maps
/// it changes nothing of this.
constexpr std::uint32_t changes = IN_ATTRIB | IN_MODIFY | IN_MOVE_SELF | IN_DELETE_SELF;

/// When a hold is told that it is lost, if its file is in place.
cluster::instant loss_time_of(const hold_watch::hold& what) {
  constexpr std::uint64_t ns_of_us = 1'000;
  const hold_end end = end_of(what.slot, what.name);
  const cluster::instant ends =
      end.why == end_reason::none
          ? never
          : static_cast<cluster::instant>((end.at_ns + ns_of_us - 1) / ns_of_us);
  return what.file->is_of_cluster() ? std::min(ends, loss_time(*what.file, what.incarnation))
                                    : ends;
}

[[noreturn]] void refuse(const char* what) {
  throw domain_error(domain_error::reason::system,
                     std::string("the loss of a hold cannot be watched: ") + what + ": " +
                         std::generic_category().message(errno));
}

/// A descriptor of the kernel's, such as "anon_inode:[timerfd]".
class own_descriptor {
 public:
  own_descriptor(int fd, std::string_view kind) : it_(fd), kind_(kind) {
    if (it_) fstat(it_.get(), &made_);
  }
  own_descriptor(own_descriptor&&) = default;
  own_descriptor& operator=(own_descriptor&& other) noexcept {
    if (!is_ours()) static_cast<void>(it_.release());  // the program's file is not closed
    std::swap(it_, other.it_);
    std::swap(kind_, other.kind_);
    std::swap(made_, other.made_);
    return *this;
  }
  ~own_descriptor() {
    if (!is_ours()) static_cast<void>(it_.release());
  }
  own_descriptor(const own_descriptor&) = delete;
  own_descriptor& operator=(const own_descriptor&) = delete;

  [[nodiscard]] explicit operator bool() const { return static_cast<bool>(it_); }
  [[nodiscard]] int get() const { return it_.get(); }
  /// False if the program has closed it. Without /proc, a file of the same kind passes for it.
  [[nodiscard]] bool is_ours() const {
    struct stat now {};
    if (fstat(it_.get(), &now) != 0 || now.st_dev != made_.st_dev || now.st_ino != made_.st_ino)
      return false;
    std::array<char, 64> link;
    const std::string path = "/proc/self/fd/" + std::to_string(it_.get());
    const ssize_t size = readlink(path.c_str(), link.data(), link.size());
    return size < 0 || std::string_view(link.data(), static_cast<std::size_t>(size)) == kind_;
  }
  void drain() const {
    std::array<char, 4096> unread;
    while (is_ours() && read(it_.get(), unread.data(), unread.size()) > 0) {
    }
  }

 private:
  descriptor it_;
  std::string_view kind_;
  struct stat made_ {};
};

/// The thread of this process that watches holds, and what it waits for.
class loss_watch {
 public:
  loss_watch() {
    if (!timer_) refuse("a timer");
    if (!wakeup_) refuse("a descriptor");
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
    const std::scoped_lock guard(mutex_);
    holds_.push_back(what);
    const bool is_known = is_watched(*what->file);
    // The watch of a new file begins before the file is looked at, so that no change is missed.
    const bool has_events = is_known || watch_file(what->file);
    cluster::instant first = has_events ? never : next_poll();
    if (is_known || is_in_place(*what->file))
      first = std::min(first, loss_time_of(*what));
    else
      first = 0;
    if (first < timer_at_) wake();
  }

  void look_now() {
    const std::scoped_lock guard(mutex_);
    wake();
  }

  void end(const std::shared_ptr<hold_watch::hold>& what) {
    std::unique_lock guard(mutex_);
    what->has_ended = true;
    std::erase(holds_, what);
    if (std::this_thread::get_id() != thread_)
      told_.wait(guard, [&] { return telling_ != what.get(); });
  }

 private:
  struct watched_file {
    std::weak_ptr<domain_file> file;
    int by = -1;  // a watch of inotify; -1: there is none
  };

  [[noreturn]] void watch() {
    thread_ = std::this_thread::get_id();
    while (true) {
      for (const auto& each : take_lost()) tell(each);
      std::array<pollfd, 3> awaited{pollfd{timer_.get(), POLLIN, 0},
                                    pollfd{wakeup_.get(), POLLIN, 0},
                                    pollfd{file_events_.get(), POLLIN, 0}};
      poll(awaited.data(), awaited.size(), -1);
      timer_.drain();
      wakeup_.drain();
      if (file_events_) file_events_.drain();
    }
  }

  /// Calls functions of the program, without the mutex.
  void tell(const std::shared_ptr<hold_watch::hold>& what) {
    {
      const std::scoped_lock guard(mutex_);
      if (what->has_ended) return;
      telling_ = what.get();
    }
    what->loss.request_stop();
    {
      const std::scoped_lock guard(mutex_);
      telling_ = nullptr;
    }
    told_.notify_all();
  }

  /// Takes the holds that are lost out of the list, and sets the timer for the others.
  [[nodiscard]] std::vector<std::shared_ptr<hold_watch::hold>> take_lost() {
    const std::scoped_lock guard(mutex_);
    renew_descriptors();
    std::vector<std::shared_ptr<hold_watch::hold>> lost;
    const cluster::instant now = boot_time();
    timer_at_ = never;
    std::erase_if(holds_, [&](const auto& each) {
      const cluster::instant at = is_in_place(*each->file) ? loss_time_of(*each) : 0;
      if (at <= now) return lost.push_back(each), true;
      timer_at_ = std::min(timer_at_, at);
      return false;
    });
    forget_files();
    const bool polls = !holds_.empty() &&
                       std::ranges::any_of(files_, [](const auto& each) { return each.by < 0; });
    if (polls) timer_at_ = std::min(timer_at_, next_poll());
    set_timer();
    return lost;
  }

  /// Makes those anew that the program has closed.
  void renew_descriptors() {
    if (!timer_.is_ours()) timer_ = make_timer();
    if (!wakeup_.is_ours()) wakeup_ = make_wakeup();
    if (!file_events_ || file_events_.is_ours()) return;
    file_events_ = make_file_events();
    std::vector<watched_file> before = std::exchange(files_, {});
    for (const watched_file& each : before)
      if (const auto file = each.file.lock()) static_cast<void>(watch_file(file));
  }

  void set_timer() {
    constexpr cluster::instant second = 1'000'000;
    // A moment of 0 stops the timer.
    const cluster::instant at = timer_at_ == never ? 0 : std::max<cluster::instant>(timer_at_, 1);
    const itimerspec once{.it_interval = {},
                          .it_value = {.tv_sec = static_cast<time_t>(at / second),
                                       .tv_nsec = static_cast<long>(at % second * 1'000)}};
    timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &once, nullptr);
  }

  /// True if the kernel tells of changes of that file.
  [[nodiscard]] bool is_watched(const domain_file& file) const {
    return std::ranges::any_of(files_, [&](const watched_file& each) {
      return each.by >= 0 && each.file.lock().get() == &file;
    });
  }
  /// Has the kernel do so. False if it refuses.
  [[nodiscard]] bool watch_file(const std::shared_ptr<domain_file>& file) {
    std::erase_if(files_, [&](const watched_file& each) { return each.file.lock() == file; });
    forget_files();
    // Another file may get the path later, which is news of the folder. Its watch stays.
    if (file_events_)
      inotify_add_watch(file_events_.get(), folder_of(file->place()).c_str(),
                        IN_CREATE | IN_MOVED_TO);
    const int by = file_events_
                       ? inotify_add_watch(file_events_.get(), file->place().path.c_str(), changes)
                       : -1;
    files_.push_back({file, by});
    return by >= 0;
  }
  /// Ends the watches of files that this process does not use any more. A file that it has opened
  /// again has the same watch.
  void forget_files() {
    std::vector<int> unused;
    std::erase_if(files_, [&](const watched_file& each) {
      if (!each.file.expired()) return false;
      unused.push_back(each.by);
      return true;
    });
    for (const int by : unused)
      if (by >= 0 && std::ranges::find(files_, by, &watched_file::by) == files_.end())
        inotify_rm_watch(file_events_.get(), by);
  }

  [[nodiscard]] static cluster::instant next_poll() { return boot_time() + poll_period; }
  void wake() {
    const std::uint64_t one = 1;
    if (wakeup_.is_ours()) static_cast<void>(write(wakeup_.get(), &one, sizeof one));
  }

  static own_descriptor make_timer() {
    return {timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK), "anon_inode:[timerfd]"};
  }
  static own_descriptor make_wakeup() {
    return {eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "anon_inode:[eventfd]"};
  }
  static own_descriptor make_file_events() {
    return {inotify_init1(IN_CLOEXEC | IN_NONBLOCK), "anon_inode:inotify"};
  }

  own_descriptor timer_ = make_timer();
  own_descriptor wakeup_ = make_wakeup();
  own_descriptor file_events_ = make_file_events();  // none where the kernel refuses it
  std::mutex mutex_;
  std::condition_variable told_;
  const hold_watch::hold* telling_ = nullptr;  // functions are called for it now
  std::atomic<std::thread::id> thread_{};
  std::vector<std::shared_ptr<hold_watch::hold>> holds_;
  std::vector<watched_file> files_;
  cluster::instant timer_at_ = never;
};

loss_watch& loss_watch::of_this_process() {
  static loss_watch* ours = nullptr;
  static std::uint64_t of_image = 0;  // a child has no thread of its parent, and begins anew
  const std::uint64_t now = image();
  const std::scoped_lock guard(process_mutex());
  if (of_image != now) {
    auto made = std::make_unique<loss_watch>();
    made->start();
    ours = made.release();
    of_image = now;
  }
  return *ours;
}

}  // namespace

bool is_in_place(const domain_file& file) {
  try {
    file.check();
    return file.is_current();
  } catch (const domain_error& e) {
    return e.why == domain_error::reason::system;
  }
}

hold_watch::hold_watch(const std::shared_ptr<domain_file>& file, const domain_slot_page& slot,
                       hold_name name)
    : hold_(std::make_shared<hold>(hold{
          file, file->is_of_cluster() ? file->cluster().incarnation.load() : 0, slot, name, {}})),
      image_(image()) {
  loss_watch::of_this_process().begin(hold_);
}

hold_watch::~hold_watch() {
  if (image_ == image()) loss_watch::of_this_process().end(hold_);
}

std::stop_token hold_watch::token() const { return hold_->loss.get_token(); }

void hold_watch::look_now() {
  if (image_ == image()) loss_watch::of_this_process().look_now();
}

void hold_watch::tell() { hold_->loss.request_stop(); }

joint_loss::joint_loss(const std::vector<std::stop_token>& of) : image_(image()) {
  for (const std::stop_token& each : of)
    each_.push_back(std::make_unique<callback>(each, [this] { source_.request_stop(); }));
}

// A child leaves its parent's functions as they are: the parent may have forked while one was
// called, which never ends in the child.
joint_loss::~joint_loss() {
  if (image_ == image()) return;
  for (auto& each : each_) static_cast<void>(each.release());
}

}  // namespace lockflight::detail
