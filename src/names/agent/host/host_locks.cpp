#include "names/agent/host/host_locks.hpp"

#include <condition_variable>
#include <mutex>
#include <thread>

#include "lockflight/domain.hpp"
#include "names/locks/attachment.hpp"
#include "names/locks/directory.hpp"
#include "names/locks/users.hpp"

namespace lockflight::cluster {
/// A thread that has one lock at a time.
class host_locks::worker {
 public:
  worker(std::shared_ptr<detail::domain_file> file,
         const std::function<void(const std::string&)>& taken)
      : file_(std::move(file)), taken_(taken), thread_([this] { run(); }) {}
  ~worker() {
    {
      const std::lock_guard hold(mutex_);
      ends_ = true;
      if (me_) me_->port().ask_now();
    }
    changed_.notify_all();
    thread_.join();
  }
  worker(const worker&) = delete;
  worker& operator=(const worker&) = delete;

  void take(const std::string& name, mode as) {
    const std::lock_guard hold(mutex_);
    name_ = name;
    as_ = as;
    ++wanted_;
    changed_.notify_all();
  }
  void release() {
    const std::lock_guard hold(mutex_);
    released_ = wanted_;
    changed_.notify_all();
  }

 private:
  void run() {
    std::unique_lock hold(mutex_);
    for (;;) {
      changed_.wait(hold, [&] { return taken_count_ != wanted_ || ends_; });
      if (ends_) return;
      const std::string name = name_;
      const mode as = as_;
      taken_count_ = wanted_;
      hold.unlock();
      take_and_hold(name, as);
      hold.lock();
    }
  }

  // Returns when the lock has been released again.
  void take_and_hold(const std::string& name, mode as) {
    try {
      const held_lock has = acquire(name, as);
      if (!is_ending()) {
        taken_(name);
        await_release();
      }
      has.release();
    } catch (const domain_error&) {
      // The domain is damaged or removed; the agent's own thread finds that out, too.
    }
  }

  held_lock acquire(const std::string& name, mode as) {
    const std::function<bool()> is_over = [this] { return is_ending(); };
    {
      auto attached = detail::attach_thread(file_, {UINT64_MAX, &is_over});
      const std::lock_guard hold(mutex_);
      me_ = std::move(attached);
    }
    // A name without a lock has nobody inside: the agent alone forgets names.
    const auto found = detail::find_lock(*file_, name);
    if (!found) return {};
    auto lock = detail::lock_at(*me_, *found);
    if (!found->kind->can.shares) as = mode::exclusive;
    me_->port().set_interrupt(&is_over);
    const bool has = lock->acquire(as, limit::for_ever());
    me_->port().set_interrupt(nullptr);
    if (!has) return {};
    return {std::move(lock), as};
  }

  bool is_ending() {
    const std::lock_guard hold(mutex_);
    return ends_;
  }
  void await_release() {
    std::unique_lock hold(mutex_);
    changed_.wait(hold, [&] { return released_ >= taken_count_ || ends_; });
  }

  std::shared_ptr<detail::domain_file> file_;
  const std::function<void(const std::string&)>& taken_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string name_;
  mode as_ = mode::exclusive;
  // How many locks were wanted, taken, or about to be, and released.
  std::uint64_t wanted_ = 0, taken_count_ = 0, released_ = 0;
  bool ends_ = false;
  std::shared_ptr<detail::attachment> me_;
  std::thread thread_;  // the last member: it uses the others
};

host_locks::host_locks(std::shared_ptr<detail::domain_file> file,
                       std::function<void(const std::string& name)> taken)
    : file_(std::move(file)), taken_(std::move(taken)) {}
host_locks::~host_locks() = default;

bool host_locks::take_if_free(const std::string& name, mode as) {
  if (!me_) me_ = detail::attach_thread(file_, {.until_ns = 0});
  if (!me_ || held_.contains(name)) return false;
  const auto found = detail::find_lock(*file_, name);
  if (!found) return held_.emplace(name, held_lock{}), true;
  const catalogue::abilities& can = found->kind->can;
  if (!can.shares) as = mode::exclusive;
  if (as == mode::shared ? !can.tries_shared : !can.tries) return false;
  auto lock = detail::lock_at(*me_, *found);
  if (!lock->acquire(as, limit::at_once())) return false;
  held_.emplace(name, held_lock{std::move(lock), as});
  return true;
}

bool host_locks::is_awaited(const std::string& name) const {
  // The records of a slot are in a page of its own, so reading those of many slots takes longer
  // than waking a thread.
  constexpr std::uint32_t most_slots = 512;
  if (file_->header().used_slots.load() > most_slots) return true;
  const auto found = detail::find_lock(*file_, name);
  return found && detail::is_awaited(*file_, *found);
}

std::unique_ptr<host_locks::worker> host_locks::idle_worker() {
  if (idle_.empty()) return std::make_unique<worker>(file_, taken_);
  auto its = std::move(idle_.back());
  idle_.pop_back();
  return its;
}

bool host_locks::take(const std::string& name, mode as) {
  if (take_if_free(name, as)) return true;
  if (busy_.contains(name)) return false;  // a thread waits for it already
  // If there were more threads than slots, some of them would wait for a slot.
  if (busy_.size() >= file_->header().slots)
    delayed_.emplace_back(name, as);
  else
    (busy_[name] = idle_worker())->take(name, as);
  return false;
}

void host_locks::release(const std::string& name) {
  if (const auto mine = held_.find(name); mine != held_.end()) {
    mine->second.release();
    held_.erase(mine);
    return;
  }
  const auto its = busy_.find(name);
  if (its == busy_.end()) return;
  its->second->release();
  // Threads and their slots are kept for the next ones, but not all that a burst has made.
  constexpr std::size_t most_idle = 16;
  if (idle_.size() < most_idle) idle_.push_back(std::move(its->second));
  busy_.erase(its);
  if (delayed_.empty()) return;
  const auto [next, as] = std::move(delayed_.front());
  delayed_.pop_front();
  (busy_[next] = idle_worker())->take(next, as);
}

}  // namespace lockflight::cluster
