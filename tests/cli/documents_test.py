"""Help, manual page and completion: they say the same, and tools accept them."""

import os
import re
import shutil
import unittest

from support import COMMANDS, LAB, LAB_COMMANDS, OWN_COMMANDS, PROGRAM, ProgramTest, checked, skip_visibly

OPTIONS = {
    "bench": ["--lock", "--workload", "--fabric", "--machine", "--procs", "--levels", "--node-level",
              "--writers", "--role", "--ops", "--seconds", "--seed", "--set", "--profile", "--sweep",
              "--sample", "--locks", "--locality", "--think", "--call", "--hold", "--skew", "--server-busy",
              "--server-load", "--bytes", "--operation", "--flags-at", "--machine-set", "--nodes",
              "--threads", "--waiting", "--no-pin",
              "--witness", "--trace", "--json", "--html"],
    "tune": ["--lock", "--workload", "--fabric", "--machine", "--machine-set", "--nodes", "--procs",
             "--levels", "--node-level", "--writers", "--role", "--ops", "--seconds", "--seed", "--set",
             "--locks", "--locality", "--think", "--call", "--hold", "--skew", "--server-busy", "--server-load", "--bytes",
             "--threads", "--waiting", "--no-pin", "--parameter", "--objective", "--turns",
             "--budget", "--runs", "--out", "--json"],
    "check": ["--lock", "--writers", "--readers", "--try-writers", "--try-readers",
              "--timed-writers", "--timed-readers", "--upgraders", "--upgrading-readers", "--abandoners", "--rounds",
              "--starvation", "--deaths", "--stops", "--most-overtaken", "--levels", "--node-level", "--set", "--retries", "--memory", "--off", "--cluster", "--hours", "--seconds", "--random",
              "--seed", "--executions", "--depth", "--replay", "--json"],
    "reproduce": ["PAPER", "--quick", "--list", "--jobs", "--json", "--html"],
    "grid": ["--quick", "--machine", "--procs", "--locks", "--writers", "--times", "--below", "--jobs", "--json"],
    "locks": ["--json"],
    "topo": ["--levels", "--procs", "--node-level", "--window", "--json"],
    "report": ["-o", "--output", "FILE.json"],
    "doctor": ["--fabric", "--json", "--machine-out", "--program"],
    "run": ["NAME", "COMMAND", "--shared", "--timeout", "--nonblock", "--domain", "--mode",
            "--wait-anyway", "--on-deadlock", "--group", "-E", "--conflict-exit-code", "--leader",
            "--every", "--grace",
            "--units", "--take", "--verbose", "--no-wait-message", "--json", "--at-least", "--on-owner-died",
            "--inherit", "--max-hold", "--value", "--priority", "--success", "--retries", "--backoff", "--follow"],
    "leader": ["NAME", "DOMAIN", "--domain", "--mode", "--group", "--watch", "--timeout", "--json"],
    "done": ["NAME", "DOMAIN", "--domain", "--mode", "--group", "--forget", "--json"],
    "hold": ["NAME", "--for", "--note", "--shared", "--units", "--timeout", "--nonblock", "--verbose",
             "--no-wait-message", "--json", "--domain", "--mode", "--group", "-E",
             "--conflict-exit-code"],
    "release": ["NAME", "DOMAIN", "--domain", "--mode", "--group", "--token"],
    "break": ["NAME", "DOMAIN", "--domain", "--mode", "--group", "--yes", "--grace"],
    "who": ["NAME", "DOMAIN", "--domain", "--mode", "--group", "--json"],
    "units": ["NAME", "DOMAIN", "--domain", "--mode", "--group", "--set", "--json"],
    "top": ["DOMAIN", "--domain", "--mode", "--group", "--once", "--seconds", "--json",
            "--prometheus"],
    "agent": ["ACTION", "--etcd", "--domain", "--listen", "--advertise", "--host", "--ttl",
              "--keep", "--user",
              "--password-file", "--ca", "--cert", "--key", "--mode", "--group", "--slots", "--names",
              "--state", "--metrics", "--config", "--json", "--yes", "--above"],
    "domain": ["ACTION", "DOMAIN", "NAME", "--domain", "--mode", "--group", "--force", "--names",
               "--json"],
    "help": ["COMMAND"],
    "completion": ["SHELL"],
    "man": [],
}


class Help(ProgramTest):
    def test_version(self):
        self.assertRegex(self.run_well("--version"), r"^lockflight \d+\.\d+\.\d+\n$")

    def test_every_command_is_listed(self):
        out = self.run_well("--help")
        listed = re.findall(r"^  (\w+)  ", out.split("Commands:")[1].split("Options:")[0], re.M)
        self.assertEqual(listed, COMMANDS)
        self.assertEqual(sorted(OPTIONS), sorted(COMMANDS))

    def test_help_explains_every_command(self):
        self.assertEqual(self.run_well("help"), self.run_well("--help"))
        for command in COMMANDS:
            self.assertEqual(self.run_well("help", command), self.run_well(command, "--help"))

    def test_every_option_has_help_and_every_command_an_example(self):
        for command, options in OPTIONS.items():
            with self.subTest(command=command):
                out = self.run_well(command, "--help")
                self.assertEqual(out, self.run_well(command, "-h"))
                described = out.split("Examples:")[0]
                for option in [*options, "--help"]:
                    self.assertRegex(described, rf"(?m)^  (-\w, )?{re.escape(option)}\b")
                examples = out.split("Examples:\n")[1].split("Exit codes:")[0]
                self.assertRegex(examples, rf"(?m)^  .*lockflight {command}\b")
                found = re.findall(r"(?m)^  (?:-\w, )?(--[\w-]+)", described)
                known = [o for o in options if o.startswith("--")] + ["--help"]
                self.assertEqual(sorted(found), sorted(known), "an option that tests do not know")

    def test_lines_fit(self):
        for command in COMMANDS:
            for line in self.run_well(command, "--help").splitlines():
                if not line.startswith("  lockflight "):  # an example is not broken
                    self.assertLessEqual(len(line), 80, line)

    def test_examples_run(self):
        """Those that need nothing but the program, with less to do."""
        for command, least in [("locks", 1), ("topo", 3), ("help", 1), ("bench", 5)]:
            ran = 0
            out = self.run_well(command, "--help").split("Examples:\n")[1].split("Exit")[0]
            for line in re.findall(r"(?m)^  lockflight (.*)$", out):
                if "|" in line:
                    continue
                arguments = re.sub(r"--seconds \S+", "", line).split()
                if command == "bench":
                    arguments += ["--ops", "100"]
                self.run_well(*arguments)
                ran += 1
            self.assertGreaterEqual(ran, least, command)


class Manual(ProgramTest):
    """lockflight(1) and lockflight-lab(1)."""

    # Program, its page, the commands that the page explains, other words of it.
    PAGES = [(PROGRAM, "lockflight", OWN_COMMANDS, ["lockflight-lab(1)", *LAB_COMMANDS]),
             (LAB, "lockflight-lab", LAB_COMMANDS, ["LOCKFLIGHT_PROFILE"])]

    def setUp(self):
        super().setUp()
        for program, name, _, _ in self.PAGES:
            self.write(f"{name}.1", self.run_well("man", program=program))

    def test_groff_has_nothing_to_say(self):
        if not shutil.which("groff"):
            skip_visibly(self, "no groff")
        for _, name, _, _ in self.PAGES:
            code, out, err = checked(
                ["groff", "-man", "-ww", "-Tutf8", self.path(f"{name}.1")])
            self.assertEqual((code, err), (0, ""))
            self.assertIn(name.upper(), out)

    def test_man_renders_all_of_it(self):
        if not shutil.which("man"):
            skip_visibly(self, "no man")
        environment = dict(os.environ, MANWIDTH="80", LC_ALL="C.UTF-8", MAN_KEEP_FORMATTING="")
        for _, name, commands, words in self.PAGES:
            code, out, err = checked(["man", "--warnings", "-l", self.path(f"{name}.1")],
                                     env=environment)
            self.assertEqual((code, err), (0, ""))
            out = re.sub(r".\x08", "", out)
            for word in ["NAME", "SYNOPSIS", "COMMANDS", "EXIT STATUS", "NO_COLOR", *words]:
                self.assertIn(word, out)
            for command in commands:
                section = out.split(f"\n   lockflight {command} ")[1].split("\n   lockflight ")[0]
                for option in OPTIONS[command]:
                    self.assertRegex(section, rf"(?m)^ +(-\w, )?{re.escape(option)}\b")


class Completion(ProgramTest):
    def script(self, shell):
        self.write(shell, self.run_well("completion", shell))
        return self.path(shell)

    def parses(self, shell, *arguments):
        script = self.script(shell)
        if not shutil.which(shell):
            skip_visibly(self, f"no {shell}")
        self.assertEqual(checked([shell, *arguments, script]), (0, "", ""))

    def test_bash_parses(self):
        self.parses("bash", "-n")

    def test_zsh_parses(self):
        self.parses("zsh", "-f", "-n")

    def test_fish_parses(self):
        self.parses("fish", "--no-execute")

    def test_all_options_are_in_all_scripts(self):
        for shell in ["bash", "zsh", "fish"]:
            text = self.run_well("completion", shell)
            for command, options in OPTIONS.items():
                self.assertIn(command, text)
                for option in options:
                    if option.startswith("--"):
                        name = option[2:] if shell == "fish" else option
                        self.assertRegex(text, rf"(?<![\w-]){re.escape(name)}(?![\w-])")

    def offered_by_bash(self, words):
        script = (f". {self.script('bash')}; compopt() {{ :; }}; COMP_WORDS=(\"$@\"); "
                  "COMP_CWORD=$(($# - 1)); _lockflight; printf '%s\\n' \"${COMPREPLY[@]}\"")
        # Bash splits at = too.
        *before, last = words
        return ["bash", "-c", script, "check", "lockflight", *before,
                *(re.split("(=)", last) if last.startswith("-") else [last])]

    def offered_by_zsh(self, words):
        return ["zsh", "-f", os.path.join(os.path.dirname(__file__), "complete.zsh"),
                self.script("zsh"), " ".join(["lockflight", *words])]

    def offered_by_fish(self, words):
        line = " ".join(["lockflight", *words])
        return ["fish", "--no-config", "-c", f"source {self.script('fish')}; complete -C '{line}'"]

    def what_a_shell_offers(self, shell, offered_by, others):
        """With other offers for some lines: a shell offers the whole word or what is behind the
        last = or comma of it."""
        if not shutil.which(shell):
            skip_visibly(self, f"no {shell}")
        self.write("runs.json", "")
        for line, offers in [("be", "bench"),
                             ("bench --work", "--workload"),
                             ("bench --lock rma", "rma-mcs rma-rw"),
                             ("bench --lock=rma", "rma-mcs rma-rw"),
                             ("bench --lock spin,rma-m", "spin,rma-mcs"),
                             ("bench --procs ", ""),
                             ("completion z", "zsh"),
                             ("report runs", "runs.json"),
                             ("run a -- gzi", "gzip"),
                             ("run a -- ls runs", "runs.json")]:
            with self.subTest(line=line):
                code, out, err = checked(offered_by(line.split(" ")), cwd=self.folder)
                self.assertEqual((code, err), (0, ""))
                # Fish says what an offer means; a program may be in several folders.
                offered = {one.split("\t")[0] for one in out.splitlines() if one}
                self.assertEqual(sorted(offered), others.get(line, offers).split())

    def test_bash_completes(self):
        self.what_a_shell_offers("bash", self.offered_by_bash, {})

    def test_zsh_completes(self):
        self.what_a_shell_offers("zsh", self.offered_by_zsh,
                                 {"bench --lock spin,rma-m": "rma-mcs"})

    def test_fish_completes(self):
        self.what_a_shell_offers("fish", self.offered_by_fish,
                                 {"bench --lock=rma": "--lock=rma-mcs --lock=rma-rw"})

    def test_the_build_leaves_the_same_texts(self):
        build = os.path.dirname(PROGRAM)
        if not os.path.isdir(f"{build}/man"):
            skip_visibly(self, "this build makes no documents")
        for program, name, function in [(PROGRAM, "lockflight", "_lockflight"),
                                        (LAB, "lockflight-lab", "_lockflight_lab")]:
            for path, arguments in [(f"man/{name}.1", ["man"]),
                                    (f"completions/{name}.bash", ["completion", "bash"]),
                                    (f"completions/{function}", ["completion", "zsh"]),
                                    (f"completions/{name}.fish", ["completion", "fish"])]:
                with open(f"{build}/{path}", encoding="utf-8") as file:
                    self.assertEqual(file.read(), self.run_well(*arguments, program=program), path)


if __name__ == "__main__":
    unittest.main()
