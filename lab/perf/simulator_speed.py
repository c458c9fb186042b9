"""How fast the simulator is, for lab/perf/perf.

Rates are per second of processor time, so that what else the machine does matters less, and of the
difference of two runs, a long one less a short one, so that the start of a program drops out.
"""

import functools
import pathlib
import shutil
import tempfile
import time
from dataclasses import dataclass

from measuring import (PROGRAM, ROOT, NotMeasured, largest_program_gib, output_of,
                       processor_seconds, text_of)


def rate(run, short, long):
    """Operations a second; run(n) returns how many operations it took to acquire n times."""
    (few, briefly), (many, lengthily) = (
        processor_seconds(functools.partial(run, acquires)) for acquires in (short, long))
    return (many - few) / max(lengthily - briefly, 0.01)


def network_operations(counts):
    """Loopback is counted among the others already; a flush is no operation of the network."""
    return counts["messages"] + sum(
        number for kind, number in counts["nic"].items() if kind not in ("loopback", "flush"))


def all_operations(counts):
    return network_operations(counts) + counts["nic"]["flush"] + sum(counts["cpu"].values())


@dataclass(frozen=True)
class SimulatorSpeed:
    """Operations a second of `lockflight bench --fabric sim`, all acquires exclusive."""

    lock: str
    procs: int
    network_only: bool = False

    def operations(self, acquires):
        found = output_of([
            PROGRAM, "bench", "--fabric", "sim", "--machine",
            str(ROOT / "lab" / "machines" / "piz-daint.toml"), "--lock", self.lock, "--workload", "ecsb",
            "--procs", str(self.procs), "--writers", "1", "--ops", str(acquires), "--json", "-"])
        counts = found["runs"][0]["fabric_ops"]
        return network_operations(counts) if self.network_only else all_operations(counts)

    def sample(self, _seconds):
        return rate(self.operations, 50_000, 400_000)


# Nodes that are as far apart as those of piz-daint.toml, about: a route is two of these links.
PLATFORM = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="nodes" prefix="node-" suffix="" radical="0-{last}" speed="1Gf" bw="6.25GBps"
           lat="400ns"/>
</platform>
"""


@dataclass(frozen=True)
class SmpiSpeed:
    """Network operations a second of SimGrid's SMPI, running the same protocol in MPI-3."""

    waiting: str
    lock: str = "d-mcs in SMPI"
    procs: int = 64

    def sample(self, _seconds):
        if shutil.which("smpicc") is None or shutil.which("smpirun") is None:
            raise NotMeasured("apt-get install libsimgrid-dev")
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "platform.xml").write_text(PLATFORM.format(last=self.procs - 1))
            (folder / "hosts").write_text("".join(f"node-{i}\n" for i in range(self.procs)))
            text_of(["smpicc", "-O2", "-o", "d_mcs", str(ROOT / "lab" / "perf" / "d_mcs_on_mpi.c")],
                    folder)
            return rate(functools.partial(self.operations, folder), 3_200, 32_000)

    # Without the program's own computing, which SMPI would measure and add to its clock.
    def operations(self, folder, acquires):
        text = text_of(["smpirun", "-np", str(self.procs), "-platform", "platform.xml",
                        "-hostfile", "hosts", "--cfg=smpi/simulate-computation:no",
                        "--log=root.thresh:error", "./d_mcs", self.waiting, str(acquires)], folder)
        return int(text.split()[0])


@functools.cache
def whole_k_computer(lock):
    """What it takes to simulate one acquire and release by each of its ranks, all at once."""
    begun = time.monotonic()
    run = output_of([PROGRAM, "bench", "--fabric", "sim", "--machine",
                     str(ROOT / "lab" / "machines" / "fx100.toml"), "--lock", lock, "--workload", "lb",
                     "--procs", "663552", "--ops", "663552", "--writers", "0", "--json", "-"],
                    seconds=3600)["runs"][0]
    return {"seconds": time.monotonic() - begun, "gib": largest_program_gib(),
            "slowest_us": run["latency_us"]["max"]}


@dataclass(frozen=True)
class KComputer:
    """One run with as many ranks as the K computer has cores, measured once."""

    take: str
    lock: str = "mcs-rw-rp"
    procs: int = 663_552

    def sample(self, _seconds):
        return whole_k_computer(self.lock)[self.take]
