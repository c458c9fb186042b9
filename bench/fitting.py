"""How near the simulator comes to a fabric with a machine that is fitted to it, for bench/perf_ucx."""

import json
import pathlib
import statistics
import subprocess
import tempfile

import measuring
import support

LOCKS = ["d-mcs", "rma-mcs", "rma-rw", "flight", "flight-rw"]
HOSTS = 2
RANKS_ON_EACH = 2
# Of virtual time: the same seed gives the same run, so that more of it changes little.
SIMULATED_SECONDS = 0.02
END_OF_JSON = "\n}\n"


def text_of_launch(hosts, launcher, command, mark, seconds):
    """What rank 0 of a launch prints, `mark` at its end."""
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


def heading():
    print(f"{'':<8} {'':<10} {'ops/s: real':>12} {'simulated':>12} {'ratio':>7}   "
          f"{'p50 us: real':>10} {'simul.':>8} {'ratio':>7}   real ops/s of all rounds")
