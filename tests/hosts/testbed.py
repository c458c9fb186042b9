"""Several hosts on one machine, for tests and for ./dev hosts.

Each host is a set of Linux namespaces: its own network, hostname, IPC, /dev/shm, and monotone clock,
which on host1 is 1,000 s ahead of host0's, and so on. The hosts hang
on a switch, a network of its own too; no host reaches another but by its link, and none reaches the
world outside. Everything lives in a PID namespace of the testbed and is mounted in a mount
namespace of it, so nothing is left when the testbed ends, however it ends.

    testbed.enter()                      # first of all: runs this program again, inside
    with testbed.Hosts(2) as hosts:
        launch = hosts.launch("mpich", 1, ["./program"], stdout=subprocess.PIPE)
        hosts.cut(1); hosts.mend(1)      # its link
        hosts.stop(1); hosts.go_on(1)    # its processes
        hosts.kill(1)                    # all of them, at once
        launch.wait(60)
"""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
MOST_HOSTS = 64
LAUNCHERS = {"mpich": "mpiexec.mpich", "openmpi": "mpirun.openmpi"}
# Without a launcher: each host's ranks are started there, and find each other by the rendezvous.
RENDEZVOUS = ("ucx", "libfabric")
# Open MPI's launcher for OpenSHMEM.
OSHMEM = "oshmem"
LAUNCHES = [*LAUNCHERS, OSHMEM, *RENDEZVOUS]
RENDEZVOUS_PORT = 7777

_INSIDE = "LOCKFLIGHT_TESTBED"
_KEEPERS = "LOCKFLIGHT_TESTBED_HOSTS"  # for the agent: a file for each host, with its keeper's PID


class Unavailable(Exception):
    """This machine cannot have hosts; the text is one line that says why."""


def require():
    """Raises Unavailable unless hosts can be made here."""
    if os.geteuid() != 0:
        raise Unavailable("hosts need root, for network namespaces")
    for tool in ("ip", "unshare", "nsenter", "setpriv"):
        if shutil.which(tool) is None:
            raise Unavailable(f"hosts need the program '{tool}' (Debian: iproute2, util-linux)")
    tried = subprocess.run(["unshare", "--net", "--uts", "--ipc", "--mount", "--time", "--pid",
                            "--fork",
                            "ip", "link", "add", "one", "type", "veth", "peer", "name", "two"],
                           capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        why = (tried.stderr.strip() or "unshare failed").splitlines()[-1]
        raise Unavailable(f"hosts need network and time namespaces and veth links, refused here: {why}")


def enter():
    """Runs this program again in namespaces of its own and exits as it did; there it returns."""
    if os.environ.pop(_INSIDE, None) is not None:
        return
    # Whatever ends this process, the kernel kills all that is inside.
    inside = subprocess.Popen(
        ["setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--pid", "--fork", "--kill-child",
         "--mount-proc", "--propagation", "private", sys.executable, *sys.argv],
        env={**os.environ, _INSIDE: "1"})

    ended_by = []

    def end(number, _frame):
        ended_by.append(number)
        inside.kill()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)
    code = inside.wait()
    sys.exit(128 + ended_by[0] if ended_by else code)


def _run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Unavailable(f"'{' '.join(command)}' failed: {done.stderr.strip()}")


class _Keeper:
    """A process that keeps namespaces alive, until it is killed."""

    def __init__(self, namespaces, setup):
        self._process = subprocess.Popen(
            ["unshare", *namespaces, "--propagation", "private", "sh", "-ec",
             f"{setup}\necho ready; exec sleep infinity"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if self._process.stdout.readline() != "ready\n":
            raise Unavailable(f"no namespaces: {self._process.communicate()[1].strip()}")

    @property
    def pid(self):
        return self._process.pid

    def enter(self):
        return ["nsenter", f"--target={self.pid}", "--net", "--uts", "--ipc", "--mount",
                f"--time=/proc/{self.pid}/ns/time_for_children"]

    def end(self):
        self._process.kill()
        self._process.communicate()


class Hosts:
    """So many hosts, called host0, host1, ... They end with the block."""

    def __init__(self, count):
        if not 1 <= count <= MOST_HOSTS:
            raise ValueError(f"{count} hosts (accepted: 1 to {MOST_HOSTS})")
        self.count = count
        self._keepers = []
        self._switch = None
        self._folder = None

    def name(self, host):
        return f"host{host}"

    def cores(self, host):
        """Its share of this machine's cores, as taskset reads it. Each host counts its cores to
        know how its ranks wait; with more hosts than cores some have the same one."""
        all_of_them = sorted(os.sched_getaffinity(0))
        mine = all_of_them[host::self.count] or [all_of_them[host % len(all_of_them)]]
        return ",".join(map(str, mine))

    def address(self, host):
        return f"10.11.12.{host + 1}"

    def __enter__(self):
        # The folder is in memory of the testbed's own, as everything that it mounts.
        _run("mount", "-t", "tmpfs", "testbed", "/mnt")
        self._folder = pathlib.Path(tempfile.mkdtemp(dir="/mnt"))
        names = self._folder / "hosts"
        names.write_text("127.0.0.1 localhost\n" + "".join(
            f"{self.address(i)} {self.name(i)}\n" for i in range(self.count)), encoding="ascii")
        try:
            self._switch = _Keeper(["--net"], "ip link add switch type bridge\n"
                                              "ip link set switch up")
            for i in range(self.count):
                self._add(i, names)
        except BaseException:
            self.__exit__()
            raise
        return self

    def _add(self, i, names):
        keeper = _Keeper(["--net", "--uts", "--ipc", "--mount",
                          "--time", f"--monotonic={1000 * i}"], f"""
            mount -t tmpfs shm /dev/shm
            mount --bind {names} /etc/hosts
            echo {self.name(i)} > /proc/sys/kernel/hostname
            ip link set lo up""")
        self._keepers.append(keeper)
        (self._folder / self.name(i)).write_text(f"{keeper.pid} {self.cores(i)}\n", encoding="ascii")
        inside = self._switch.enter()
        _run(*inside, "ip", "link", "add", f"port{i}", "type", "veth",
             "peer", "name", "eth0", "netns", str(keeper.pid))
        _run(*inside, "ip", "link", "set", f"port{i}", "master", "switch", "up")
        _run(*keeper.enter(), "ip", "address", "add", f"{self.address(i)}/24", "dev", "eth0")
        _run(*keeper.enter(), "ip", "link", "set", "eth0", "up")

    def __exit__(self, *_):
        for i in range(len(self._keepers)):
            self.kill(i)
        if self._switch is not None:
            self._switch.end()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            _run("umount", "/mnt")

    # ---- processes ----

    def start(self, host, command, **more):
        """A process of that host, as subprocess.Popen has it, in its own process group."""
        environment = {**os.environ, _KEEPERS: str(self._folder), **more.pop("env", {})}
        return subprocess.Popen(["taskset", "-c", self.cores(host), *self._keepers[host].enter(),
                                 f"--wdns={os.getcwd()}", "--", *command], env=environment, **more)

    def launch(self, launcher, per_host, command, preload=False, environment=(), options=(),
               **more):
        """Starts so many ranks of a program on each host, from host0. `environment` holds
        NAME=VALUE for the ranks, `options` are the launcher's own."""
        return self.start(0, launch_command(launcher, [self.name(i) for i in range(self.count)],
                                            per_host, command, preload, environment, options),
                          **more)

    def processes(self, host):
        """The PIDs of all that runs there, but for its keeper."""
        pid = self._keepers[host].pid
        network = os.readlink(f"/proc/{pid}/ns/net")
        found = []
        for entry in os.listdir("/proc"):
            if not entry.isdigit() or int(entry) == pid:
                continue
            try:
                if os.readlink(f"/proc/{entry}/ns/net") == network:
                    found.append(int(entry))
            except OSError:  # it has ended
                pass
        return found

    def signal(self, host, number):
        for pid in self.processes(host):
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass

    def kill(self, host):
        """The host goes, with all its processes and its link."""
        if host not in self.living():
            return
        self.cut(host)  # nothing of its end is told to the others
        while self.processes(host):
            self.signal(host, signal.SIGKILL)
        self._keepers[host].end()

    def living(self):
        return [i for i, keeper in enumerate(self._keepers)
                if os.path.exists(f"/proc/{keeper.pid}/ns/net")]

    def stop(self, host):
        """Its processes stop where they are; its kernel still answers."""
        self.signal(host, signal.SIGSTOP)

    def go_on(self, host):
        self.signal(host, signal.SIGCONT)

    # ---- links ----

    def _link(self, host, state):
        subprocess.run([*self._switch.enter(), "ip", "link", "set", f"port{host}", state],
                       check=False, capture_output=True)

    def cut(self, host):
        """Packets to and from it are lost."""
        self._link(host, "down")

    def mend(self, host):
        self._link(host, "up")


def preload_of(launcher):
    return ROOT / "build" / launcher / "liblockflight-mpi.so"


def program_of(launcher):
    """The program that starts such a launch's ranks, None if none does."""
    return "oshrun" if launcher == OSHMEM else LAUNCHERS.get(launcher)


def launch_command(launcher, names, per_host, command, preload, environment=(), options=()):
    agent = str(pathlib.Path(__file__).with_name("agent"))
    ranks = str(len(names) * per_host)
    said = [*environment, *([f"LD_PRELOAD={preload_of(launcher)}"] if preload else [])]
    if launcher == "mpich":
        # MPICH's launcher is killed by SIGPIPE now and then where ranks end at once.
        return ["env", "--ignore-signal=PIPE", LAUNCHERS[launcher], "-launcher", "ssh",
                "-launcher-exec", agent, "-iface", "eth0", "-hosts", ",".join(names),
                "-ppn", str(per_host), *options, "-n", ranks,
                "env", "--default-signal=PIPE", *said, *command]
    if launcher in RENDEZVOUS:
        # UCX would say on standard output what lockflight says itself.
        return [sys.executable, "-B", str(pathlib.Path(__file__).with_name("rendezvous")),
                f"{names[0]}:{RENDEZVOUS_PORT}", str(per_host), ",".join(names),
                "env", "UCX_LOG_LEVEL=fatal", *said, *command]
    if len(names) * per_host > len(os.sched_getaffinity(0)):
        # Open MPI counts ranks and slots, of which each host has as many as ranks, and not its cores:
        # here a rank that waits must yield.
        options = ["--mca", "mpi_yield_when_idle", "1", *options]
        if launcher == OSHMEM:  # after each step, not after a hundred
            options = ["--mca", "opal_common_ucx_progress_iterations", "1", *options]
    # Its launcher waits for ever for a host that is gone, unless kernels ask for it: a second later
    # than lockflight's ranks do (src/fabric/mpi/watch.cpp), whose exit code it then has.
    options = ["--mca", "oob_tcp_keepalive_time", "2", "--mca", "oob_tcp_keepalive_intvl", "1",
               "--mca", "oob_tcp_keepalive_probes", "6", *options]
    # Open MPI looks at all networks of a host, and takes lo for a way to the others.
    return [program_of(launcher), "--allow-run-as-root", "--oversubscribe", "--bind-to", "none",
            "--mca", "plm_rsh_agent", agent, "--mca", "plm_rsh_no_tree_spawn", "1",
            "--mca", "oob_tcp_if_include", "eth0", "--mca", "btl_tcp_if_include", "eth0",
            "--host", ",".join(f"{n}:{per_host}" for n in names), *options, "-np", ranks,
            "env", *said, *command]
