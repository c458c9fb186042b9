#include "fabric/mpi/watch.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>
#include <thread>
#include <vector>

#include "fabric/mpi/trial.hpp"
#include "wireup/descriptor.hpp"

namespace lockflight::mpi::detail {
namespace {

/// A host that has not answered for so long is gone. A link may be cut for a shorter time.
constexpr int first_question_s = 2;
constexpr int between_questions_s = 1;
constexpr int questions = 5;
constexpr int silence_s = first_question_s + questions * between_questions_s;
/// How long the ranks have to connect, and a launch to end.
constexpr std::chrono::seconds to_connect{5};
constexpr unsigned to_end_s = 2;

/// Owns a socket.
class socket_fd {
 public:
  explicit socket_fd(int fd = -1) : fd_(above_standard(fd)) {}
  socket_fd(socket_fd&& o) noexcept : fd_(std::exchange(o.fd_, -1)) {}
  socket_fd& operator=(socket_fd&& o) noexcept {
    std::swap(fd_, o.fd_);
    return *this;
  }
  ~socket_fd() {
    if (fd_ >= 0) close(fd_);
  }
  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] explicit operator bool() const { return fd_ >= 0; }

  template <class T>
  bool send(const T& value) const {
    return ::send(fd_, &value, sizeof value, MSG_NOSIGNAL) == ssize_t{sizeof value};
  }
  template <class T>
  bool receive(T& value) const {
    return ::recv(fd_, &value, sizeof value, MSG_WAITALL) == ssize_t{sizeof value};
  }

 private:
  int fd_;
};

void set(const socket_fd& of, int level, int option, int value) {
  setsockopt(of.get(), level, option, &value, sizeof value);
}

void set_timeout(const socket_fd& of, std::chrono::seconds after) {
  const timeval limit{after.count(), 0};
  setsockopt(of.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  setsockopt(of.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);  // of connect too
}

void keep_alive(const socket_fd& of) {
  set_timeout(of, std::chrono::seconds(0));
  set(of, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(of, IPPROTO_TCP, TCP_KEEPIDLE, first_question_s);
  set(of, IPPROTO_TCP, TCP_KEEPINTVL, between_questions_s);
  set(of, IPPROTO_TCP, TCP_KEEPCNT, questions);
}

/// Where rank 0 listens, for all ranks: its addresses in every network that it is in.
struct meeting_point {
  static constexpr int most_addresses = 16;

  std::uint64_t secret = 0;  ///< distinguishes ranks of this launch from strangers
  std::uint16_t port = 0;    ///< in the network's order; 0: it does not listen
  std::uint16_t addresses = 0;
  std::uint32_t address[most_addresses] = {};
};

/// What a rank says first on its connection.
struct greeting {
  std::uint64_t secret = 0;
  std::int32_t rank = 0;
};

/// What it says last: it is about to finalise MPI.
constexpr char farewell = 'f';

meeting_point listen_on(socket_fd& listener, int ranks) {
  meeting_point at;
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  listener = socket_fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in any{};
  any.sin_family = AF_INET;
  socklen_t length = sizeof any;
  auto* const name = reinterpret_cast<sockaddr*>(&any);
  if (!listener || bind(listener.get(), name, length) != 0 || listen(listener.get(), ranks) != 0 ||
      getsockname(listener.get(), name, &length) != 0)
    return at;
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return at;
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET ||
        (one->ifa_flags & IFF_LOOPBACK) != 0 || at.addresses == meeting_point::most_addresses)
      continue;
    at.address[at.addresses++] =
        reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr.s_addr;
  }
  freeifaddrs(all);
  std::random_device dice;
  at.secret = std::uint64_t{dice()} << 32 | dice();
  at.port = any.sin_port;
  return at;
}

socket_fd connect_to(const meeting_point& at, int rank) {
  for (int i = 0; i < at.addresses; ++i) {
    socket_fd line(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    set_timeout(line, to_connect / 2);
    sockaddr_in there{};
    there.sin_family = AF_INET;
    there.sin_port = at.port;
    there.sin_addr.s_addr = at.address[i];
    if (line && connect(line.get(), reinterpret_cast<sockaddr*>(&there), sizeof there) == 0 &&
        line.send(greeting{at.secret, rank}))
      return line;
  }
  return socket_fd();
}

/// The connections of all other ranks, by rank; fewer if some do not come.
std::vector<socket_fd> accept_all(const socket_fd& listener, const meeting_point& at, int ranks) {
  std::vector<socket_fd> lines(static_cast<std::size_t>(ranks));
  const auto end = std::chrono::steady_clock::now() + to_connect;
  for (int missing = ranks - 1; missing > 0;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    pollfd waits{listener.get(), POLLIN, 0};
    if (left.count() <= 0) break;
    const int ready = poll(&waits, 1, static_cast<int>(left.count()));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) break;
    socket_fd line(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!line) break;
    set_timeout(line, std::chrono::seconds(1));
    greeting said;
    if (!line.receive(said) || said.secret != at.secret || said.rank < 1 || said.rank >= ranks)
      continue;
    lines[static_cast<std::size_t>(said.rank)] = std::move(line);
    --missing;
  }
  return lines;
}

#if defined(OPEN_MPI)
/// A process of the launcher that this one descends from; 0 if there is none.
pid_t launcher() {
  for (pid_t at = getppid(); at > 1;) {
    const std::string folder = "/proc/" + std::to_string(at);
    std::string name;
    std::getline(std::ifstream(folder + "/comm"), name);
    if (name.starts_with("mpirun") || name.starts_with("mpiexec") || name.starts_with("orte"))
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
  for (int fd = 0; fd < 3; ++fd) close(fd);  // it waits for the end of these, too
  sleep(to_end_s);
  kill(its, SIGKILL);
  _exit(0);
}
#else
// MPICH's launcher ends when it is asked to.
void outlast_launcher() {}
#endif

/// `silent`: its host does not answer; else its process has ended.
[[noreturn]] void end_launch(int rank, const std::string& host, bool silent) {
  std::fflush(stdout);
  std::fprintf(stderr, "lockflight: rank %d on %s is gone: ", rank, host.c_str());
  if (silent)
    std::fprintf(stderr, "its host has not answered for %d s\n", silence_s);
  else
    std::fputs("its process has ended\n", stderr);
  std::fflush(stderr);
  // The launcher may drop what it has not forwarded yet.
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  if (silent) outlast_launcher();
  signal(SIGALRM, SIG_DFL);
  alarm(to_end_s);  // MPI_Abort may wait for the lost host, too
  constexpr int environment_failed = 3;
  // From a thread that MPI does not know; both libraries only speak to their launcher here.
  MPI_Abort(MPI_COMM_WORLD, environment_failed);
  _exit(environment_failed);
}

/// Watches for the lifetime of this object.
class watcher {
 public:
  watcher(std::vector<socket_fd> lines, std::vector<std::string> hosts)
      : lines_(std::move(lines)), hosts_(std::move(hosts)), thread_([this] { watch(); }) {}
  watcher(const watcher&) = delete;
  watcher& operator=(const watcher&) = delete;
  ~watcher() {
    ending_ = true;
    for (const socket_fd& line : lines_) {
      if (!line) continue;
      line.send(farewell);
      shutdown(line.get(), SHUT_RDWR);  // wakes the thread
    }
    thread_.join();
  }

 private:
  void watch() {
    prctl(PR_SET_NAME, "hosts-watch");  // so that a debugger, and a test, can see that it is there
    std::vector<pollfd> waits;
    for (const socket_fd& line : lines_) waits.push_back({line.get(), POLLIN, 0});
    for (auto left = waits.size(); left > 0;) {
      left = 0;
      if (poll(waits.data(), waits.size(), -1) < 0) continue;
      for (std::size_t r = 0; r < waits.size(); ++r) {
        if (waits[r].fd >= 0 && waits[r].revents != 0) waits[r].fd = heard(r);
        if (waits[r].fd >= 0) ++left;
      }
    }
  }

  /// -1 if that rank takes its leave.
  int heard(std::size_t rank) {
    char said = 0;
    const ssize_t got = recv(lines_[rank].get(), &said, 1, 0);
    if (ending_ || (got == 1 && said == farewell)) return -1;
    end_launch(static_cast<int>(rank), hosts_[rank],
               /*silent=*/got < 0 && errno != ECONNRESET);
  }

  std::vector<socket_fd> lines_;  // [rank]; on other ranks than 0 that of rank 0 alone
  std::vector<std::string> hosts_;
  std::atomic<bool> ending_{false};
  std::thread thread_;
};

/// MPI_Finalize calls it first of all.
int end_watch(MPI_Comm, int, void* of, void*) {
  delete static_cast<watcher*>(of);
  return MPI_SUCCESS;
}

}  // namespace

void watch_hosts(const communicator& all) {
  static bool watched = false;
  if (std::exchange(watched, true)) return;
  if (communicator::of_machine(all.get()).size() == all.size()) return;
  socket_fd listener;
  meeting_point at;
  if (all.rank() == 0) at = listen_on(listener, all.size());
  broadcast(all, &at, sizeof at, MPI_BYTE);
  std::vector<std::string> hosts = names_of_hosts(all);
  std::vector<socket_fd> lines;
  if (all.rank() == 0)
    lines = accept_all(listener, at, all.size());
  else
    lines.push_back(connect_to(at, all.rank()));
  bool has_all = true;
  for (std::size_t r = all.rank() == 0 ? 1 : 0; r < lines.size(); ++r) {
    keep_alive(lines[r]);
    has_all = has_all && lines[r];
  }
  if (!holds_on_all(all, has_all)) {
    if (all.rank() == 0)
      std::fputs(
          "lockflight: not all ranks reach rank 0 by TCP: a host that is lost may hang this "
          "launch\n",
          stderr);
    return;
  }
  int key = MPI_KEYVAL_INVALID;
  check(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, end_watch, &key, nullptr),
        "MPI_Comm_create_keyval");
  check(MPI_Comm_set_attr(MPI_COMM_SELF, key, new watcher(std::move(lines), std::move(hosts))),
        "MPI_Comm_set_attr");
}

}  // namespace lockflight::mpi::detail
