#include "tests/names/deaths/worker_pool.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "tests/names/deaths/worker.hpp"

namespace lockflight::test {
namespace {

constexpr gid_t team = 61000;
constexpr uid_t first_user = 61001;

domain_options domain_options_of(const campaign_options& options) {
  domain_options made{.slots = 4 * options.processes};
  if (options.users) made.mode = 0660, made.group = std::to_string(team);
  return made;
}

void become(uid_t user) {
  const gid_t group = team;
  if (setgroups(1, &group) != 0 || setgid(user) != 0 || setuid(user) != 0) _exit(3);
}

}  // namespace

worker_pool::worker_pool(const campaign_options& options)
    : options_(options),
      domain_options_(domain_options_of(options)),
      name_("deaths-" + std::to_string(getpid())) {
  // Later images inherit both descriptors; the program has the number after the memory's.
  constexpr int out_of_the_way = 100;
  const int made = memfd_create("lockflight-deaths", MFD_CLOEXEC);
  const int program = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  memory_ = out_of_the_way;
  if (ftruncate(made, sizeof(shared_state)) != 0 || dup2(made, memory_) != memory_ ||
      dup2(program, memory_ + 1) != memory_ + 1)
    throw std::system_error(errno, std::generic_category(), "memory and program for workers");
  close(made);
  close(program);
  all_ = new (&map_shared(memory_)) shared_state;
  pids_.resize(static_cast<std::size_t>(options.processes), -1);
}

worker_pool::~worker_pool() {
  for (std::size_t w = 0; w < pids_.size(); ++w)
    if (pids_[w] > 0) {
      if (all_->worker[w].pid > 0) kill(all_->worker[w].pid, SIGKILL);
      kill(pids_[w], SIGKILL);
      waitpid(pids_[w], nullptr, 0);
    }
  static_cast<void>(remove_domain(true));
}

void worker_pool::start(int w, std::uint64_t seed) {
  std::fflush(nullptr);
  state(w).pid = -1;
  const pid_t pid = fork();
  if (pid < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (pid == 0) {
    if (has_a_space(w)) enter_a_space(w);
    if (options_.users) become(first_user + static_cast<uid_t>(w % 2));
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // This call comes last: new credentials clear the setting.
    static worker_start start;
    start = {w, memory_, name_, options_.numbers(), seed, domain_options_};
    work(*all_, start);
  }
  pids_[static_cast<std::size_t>(w)] = pid;
  if (has_a_space(w))
    while (state(w).pid == -1) {
      if (waitpid(pid, nullptr, WNOHANG) == pid)
        throw std::runtime_error("no namespace of processes could be made");
      std::this_thread::yield();
    }
  else
    state(w).pid = pid;
}

// The caller waits for the child's end, and ends with the same exit code.
void worker_pool::enter_a_space(int w) {
  if (unshare(CLONE_NEWPID) != 0) _exit(3);
  const pid_t inner = fork();
  if (inner < 0) _exit(3);
  if (inner == 0) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  state(w).pid = inner;
  int status = 0;
  while (waitpid(inner, &status, 0) != inner) {
  }
  _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 9);
}

void worker_pool::signal(int w, int number) const { kill(state(w).pid, number); }

void worker_pool::wait_for_end(int w) const {
  waitpid(pids_[static_cast<std::size_t>(w)], nullptr, 0);
}

void worker_pool::end_all(int stopped) {
  all_->stop = true;
  for (const worker_state& each : all_->worker)
    if (each.pid > 0) kill(each.pid, all_->broken != 0 ? SIGKILL : SIGCONT);
  const auto until = clock::now() + std::chrono::seconds(20);
  for (pid_t& pid : pids_) {
    int status = 0;
    while (waitpid(pid, &status, WNOHANG) == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      if (clock::now() < until) continue;
      report(*all_, "a worker waits for ever at the end: " + locks_in_use(stopped));
      kill(all_->worker[&pid - pids_.data()].pid, SIGKILL);
    }
    if (all_->broken == 0 && (!WIFEXITED(status) || WEXITSTATUS(status) != 0))
      report(*all_, "a worker that nobody killed ended badly");
    pid = -1;
  }
}

std::string worker_pool::locks_in_use(int stopped) const {
  std::string text;
  for (int w = 0; w < options_.processes; ++w)
    text += fmt::format("{}{}{}", text.empty() ? "" : ", ", lock_in_use(w),
                        w == stopped ? " (stopped)" : "");
  return text;
}

std::string worker_pool::lock_in_use(int w) const {
  return state(w).lock < 0 ? "no lock" : kind_of(state(w).lock);
}

}  // namespace lockflight::test
