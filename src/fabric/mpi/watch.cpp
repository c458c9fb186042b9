#include "fabric/mpi/watch.hpp"

#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "base/descriptor.hpp"
#include "base/thread_without_signals.hpp"
#include "fabric/mpi/trial.hpp"
#include "wireup/group.hpp"

namespace lockflight::mpi::detail {
namespace {

/// How long the ranks have to connect, and a launch to end.
constexpr std::chrono::seconds to_connect{5};
constexpr unsigned to_end_s = 2;

#if defined(OPEN_MPI)
/// A process of the launcher that this one descends from; 0 if there is none.
pid_t launcher() {
  for (pid_t at = getppid(); at > 1;) {
    const std::string folder = "/proc/" + std::to_string(at);
    std::string name;
    std::getline(std::ifstream(folder + "/comm"), name);
    if (name.starts_with("mpirun") || name.starts_with("mpiexec") || name.starts_with("orte") ||
        name.starts_with("prte"))
      return at;
    std::string word;
    std::ifstream facts(folder + "/stat");
    while (facts >> word && !word.ends_with(')')) continue;
    if (!(facts >> word >> at)) return 0;
  }
  return 0;
}

/// Open MPI's launcher waits, for ever, for the farewell of the host that is gone. A process that
/// is none of its ranks kills it then.
void outlast_launcher() {
  const pid_t its = launcher();
  // Not fork(): that runs handlers of libraries, which may wait for what another thread has.
  if (its == 0 || _Fork() != 0) return;
  setsid();
  // The launcher waits for the end of some, too, and files of ours may keep locks of this process.
  close_range(0, ~0U, 0);
  sleep(to_end_s);
  kill(its, SIGKILL);
  _exit(0);
}
#else
// MPICH's launcher ends when it is asked to.
void outlast_launcher() {}
#endif

[[noreturn]] void end_launch(const wireup::loss& of) {
  std::fflush(stdout);
  std::fprintf(stderr, "lockflight: %s\n", of.what().c_str());
  std::fflush(stderr);
  // The launcher may drop what it has not forwarded yet.
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  if (of.silent) outlast_launcher();
  signal(SIGALRM, SIG_DFL);
  alarm(to_end_s);  // MPI_Abort may wait for the lost host, too
  constexpr int environment_failed = 3;
  // From a thread that MPI does not know; both libraries only speak to their launcher here.
  PMPI_Abort(MPI_COMM_WORLD, environment_failed);
  _exit(environment_failed);
}

/// Watches for the lifetime of this object.
class watcher {
 public:
  explicit watcher(std::unique_ptr<wireup::group> all)
      : all_(std::move(all)), thread_(thread_without_signals([this] { watch(); })) {}
  watcher(const watcher&) = delete;
  watcher& operator=(const watcher&) = delete;
  ~watcher() {
    eventfd_write(end_.get(), 1);
    thread_.join();
    all_->leave();
  }

 private:
  void watch() {
    prctl(PR_SET_NAME, "hosts-watch");  // so that a debugger, and a test, can see that it is there
    const std::optional<wireup::loss> gone = all_->await_loss(end_.get());
    if (!gone) return;
    all_->fail(gone->what());  // the others leave it to this rank to say so
    end_launch(*gone);
  }

  std::unique_ptr<wireup::group> all_;
  descriptor end_{eventfd(0, EFD_CLOEXEC)};
  std::thread thread_;
};

/// MPI_Finalize calls it first of all.
int end_watch(MPI_Comm, int, void* of, void*) {
  delete static_cast<watcher*>(of);
  return MPI_SUCCESS;
}

/// The ranks' connections; null if not all of them reach rank 0.
std::unique_ptr<wireup::group> connected(const communicator& all) {
  const auto from_first = [&](std::string text) {
    auto length = static_cast<std::uint64_t>(text.size());
    broadcast(all, &length, 1, MPI_UINT64_T);
    text.resize(length);
    broadcast(all, text.data(), static_cast<int>(length), MPI_CHAR);
    return text;
  };
  try {
    return wireup::join(
        {.rank = all.rank(), .ranks = all.size(), .from_first = from_first, .within = to_connect});
  } catch (const wireup::launch_failed&) {
    return nullptr;
  }
}

}  // namespace

void watch_hosts(const communicator& all) {
  static bool watched = false;
  if (std::exchange(watched, true)) return;
  if (communicator::of_machine(all.get()).size() == all.size()) return;
  std::unique_ptr<wireup::group> lines = connected(all);
  if (!holds_on_all(all, lines != nullptr)) {
    if (all.rank() == 0)
      std::fputs(
          "lockflight: not all ranks reach rank 0 by TCP: a host that is lost may hang this "
          "launch\n",
          stderr);
    return;
  }
  int key = MPI_KEYVAL_INVALID;
  check(PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, end_watch, &key, nullptr),
        "MPI_Comm_create_keyval");
  check(PMPI_Comm_set_attr(MPI_COMM_SELF, key, new watcher(std::move(lines))), "MPI_Comm_set_attr");
}

}  // namespace lockflight::mpi::detail
