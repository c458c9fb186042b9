"""Bad usage and bad input: exit code 2, one line that names argument, value and what is accepted,
and nothing left behind."""

import json
import os
import unittest

from support import PROGRAM, ProgramTest, checked, shared_memory

# (arguments, what the line must contain: the argument, its value, what is accepted)
BENCH = [
    (["--lock", "spni"], ["--lock", "'spni'", "nearest: spin", "d-mcs"]),
    (["--lock", "rma_mcs"], ["--lock", "'rma_mcs'", "nearest: rma-mcs"]),
    (["--lock", "d-mcs,nope"], ["--lock", "'nope'", "accepted", "d-mcs"]),
    (["--lock", ""], ["--lock", "''", "accepted"]),
    (["--lock", "a,,b"], ["--lock", "'a,,b'", "accepted"]),
    (["--lock"], ["--lock", "''", "A,B|all"]),
    (["--workload", "ecbs"], ["--workload", "'ecbs'", "nearest: ecsb", "lb"]),
    (["--fabric", "infiniband"], ["--fabric", "'infiniband'", "shm"]),
    (["--machine", "cray.toml"], ["--machine", "'cray.toml'", "accepted"]),
    (["--procs", "0"], ["--procs", "'0'", "1 to 4096"]),
    (["--procs", "-1"], ["--procs", "'-1'", "1 to 4096"]),
    (["--procs", "1e9"], ["--procs", "'1e9'", "1 to 4096"]),
    (["--procs", "2,x"], ["--procs", "'2,x'", "1 to 4096"]),
    (["--procs", "2,"], ["--procs", "'2,'", "1 to 4096"]),
    (["--procs", "4097"], ["--procs", "'4097'", "1 to 4096"]),
    (["--procs", "99999999999999999999"], ["--procs", "'99999999999999999999'", "1 to 4096"]),
    (["--procs", "1\n2"], ["--procs", "'1\\x0a2'", "1 to 4096"]),
    (["--levels", "2x"], ["--levels", "'2x'", "2x4"]),
    (["--levels", "0x3"], ["--levels", "'0x3'", "2x4"]),
    (["--levels", "-2x3"], ["--levels", "'-2x3'", "2x4"]),
    (["--levels", "1000x1000"], ["--levels", "'1000x1000'", "4096"]),
    (["--levels", "1x1x1x1x2"], ["--levels", "'1x1x1x1x2'", "4 levels"]),
    (["--levels", "2x2", "--procs", "3"], ["--levels", "'2x2'", "--procs 3", "4"]),
    (["--levels", "2x2", "--procs", "4,8"], ["--levels", "'2x2'", "--procs 8", "4"]),
    (["--levels", "2x2", "--node-level", "3"], ["--node-level", "'3'", "1 to 2"]),
    (["--node-level", "0"], ["--node-level", "'0'", "accepted"]),
    (["--writers", "1.5"], ["--writers", "'1.5'", "0 to 1"]),
    (["--writers", "nan"], ["--writers", "'nan'", "0 to 1"]),
    (["--writers", "some"], ["--writers", "'some'", "0 to 1"]),
    (["--role", "proces"], ["--role", "'proces'", "nearest: process", "operation"]),
    (["--ops", "0"], ["--ops", "'0'", "from 1"]),
    (["--ops", "many"], ["--ops", "'many'", "from 1"]),
    (["--ops", "10", "--seconds", "1"], ["--ops", "'10'", "--seconds", "'1'", "not both"]),
    (["--seconds", "0"], ["--seconds", "'0'", "accepted"]),
    (["--seconds", "inf"], ["--seconds", "'inf'", "accepted"]),
    (["--seconds", "1s"], ["--seconds", "'1s'", "accepted"]),
    (["--seed", "-1"], ["--seed", "'-1'", "from 0"]),
    (["--seed", "1", "--seed", "2"], ["--seed", "'1 2'", "one value"]),
    (["--set", "T_R"], ["--set", "'T_R'", "NAME=VALUE"]),
    (["--set", "T_R="], ["--set", "'T_R='", "NAME=VALUE"]),
    (["--set", "=3"], ["--set", "'=3'", "NAME=VALUE"]),
    (["--set", "T_R=x"], ["--set", "'T_R=x'", "NAME=VALUE"]),
    (["--set", "T_R=0"], ["--set", "'T_R=0'", "1 to "]),
    (["--set", "T_DC=-1"], ["--set", "'T_DC=-1'", "0 to "]),
    (["--set", "T_R=9", "--set", "T_R=8"], ["--set", "'T_R=8'", "once"]),
    (["--set", "TR=9"], ["--set", "'TR'", "nearest: T_R"]),
    (["--lock", "spin", "--set", "T_R=9"], ["--set", "T_R", "no parameters"]),
    (["--lock", "flight-rw", "--set", "adaptive=1"], ["--set", "'adaptive'", "T_W"]),
    (["--nodes", "0-1"], ["--nodes", "'0-1'", "--fabric sim"]),
    (["--workload", "contention", "--server-load", "2"], ["--server-load", "'2'", "--fabric sim"]),
    (["--workload", "contention", "--server-load", "many"], ["--server-load", "'many'", "from 0"]),
    (["--workload", "table", "--locks", "0"], ["--locks", "'0'", "1 to 100000"]),
    (["--workload", "table", "--locks", "-3"], ["--locks", "'-3'"]),
    (["--workload", "table", "--locality", "1.5"], ["--locality", "'1.5'", "0 to 1"]),
    (["--locks", "5"], ["--locks", "'5'", "table, contention or zipf"]),
    (["--workload", "cascade", "--procs", "1"], ["--procs", "'1'", "at least 2"]),
    (["--sweep", "T_R"], ["--sweep", "'T_R'", "T_R=10,100,1000"]),
    (["--sweep", "writers=0.5,2"], ["--writers", "'2'", "0 to 1"]),
    (["--sweep", "locks=1.5", "--workload", "table"], ["--sweep", "'1.5'", "whole number"]),
    (["--sweep", "locks=1,2"], ["--locks", "'1'", "table, contention or zipf"]),
    (["--sweep", "hold=1,2", "--hold", "3", "--workload", "contention"],
     ["--sweep", "'hold=1,2'", "--hold does not give"]),
    (["--sweep", "T_R=1,x"], ["--sweep", "'T_R=x'", "whole number"]),
    (["--waiting", "sleep"], ["--waiting", "'sleep'", "auto, spin, yield, park"]),
    (["--fabric", "sim"], ["--machine", "''", "piz-daint"]),
    (["--fabric", "sim", "--machine", "piz"], ["--machine", "'piz'", "piz-daint"]),
    (["--fabric", "sim", "--machine", "scc", "--machine-set", "nic.gap=3"],
     ["--machine-set", "'nic.gap=3'", "table.key"]),
    (["--fabric", "sim", "--machine", "scc", "--machine-set", "nic.gap_ns=x"],
     ["--machine-set", "nic.gap_ns=", "'x'", "from 0"]),
    (["--fabric", "sim", "--machine", "scc", "--machine-set", "nic.atomic_engines=0"],
     ["--machine-set", "nic.atomic_engines", "'0'", "1 to"]),
    (["--machine-set", "nic.gap_ns=3"], ["--machine-set", "'nic.gap_ns'", "sim"]),
    (["--machine-set", "3"], ["--machine-set", "'3'", "TABLE.KEY=V"]),
    (["--workload", "primitive", "--operation", "gte"], ["--operation", "'gte'", "nearest: get"]),
    (["--operation", "get"], ["--operation", "'get'", "primitive"]),
    (["--workload", "primitive", "--lock", "spin"], ["--lock", "'spin'", "takes no lock"]),
    (["--threads=no"], ["--threads", "'no'", "no value"]),
    (["--json", "/nonexistent/runs.json"], ["--json", "'/nonexistent/runs.json'", "written"]),
    (["--json", "."], ["--json", "'.'", "directory"]),
    (["--html", "/nonexistent/r.html"], ["--html", "'/nonexistent/r.html'", "written"]),
    (["--html", ""], ["--html", "''", "name of a file"]),
    (["--html", "-"], ["--html", "'-'", "name of a file"]),
    (["--html", "--no-pin"], ["--html", "'--no-pin'", "FILE"]),
    (["--json", "same", "--html", "./same"], ["--html", "'./same'", "--json"]),
    (["--lock", "spin", "--procs", "1", "--trace", "/nonexistent/t.json"],
     ["--trace", "'/nonexistent/t.json'", "written"]),
    (["--lock", "all", "--trace", "t.json"], ["--trace", "'t.json'", "one lock"]),
    (["--fabric", "sim", "--machine", "scc", "--procs", "2", "--trace", "t.json"],
     ["--trace", "'t.json'", "one lock"]),
    (["--lokc", "spin"], ["'--lokc'", "nearest: --lock", "--workload"]),
    (["-x"], ["'-x'", "--lock"]),
    (["spin"], ["'spin'", "lockflight bench --help"]),
    (["locks"], ["'locks'", "lockflight bench --help"]),
]

OTHERS = [
    ([], ["command", "''", "bench", "--help"]),
    (["bnech"], ["command", "'bnech'", "nearest: bench", "locks"]),
    (["--jsn"], ["option", "'--jsn'", "--version"]),
    (["bench", "--profile", "nowhere.toml"], ["--profile", "'nowhere.toml'", "No such file"]),
    (["tune"], ["--lock", "''", "rma-rw"]),
    (["tune", "--lock", "all"], ["--lock", "'all'", "rma-rw"]),
    (["tune", "--lock", "rma_rw"], ["--lock", "'rma_rw'", "nearest: rma-rw"]),
    (["tune", "--lock", "d-mcs"], ["--lock", "'d-mcs'", "parameters"]),
    (["tune", "--lock", "rma-rw", "--procs", "1,2"], ["--procs", "'1,2'", "one number"]),
    (["tune", "--lock", "rma-rw", "--parameter", "TR"], ["--parameter", "'TR'", "nearest: T_R"]),
    (["tune", "--lock", "rma-rw", "--parameter", "T_R=1,"], ["--parameter", "'1,'", "T_R=100"]),
    (["tune", "--lock", "rma-rw", "--parameter", "=1"], ["--parameter", "'=1'", "T_R=100"]),
    (["tune", "--lock", "rma-rw", "--parameter", "T_R=x"], ["--parameter", "'T_R=x'", "whole"]),
    (["tune", "--lock", "rma-rw", "--parameter", "T_R=0"], ["--parameter", "'T_R=0'", "1 to "]),
    (["tune", "--lock", "rma-rw", "--parameter", "T_R", "--parameter", "T_R=5"],
     ["--parameter", "'T_R=5'", "once"]),
    (["tune", "--lock", "rma-rw", "--parameter", "T_R", "--set", "T_R=5"],
     ["--parameter", "'T_R'", "--set"]),
    (["tune", "--lock", "rma-rw", "--objective", "speed"], ["--objective", "'speed'", "throughput"]),
    (["tune", "--lock", "rma-rw", "--turns", "0"], ["--turns", "'0'", "from 1"]),
    (["tune", "--lock", "rma-rw", "--budget", "0"], ["--budget", "'0'", "from 0.001"]),
    (["tune", "--lock", "rma-rw", "--runs", "0"], ["--runs", "'0'", "from 1"]),
    (["tune", "--lock", "rma-rw", "--runs", "9", "--budget", "9"], ["--runs", "'9'", "not both"]),
    (["tune", "--lock", "rma-rw", "--sweep", "T_R=1"], ["'--sweep'", "--parameter"]),
    (["tune", "--lock", "rma-rw", "--out", "/nonexistent/p.toml"], ["--out", "'/nonexistent/p.toml'"]),
    (["tune", "--lock", "rma-rw", "--out", "same", "--json", "./same"], ["--json", "'./same'", "--out"]),
    (["check"], ["--lock", "missing", "d-mcs"]),
    (["check", "--lock", "dmcs"], ["--lock", "'dmcs'", "nearest: d-mcs"]),
    (["check", "--lock", "flight-rw", "--set", "adaptive=1"], ["--set", "'adaptive'", "T_W"]),
    (["check", "--lock", "d-mcs", "--writers", "x"], ["--writers", "'x'", "0 to"]),
    (["check", "--lock", "d-mcs", "--most-overtaken", "x"], ["--most-overtaken", "'x'", "0 to 1000000"]),
    (["check", "--lock", "d-mcs", "--memory", "sc"], ["--memory", "'sc'", "tso", "views"]),
    (["check", "--lock", "d-mcs", "--memory", "views", "--off", "mixed"], ["--off mixed", "--memory views", "accepted"]),
    (["check", "--lock", "d-mcs", "--most-overtaken", "0", "--starvation", "all"],
     ["--most-overtaken 0", "--starvation", "accepted"]),
    (["check", "--lock", "d-mcs", "--starvation", "some"], ["--starvation", "'some'", "leaving"]),
    (["check", "--lock", "d-mcs", "--starvation", "readers"], ["--starvation readers", "accepted"]),
    (["check", "--lock", "d-mcs", "--rounds", "2,3,1"], ["--rounds of 3", "2"]),
    (["check", "--lock", "d-mcs", "--rounds", "2,"], ["--rounds", "'2,'", "0 to 1000"]),
    (["check", "--lock", "d-mcs", "--rounds", "0,0"], ["--rounds", "'0,0'", "1 to 1000"]),
    (["check", "--lock", "d-mcs", "--starvation", "all", "--rounds", "2"], ["--rounds", "'2'", "only 1 or 0"]),
    (["check", "--lock", "msg-deferred", "--starvation", "leaving"], ["msg-deferred", "all of an epoch"]),
    (["check", "--lock", "d-mcs", "--levels", "2x"], ["--levels", "'2x'", "2x4"]),
    (["locks", "--jsno"], ["option", "'--jsno'", "nearest: --json"]),
    (["locks", "spin"], ["argument", "'spin'", "--help"]),
    (["topo", "--levels", "2x"], ["--levels", "'2x'", "2x4"]),
    (["topo", "--levels", "0x3"], ["--levels", "'0x3'", "2x4"]),
    (["topo", "--levels", "4000x4000"], ["--levels", "'4000x4000'", "1048576"]),
    (["topo", "--procs", "0"], ["--procs", "'0'", "1 to"]),
    (["topo", "--procs", "1e9"], ["--procs", "'1e9'", "1 to"]),
    (["topo", "--window", "0"], ["--window", "'0'", "1 to"]),
    (["topo", "--window", "8", "--procs", "8"], ["--window", "--procs", "RANKS"]),
    (["topo", "--levels", "2x4", "--procs", "9"], ["--procs", "'9'", "8", "2x4"]),
    (["topo", "--levels", "2x4", "--node-level", "3"], ["--node-level", "'3'", "1 to 2"]),
    (["doctor", "--program", "/nowhere"], ["--program", "'/nowhere'", "No such file"]),
    (["doctor", "--program", "/"], ["--program", "'/'", "not a file"]),
    (["doctor", "--program", "/etc/passwd"], ["--program", "'/etc/passwd'", "not an executable"]),
    (["doctor", "--program", __file__], ["--program", "accepted", "not an executable"]),
    (["doctor", "--program", PROGRAM, "--fabric", "shm"], ["--fabric", "'shm'", "--program"]),
    (["doctor", "--fabric", "shm"], ["--fabric", "'shm'", "--machine-out"]),
    (["doctor", "--fabric", "shm", "--machine-out", "m", "--json", "-"], ["--json", "shm"]),
    (["doctor", "--fabric", "shm", "--machine-out", "/nowhere/m"], ["--machine-out", "'/nowhere/m'"]),
    (["doctor", "--program", PROGRAM, "--machine-out", "m"], ["--machine-out", "'m'", "--program"]),
    (["report"], ["FILE.json", "''", "lockflight bench --json"]),
    (["report", "nowhere.json", "-o", "r.html"], ["FILE.json", "'nowhere.json'", "accepted"]),
    (["report", "a.json", "b.json", "-o", "r.html"], ["'b.json'", "one FILE.json"]),
    (["reproduce", "rmaa"], ["PAPER", "'rmaa'", "nearest: rma", "all, rma, alock, fx100, dlm, scc, dslr, shiftlock, declock, farlock"]),
    (["reproduce", "beyondd"], ["PAPER", "'beyondd'", "nearest: beyond", "declock, farlock, beyond"]),
    (["reproduce", "nowhere.toml"], ["PAPER", "'nowhere.toml'", "a claim file"]),
    (["reproduce", "--jobs", "0"], ["--jobs", "'0'", "1 to"]),
    (["reproduce", "--list", "--html", "r.html"], ["--html", "'r.html'", "--list"]),
    (["reproduce", "--json", "same", "--html", "./same"], ["--html", "'./same'", "--json"]),
    (["reproduce", "--json", "/nonexistent/c.json"], ["--json", "'/nonexistent/c.json'"]),
    (["grid", "--machine", "piz-dain"], ["--machine", "'piz-dain'", "nearest: piz-daint"]),
    (["grid", "--procs", "0"], ["--procs", "'0'", "1 to"]),
    (["grid", "--machine", "scc", "--procs", "49"], ["--procs", "'49'", "has"]),
    (["grid", "--locks", "0"], ["--locks", "'0'", "1 to"]),
    (["grid", "--writers", "2"], ["--writers", "'2'", "0 to 1"]),
    (["grid", "--times", "0"], ["--times", "'0'", "1 to"]),
    (["grid", "--jobs", "x"], ["--jobs", "'x'", "1 to"]),
    (["grid", "--json", "/nonexistent/g.json"], ["--json", "'/nonexistent/g.json'"]),
    (["run", "--domain=", "name", "--", "true"], ["domain name ''", "1 to 64"]),
    (["run", "--timeout=", "1", "--", "true"], ["--timeout", "''", "seconds"]),
    (["grid", "--locks="], ["--locks", "''", "1 to"]),
    (["completion"], ["SHELL", "''", "bash, zsh, fish"]),
    (["completion", "tcsh"], ["SHELL", "'tcsh'", "bash, zsh, fish"]),
    (["man", "bench"], ["'bench'", "--help"]),
]


class BadUsage(ProgramTest):
    def assert_refused(self, arguments, words, before=()):
        with self.subTest(arguments=arguments):
            shared = shared_memory()
            code, out, err = self.run_program(*arguments)
            self.assertEqual((code, out), (2, ""), err)
            self.assertTrue(err.endswith("\n") and err.count("\n") == 1, f"not one line: {err!r}")
            self.assertTrue(err.isprintable() or err[:-1].isprintable(), repr(err))
            self.assertTrue(err.startswith("lockflight"), err)
            for word in words:
                self.assertIn(word, err)
            self.assertIn("accepted", err)
            self.assert_nothing_left(before)
            self.assertEqual(shared_memory() - shared, set())

    def test_bench(self):
        for arguments, words in BENCH:
            self.assert_refused(["bench", *arguments], [*words, "lockflight bench"])

    def test_the_others(self):
        for arguments, words in OTHERS:
            self.assert_refused(arguments, words)

    def test_terminal_escapes_in_values_are_shown_not_sent(self):
        self.assert_refused(["bench", "--lock", "a\x1b[31mb"], ["--lock", "a\\x1b[31mb"])

    def test_long_values_are_cut(self):
        for option in ["--procs", "--levels", "--set", "--role"]:
            code, _, err = self.run_program("bench", option, "y" * 5000)
            self.assertEqual(code, 2)
            self.assertLess(len(err), 500, option)

    def test_no_output_is_written_over_before_all_is_checked(self):
        self.write("runs.json", "precious")
        self.assert_refused(
            ["bench", "--json", "runs.json", "--html", "/nonexistent/r.html"],
            ["--html"],
            before=["runs.json"],
        )
        self.assertEqual(self.read("runs.json"), "precious")

    def test_a_file_that_is_read_only(self):
        self.write("runs.json", "precious")
        os.chmod(self.path("runs.json"), 0o444)
        arguments = ["bench", "--json", "runs.json"]
        if os.geteuid() != 0:
            return self.assert_refused(arguments, ["--json"], before=["runs.json"])
        # Root may write everything, unless it gives up that right.
        code, out, err = checked(
            ["setpriv", "--inh-caps=-dac_override", "--bounding-set=-dac_override", PROGRAM,
             *arguments], cwd=self.folder)
        self.assertEqual((code, out, err.count("\n")), (2, "", 1), err)
        self.assertIn("--json 'runs.json' (accepted: ", err)
        self.assertEqual(self.read("runs.json"), "precious")
        self.assert_nothing_left(["runs.json"])


class DamagedJson(ProgramTest):
    def sample(self):
        with open(f"{os.environ['LOCKFLIGHT_SOURCE_DIR']}/tests/lab/report/sample.json",
                  encoding="utf-8") as file:
            return json.load(file)

    def assert_damaged(self, text, words):
        self.write("runs.json", text)
        code, out, err = self.run_program("report", "runs.json", "-o", "page.html")
        self.assertEqual((code, out, err.count("\n")), (2, "", 1), err)
        for word in ["FILE.json", "'runs.json'", "accepted", *words]:
            self.assertIn(word, err)
        self.assert_nothing_left(["runs.json"])

    def test_no_json(self):
        self.assert_damaged("", ["empty"])
        self.assert_damaged('{"lockflight"', ["line 1"])
        self.assert_damaged("\x00\x01\x02", ["line 1"])

    def test_cut_at_any_place(self):
        whole = json.dumps(self.sample())
        for part in [0.1, 0.5, 0.9, 0.999]:
            self.assert_damaged(whole[: int(part * len(whole))], ["line 1"])

    def test_other_json(self):
        self.assert_damaged("[]", ["found an array"])
        self.assert_damaged("{}", ["missing"])

    def test_a_field_that_is_missing_or_wrong(self):
        damaged = self.sample()
        del damaged["runs"][0]["violations"]
        self.assert_damaged(json.dumps(damaged), ["runs[0].violations", "missing"])
        damaged = self.sample()
        damaged["runs"][1]["procs"] = "four"
        self.assert_damaged(json.dumps(damaged), ["runs[1].procs", "four"])

    def test_no_output_given(self):
        self.write("runs.json", json.dumps(self.sample()))
        code, out, err = self.run_program("report", "runs.json")
        self.assertEqual((code, out, err.count("\n")), (2, "", 1))
        self.assertIn("--output", err)

    def test_the_page_does_not_take_the_place_of_the_runs(self):
        text = json.dumps(self.sample())
        self.write("runs.json", text)
        for output in ["runs.json", "./runs.json"]:
            code, out, err = self.run_program("report", "runs.json", "-o", output)
            self.assertEqual((code, out, err), (2, "", f"lockflight report: --output '{output}' "
                                                "(accepted: another file than FILE.json)\n"))
        with open(os.path.join(self.folder, "runs.json"), encoding="utf-8") as file:
            self.assertEqual(file.read(), text)


if __name__ == "__main__":
    unittest.main()
