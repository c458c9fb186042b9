"""Runs that are fine: tables for people, JSON with all its fields, pages, colours."""

import json
import os
import pty
import re
import select
import unittest

from support import PROGRAM, ProgramTest

QUICK = ["--ops", "2000", "--no-pin"]

RUN_FIELDS = {
    "lock", "kind", "fabric", "machine", "workload", "procs", "levels", "writers", "locality",
    "params", "ops", "elapsed_s", "throughput_ops_s", "latency_us", "read", "write", "fabric_ops",
    "handoffs", "fairness_jain", "max_wait_us", "violations",
}
LATENCY_FIELDS = {"mean", "p25", "p50", "p75", "p99", "p999", "max", "deviation"}
NIC_FIELDS = {"put", "get", "add", "fetch_add", "swap", "cas", "flush", "loopback"}
LOCK_FIELDS = {"name", "kind", "source", "fabrics", "parameters", "bytes_home", "bytes_home_per_rank",
               "bytes_per_node", "bytes_per_node_most", "bytes_per_participant"}


def on_a_terminal(arguments, columns, **environment):
    """What the program writes to a terminal; standard error is the same one."""
    child, terminal = pty.fork()
    if child == 0:
        variables = {k: v for k, v in os.environ.items() if k != "NO_COLOR"}
        variables.update(TERM="xterm", COLUMNS=str(columns), **environment)
        os.execve(PROGRAM, [PROGRAM, *arguments], variables)
    out = b""
    while select.select([terminal], [], [], 60)[0]:
        try:
            part = os.read(terminal, 65536)
        except OSError:  # the other side was closed
            break
        if not part:
            break
        out += part
    _, status = os.waitpid(child, 0)
    os.close(terminal)
    return os.waitstatus_to_exitcode(status), out.decode()


class Bench(ProgramTest):
    def bench_json(self, *arguments):
        return json.loads(self.run_well("bench", *QUICK, *arguments, "--json", "-"))

    def test_json_alone_on_standard_output(self):
        result = self.bench_json("--lock", "rma-rw", "--procs", "2")
        self.assertEqual(set(result), {"lockflight", "host", "runs"})
        self.assertIsInstance(result["host"], dict)
        (run,) = result["runs"]
        self.assertLessEqual(RUN_FIELDS, set(run))
        self.assertEqual(set(run["latency_us"]), LATENCY_FIELDS)
        for side in ["read", "write"]:
            self.assertLessEqual({"ops", "latency_us"}, set(run[side]))
        self.assertEqual(set(run["fabric_ops"]), {"nic", "cpu", "messages"})
        self.assertEqual(set(run["fabric_ops"]["nic"]), NIC_FIELDS)
        self.assertEqual(set(run["fabric_ops"]["cpu"]), {"load", "store", "rmw"})
        self.assertEqual((run["lock"], run["procs"], run["ops"]), ("rma-rw", 2, 2000))
        self.assertEqual(run["violations"], 0)
        self.assert_nothing_left()

    def test_every_lock_at_every_number_of_ranks(self):
        names = [lock["name"] for lock in json.loads(self.run_well("locks", "--json"))["locks"]]
        names.remove("msg-deferred")  # by name only
        runs = self.bench_json("--lock", "all", "--procs", "1,2")["runs"]
        self.assertEqual(
            sorted((run["lock"], run["procs"]) for run in runs),
            sorted((name, procs) for name in names for procs in [1, 2]),
        )

    def test_levels_say_how_many_ranks(self):
        (run,) = self.bench_json("--lock", "rma-mcs", "--levels", "2x2")["runs"]
        self.assertEqual((run["procs"], run["levels"]), (4, "2x2"))
        self.assertEqual(len(run["handoffs"]), 2)

    def test_options_reach_the_run(self):
        (run,) = self.bench_json(
            "--lock", "rma-rw", "--procs", "2", "--set", "T_R=64", "--set", "T_DC=2",
            "--writers", "0.25", "--workload", "sob", "--seed", "7", "--role", "process",
            "--waiting", "yield", "--threads")["runs"]
        self.assertEqual((run["params"]["T_R"], run["params"]["T_DC"]), (64, 2))
        self.assertEqual((run["writers"], run["workload"]), (0.25, "sob"))
        self.assertEqual((run["seed"], run["role"], run["threads"]), (7, "process", True))

    def test_lists_may_be_given_in_parts(self):
        runs = self.bench_json("--lock", "spin", "--lock", "d-mcs,spin", "--procs", "1",
                               "--procs", "2")["runs"]
        self.assertEqual(len(runs), 4)

    def test_seconds(self):
        out = self.run_well("bench", "--lock", "spin", "--procs", "1", "--seconds", "0.02",
                            "--json", "-")
        self.assertGreater(json.loads(out)["runs"][0]["ops"], 0)

    def test_the_table(self):
        out = self.run_well("bench", *QUICK, "--lock", "d-mcs,rma-rw", "--procs", "1,2")
        lines = out.splitlines()
        self.assertEqual(lines[0], "ecsb on shm, F_W 0.2 %")
        self.assertEqual(lines[2].split(), [
            "lock", "procs", "ops/s", "mean", "µs", "p50", "µs", "p99", "µs", "max", "µs",
            "net/op", "handoffs/op", "fairness", "wait", "µs", "violations"])
        rows = [line.split() for line in lines[3:8]]
        self.assertEqual([row[:2] for row in rows],
                         [["d-mcs", "1"], ["rma-rw", "1"], [], ["d-mcs", "2"], ["rma-rw", "2"]])
        for row in rows[:2] + rows[3:]:
            self.assertEqual((len(row), row[-1]), (12, "0"), row)
        self.assertEqual(lines[3][-1:] + lines[2][-1:], "0s", "columns are aligned to the right")
        self.assertEqual(len(lines[2]), len(lines[3]))

    def test_what_does_not_differ_is_no_column(self):
        out = self.run_well("bench", *QUICK, "--lock", "d-mcs", "--levels", "2x1", "--writers", "1")
        self.assertTrue(out.startswith("ecsb on shm, procs 2, levels 2x1\n"), out)
        self.assertNotIn("procs ", out.splitlines()[2])

    def test_json_and_html_at_once(self):
        out = self.run_well("bench", *QUICK, "--lock", "spin", "--procs", "1", "--json",
                            "runs.json", "--html", "page.html")
        self.assertIn("wrote runs.json\n", out)
        self.assertIn("wrote page.html\n", out)
        self.assertEqual(json.loads(self.read("runs.json"))["runs"][0]["lock"], "spin")
        self.assertIn("<!doctype html>", self.read("page.html").lower())
        self.assert_nothing_left(["page.html", "runs.json"])

    def test_json_on_standard_output_with_html(self):
        out = self.run_well("bench", *QUICK, "--lock", "spin", "--procs", "1", "--json", "-",
                            "--html", "page.html")
        json.loads(out)
        self.assert_nothing_left(["page.html"])

    def test_trace(self):
        self.run_well("bench", "--lock", "rma-mcs", "--procs", "2", "--ops", "50", "--trace",
                      "t.json")
        self.assertGreater(len(json.loads(self.read("t.json"))["traceEvents"]), 50)
        self.assert_nothing_left(["t.json"])

    def test_a_trace_that_is_full_says_so(self):
        code, out, err = self.run_program("bench", "--fabric", "sim", "--machine", "piz-daint",
                                          "--lock", "d-mcs", "--procs", "1", "--ops", "20000",
                                          "--trace", "t.json")
        self.assertEqual(code, 0, err)
        self.assertIn("wrote t.json", out)
        self.assertRegex(err, r"^lockflight bench: --trace t.json: the trace has room for 65536 "
                              r"events of a rank; it lacks the rest of 1 of 1 ranks, .*--ops\)\n$")
        # An event is at most two lines: a span ends, and the next one begins.
        self.assertLess(self.read("t.json").count("\n"), 2 * 65536 + 8)

    def test_trace_of_a_simulated_machine(self):
        out = self.run_well("bench", "--fabric", "sim", "--machine", "piz-daint", "--lock",
                            "rma-mcs", "--procs", "64", "--ops", "640", "--trace", "t.json")
        self.assertIn("wrote t.json", out)
        events = json.loads(self.read("t.json"))["traceEvents"]
        self.assertEqual(len({event["tid"] for event in events}), 64)
        self.assertEqual(sum(event["name"] == "hold" for event in events), 640)

    def test_a_file_keeps_its_mode_and_a_link_its_place(self):
        self.write("target.json", "old")
        os.chmod(self.path("target.json"), 0o640)
        os.symlink("target.json", self.path("link.json"))
        self.run_well("bench", *QUICK, "--lock", "spin", "--procs", "1", "--json", "link.json")
        self.assertTrue(os.path.islink(self.path("link.json")))
        self.assertEqual(os.stat(self.path("target.json")).st_mode & 0o777, 0o640)
        self.assertIn("runs", json.loads(self.read("target.json")))

    def test_devices_are_written_not_replaced(self):
        self.run_well("bench", *QUICK, "--lock", "spin", "--procs", "1", "--json", "/dev/null")
        self.assertFalse(os.path.isfile("/dev/null"))


class Terminal(unittest.TestCase):
    def test_colours_only_on_a_terminal_and_not_with_no_color(self):
        arguments = ["bench", *QUICK, "--lock", "spin,d-mcs", "--procs", "1"]
        code, out = on_a_terminal(arguments, 200)
        self.assertEqual(code, 0)
        self.assertIn("\x1b[1mlock", out)
        code, out = on_a_terminal(arguments, 200, NO_COLOR="1")
        self.assertEqual(code, 0)
        self.assertNotRegex(out, r"\x1b\[[0-9;]*m")  # a slow run shows its progress, without colours

    def test_a_narrow_terminal_gets_fewer_columns(self):
        arguments = ["bench", *QUICK, "--lock", "spin,fompi-rw-backoff", "--procs", "1,2"]
        _, out = on_a_terminal(arguments, 80, NO_COLOR="1")
        for line in out.splitlines()[:9]:
            self.assertLessEqual(len(line), 80)
        self.assertIn("violations", out)
        self.assertIn("No room here for:", out)

    def test_progress_is_shown_and_erased(self):
        _, out = on_a_terminal(["bench", "--lock", "spin", "--procs", "1", "--seconds", "1.2"], 80)
        self.assertRegex(out, r"\[1/1\] spin, 1 rank: \d+ %")
        self.assertIn("\r\x1b[K\x1b[1mecsb", out)


class Locks(ProgramTest):
    def test_json_is_as_the_design_fixes_it(self):
        document = json.loads(self.run_well("locks", "--json"))
        self.assertEqual(set(document), {"locks"})
        for lock in document["locks"]:
            self.assertEqual(set(lock), LOCK_FIELDS)
            self.assertIn(lock["kind"], ["mutex", "rw"])
            self.assertTrue(lock["source"])
            self.assertIn("shm", lock["fabrics"])
            for parameter in lock["parameters"]:
                self.assertEqual(set(parameter), {"name", "default", "min", "max", "what"})
                self.assertLessEqual(parameter["min"], parameter["default"])
                self.assertLessEqual(parameter["default"], parameter["max"])
        names = [lock["name"] for lock in document["locks"]]
        for name in ["spin", "d-mcs", "rma-mcs", "fompi-rw", "rma-rw", "pthread-rwlock"]:
            self.assertIn(name, names)

    def test_the_table_has_all_of_it(self):
        out = re.sub(r"\s+", " ", self.run_well("locks"))
        for lock in json.loads(self.run_well("locks", "--json"))["locks"]:
            self.assertIn(f"{lock['name']} {lock['kind']} {','.join(lock['fabrics'])} ", out)
            self.assertIn(lock["source"], out)
            for p in lock["parameters"]:
                self.assertIn(f"{p['name']}={p['default']} {p['what']} ({p['min']} to {p['max']})",
                              out)


class MachineOfThisOne(ProgramTest):
    @unittest.skipIf(len(os.sched_getaffinity(0)) < 2, "one processor")
    def test_a_lock_runs_on_a_machine_that_is_fitted_to_shared_memory(self):
        out = self.run_well("doctor", "--fabric", "shm", "--machine-out", "fitted.toml")
        self.assertIn("wrote fitted.toml", out)
        document = json.loads(self.run_well(
            "bench", "--fabric", "sim", "--machine", "fitted.toml", "--lock", "d-mcs", "--procs",
            "2", "--ops", "2000", "--json", "-"))
        run = document["runs"][0]
        self.assertEqual((run["machine"], run["violations"]), ("fitted-shm", 0))
        self.assert_nothing_left(["fitted.toml"])


class Topo(ProgramTest):
    def test_this_machine(self):
        out = self.run_well("topo")
        self.assertIn("what hwloc finds here", out)
        document = json.loads(self.run_well("topo", "--json"))
        self.assertEqual((document["source"], document["nodes"]), ("hwloc", 1))
        self.assertEqual(len(document["ranks"]), document["procs"])

    def test_given_levels(self):
        document = json.loads(self.run_well("topo", "--levels", "2x4", "--json"))
        self.assertEqual(set(document),
                         {"source", "procs", "nodes", "node_level", "levels", "ranks"})
        self.assertEqual((document["source"], document["procs"], document["nodes"],
                          document["node_level"]), ("given", 8, 2, 2))
        self.assertEqual([level["name"] for level in document["levels"]], ["machine", "node"])
        self.assertEqual(document["levels"][1]["elements"][1],
                         {"element": 1, "parent": 0, "ranks": [4, 5, 6, 7], "tail_rank": 4})
        self.assertEqual([rank["counter_rank"] for rank in document["ranks"]], 4 * [0] + 4 * [4])

    def test_the_tree(self):
        out = self.run_well("topo", "--levels", "2x2x2", "--node-level", "2")
        rows = [line.split() for line in out.splitlines()]
        self.assertIn(["├─", "node", "0", "0-3", "0", "0"], [row[:6] for row in rows])
        self.assertIn(["│", "└─", "element", "1", "2-3", "2"], [row[:6] for row in rows])
        self.assertIn("8 ranks on 2 nodes, 3 levels", out)

    def test_one_node_has_a_counter_for_each_rank(self):
        document = json.loads(self.run_well("topo", "--procs", "3", "--json"))
        self.assertEqual([rank["counter_rank"] for rank in document["ranks"]], [0, 1, 2])

    def test_a_million_ranks_are_a_short_tree(self):
        out = self.run_well("topo", "--levels", "1024x1024")
        self.assertLess(len(out.splitlines()), 30)
        self.assertIn("… 1020 more", out)

    # At most 64 bytes a target on the first rank of each node, but for what does not depend on the
    # number of targets; the others have nothing else.
    def test_the_memory_of_windows(self):
        windows = json.loads(self.run_well("topo", "--window", "1024,16384,262144",
                                           "--json"))["windows"]
        self.assertEqual([(w["ranks"], w["nodes"]) for w in windows],
                         [(1024, 8), (16384, 128), (262144, 2048)])
        for window in windows:
            fixed = window["bytes_on_others"] - 64
            self.assertLess(fixed, 4096)
            self.assertEqual(window["bytes_on_first_ranks"], fixed + 64 * window["ranks"])
        out = self.run_well("topo", "--window", "16384")
        self.assertIn("128 ranks a node", out)


class Report(ProgramTest):
    def test_round_trip(self):
        self.run_well("bench", *QUICK, "--lock", "d-mcs,rma-rw", "--procs", "2", "--json",
                      "runs.json", "--html", "first.html")
        self.assertEqual(self.run_well("report", "runs.json", "-o", "again.html"),
                         "wrote again.html\n")
        self.assertEqual(self.read("again.html"), self.read("first.html"))
        self.assertIn("rma-rw", self.read("again.html"))


if __name__ == "__main__":
    unittest.main()
