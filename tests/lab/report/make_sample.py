#!/usr/bin/env python3
"""Writes sample.json, the document that the report's tests render.

The numbers come out of a small made-up model and measure nothing: what matters is that they have
the shapes that real runs have. The output is the same at every run.
"""

import json
import math
import random
import sys

PROCS = [4, 16, 64, 256, 1024]
# name, kind, cost of one handoff in us, how it grows with ranks, network operations per op
LOCKS = [
    ("flight-rw", "rw", 1.3, 0.10, 0.6),
    ("flight", "mutex", 1.4, 0.12, 1.1),
    ("rma-rw", "rw", 2.3, 0.16, 2.4),
    ("rma-mcs", "mutex", 2.1, 0.15, 2.2),
    ("alock", "mutex", 1.9, 0.20, 1.6),
    ("d-mcs", "mutex", 2.6, 0.28, 3.1),
    ("fompi-rw", "rw", 2.2, 0.62, 6.0),
    ("spin", "mutex", 1.8, 0.85, 9.0),
]
WORKLOADS = [("ecsb", 1.0), ("warb", 0.02)]


def rounded(value):
    return float(f"{value:.4g}")


def latency(mean, spread):
    stretch = [("p25", -0.67), ("p50", 0.0), ("p75", 0.67), ("p99", 2.33), ("p999", 3.09),
               ("max", 4.1)]
    out = {"mean": rounded(mean * math.exp(spread**2 / 2))}
    out.update({name: rounded(mean * math.exp(spread * z)) for name, z in stretch})
    return out


def cdf(mean, spread):
    points = []
    for i in range(41):
        z = -3.2 + 0.18 * i
        fraction = 0.5 * (1 + math.erf(z / math.sqrt(2)))
        points.append([rounded(mean * math.exp(spread * z)), round(fraction, 5)])
    points[-1][1] = 1.0
    return points


def fabric_ops(name, ops, per_op, procs, reads, rng):
    count = lambda share: round(ops * per_op * share * rng.uniform(0.96, 1.04))
    rw = name.endswith("rw")
    local = name.startswith("flight") or name == "alock"
    spinning = name == "spin"
    nic = {
        "put": 0 if spinning else count(0.34),
        "get": count(0.16) if rw else 0,
        "add": count(0.1 + 0.2 * reads) if name == "fompi-rw" else 0,
        "fetch_add": count(0.2) if rw else 0,
        "swap": 0 if spinning else count(0.24),
        "cas": count(0.92 if spinning else 0.2),
        "flush": count(0.5),
        "loopback": 0 if local else count(0.9 / math.sqrt(procs)),
    }
    cpu = {
        "load": round(ops * (3.4 if local else 1.2)),
        "store": round(ops * (1.1 if local else 0.4)),
        "rmw": round(ops * (1.6 if local else 0.0)),
    }
    return {"nic": nic, "cpu": cpu, "messages": 0}


def handoffs(name, ops, procs):
    if name in ("spin", "fompi-rw"):
        return [0, 0]
    if name == "d-mcs":
        return [round(ops * (1 - 1 / procs)), 0]
    inner = 0.86 if name.startswith("flight") else 0.74
    return [round(ops * (0.94 - inner)), round(ops * inner)]


def run(lock, workload, writers, procs, rng):
    name, kind, cost, growth, per_op = lock
    reads = 1 - writers if kind == "rw" else 0.0
    serial = cost * procs**growth * (1 - reads * (0.97 if name == "flight-rw" else 0.85))
    throughput = 1e6 / serial * rng.uniform(0.97, 1.03)
    if kind == "rw" and reads:
        throughput = min(throughput * procs**0.55, 4e5 * procs)
    elapsed = 0.5
    ops = round(throughput * elapsed)
    mean = procs / throughput * 1e6
    spread = 0.25 + growth
    read_ops = round(ops * reads)
    none = {key: None for key in latency(1, 1)}
    out = {
        "lock": name, "kind": kind, "fabric": "sim", "machine": "cray-xc30",
        "workload": workload, "procs": procs, "levels": f"{procs // 4}x4", "writers": writers,
        "locality": None,
        "params": {"T_DC": 16, "T_R": 64} if kind == "rw" else {},
        "ops": ops, "elapsed_s": elapsed, "throughput_ops_s": rounded(throughput),
        "latency_us": latency(mean, spread),
        "read": {"ops": read_ops, "latency_us": latency(mean * 0.8, spread) if read_ops else none},
        "write": {"ops": ops - read_ops, "latency_us": latency(mean * 1.9, spread * 1.2)},
        "fabric_ops": fabric_ops(name, ops, per_op * (1 + growth * math.log2(procs) / 8), procs,
                                 reads, rng),
        "handoffs": handoffs(name, ops, procs),
        "fairness_jain": round(1 - growth**2 * (1 - 4 / (procs + 4)) * 0.9, 4),
        "max_wait_us": rounded(mean * math.exp(spread * 4.3)),
        "violations": 0,
    }
    if workload == "ecsb":
        out["latency_cdf"] = cdf(mean, spread)
    return out


def main():
    rng = random.Random(20160531)
    runs = [run(lock, workload, writers, procs, rng)
            for workload, writers in WORKLOADS for lock in LOCKS for procs in PROCS]
    host = {"date": "2025-01-31T12:00:00Z", "name": "made up for the tests", "cpus": 2,
            "cpu_model": "none: the numbers measure nothing", "os": "Linux 6.1",
            "compiler": "g++ 12.2.0", "build": {"type": "Release", "sanitizer": None}}
    # One run per line keeps the file short and its differences readable.
    lines = ",\n".join(json.dumps(one, separators=(",", ":")) for one in runs)
    sys.stdout.write('{"lockflight":"0.1.0",\n"host":%s,\n"runs":[\n%s\n]}\n'
                     % (json.dumps(host, separators=(",", ":")), lines))


if __name__ == "__main__":
    main()
