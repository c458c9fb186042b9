"""How near the simulator comes to a fabric with a machine that is fitted to it.

For lab/perf/perf_ucx, over hosts, and for lab/perf/perf, on the cores of this machine.
"""

import json
import pathlib
import statistics
import subprocess
import tempfile

import measuring

LOCKS = ["d-mcs", "rma-mcs", "rma-rw", "flight", "flight-rw"]
HOSTS = 2
RANKS_ON_EACH = 2
# Of virtual time: the same seed gives the same run, so that more of it changes little.
SIMULATED_SECONDS = 0.02
END_OF_JSON = "\n}\n"


def text_of_launch(hosts, launcher, command, mark, seconds):
    """What rank 0 of a launch prints, `mark` at its end."""
    import support  # pylint: disable=import-outside-toplevel  # of the testbed, which perf_ucx finds

    running = hosts.launch(launcher, RANKS_ON_EACH, command, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True)
    passed, said = support.passed(running, mark, seconds)
    if not passed:
        raise measuring.Failed(f"{launcher}: {' '.join(command)}: exit code {running.returncode}: "
                               f"{said.strip()[-500:]}")
    return said


def runs_in(text):
    text = text[text.index("{"):text.index(END_OF_JSON) + len(END_OF_JSON)]
    return {run["lock"]: run for run in json.loads(text)["runs"]}


def compare(hosts, launcher, program, given):
    """Prints a row for each lock: the simulated figure over the measured one."""
    fabric = "ucx" if launcher == "ucx" else "mpi"
    with tempfile.TemporaryDirectory() as folder:
        machine = str(pathlib.Path(folder, "fitted.toml"))
        text_of_launch(hosts, launcher, [program, "doctor", "--fabric", fabric, "--machine-out",
                                         machine], "wrote ", 60)
        simulated = runs_in(measuring.text_of(
            [measuring.PROGRAM, "bench", "--fabric", "sim", "--machine", machine, "--levels",
             f"{HOSTS}x{RANKS_ON_EACH}", "--lock", ",".join(LOCKS), "--seconds",
             str(SIMULATED_SECONDS), "--json", "-"]))
    real = [runs_in(text_of_launch(
        hosts, launcher, [program, "bench", "--fabric", fabric, "--lock", ",".join(LOCKS),
                          "--seconds", str(given.seconds), "--json", "-"],
        END_OF_JSON, 60 + 10 * len(LOCKS) * given.seconds)) for _ in range(given.rounds)]
    for lock in LOCKS:
        rates = [one[lock]["throughput_ops_s"] for one in real]
        middles = [one[lock]["latency_us"]["p50"] for one in real]
        rate = simulated[lock]["throughput_ops_s"]
        middle = simulated[lock]["latency_us"]["p50"]
        print(f"{launcher:<8} {lock:<10} {statistics.median(rates):12.4g} {rate:12.4g} "
              f"{rate / statistics.median(rates):7.2f}   {statistics.median(middles):10.4g} "
              f"{middle:10.4g} {middle / statistics.median(middles):7.2f}   "
              f"{min(rates):.3g} to {max(rates):.3g}", flush=True)


def compare_shared_memory(cores, rounds, seconds):
    """Prints a row for each lock and number of ranks, with a core for each: the simulated figures
    over the measured ones."""
    with tempfile.TemporaryDirectory() as folder:
        machine = str(pathlib.Path(folder, "fitted.toml"))
        measuring.text_of([measuring.PROGRAM, "doctor", "--fabric", "shm", "--machine-out", machine])
        for key in ("hit_ns", "rmw_ns", "socket_transfer_ns", "wake_ns"):
            lines = pathlib.Path(machine).read_text(encoding="utf-8").splitlines()
            print(next(line for line in lines if line.startswith(f"{key} ")))
        print(f"{'':<10} {'ranks':>5} {'ops/s: real':>12} {'simulated':>12} {'ratio':>7}   "
              f"{'p50 us: real':>12} {'simul.':>8} {'ratio':>7}")
        for ranks in [2**n for n in range(1, cores.bit_length()) if 2**n <= cores]:
            common = ["--lock", ",".join(LOCKS), "--procs", str(ranks), "--json", "-"]
            simulated = runs_in(measuring.text_of(
                [measuring.PROGRAM, "bench", "--fabric", "sim", "--machine", machine, "--seconds",
                 str(SIMULATED_SECONDS / 10), *common]))
            real = [runs_in(measuring.text_of([measuring.PROGRAM, "bench", "--fabric", "shm",
                                               "--seconds", str(seconds), *common]))
                    for _ in range(rounds)]
            for lock in LOCKS:
                rate = statistics.median(one[lock]["throughput_ops_s"] for one in real)
                middle = statistics.median(one[lock]["latency_us"]["p50"] for one in real)
                found = simulated[lock]
                print(f"{lock:<10} {ranks:>5} {rate:12.4g} {found['throughput_ops_s']:12.4g} "
                      f"{found['throughput_ops_s'] / rate:7.2f}   {middle:12.4g} "
                      f"{found['latency_us']['p50']:8.4g} "
                      f"{found['latency_us']['p50'] / middle:7.2f}", flush=True)


def heading():
    print(f"{'':<8} {'':<10} {'ops/s: real':>12} {'simulated':>12} {'ratio':>7}   "
          f"{'p50 us: real':>10} {'simul.':>8} {'ratio':>7}   real ops/s of all rounds")
