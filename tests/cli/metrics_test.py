"""`lockflight top --prometheus`: the format, the numbers, and what becomes of the file."""

import os
import re
import signal
import subprocess
import unittest

from named_support import DOMAIN, NamedTest
from support import PROGRAM, checked
from waiting import wait_until

MOST_LOCKS = 1000
SAMPLE = re.compile(r'(lockflight_[a-z_]+)\{((?:[a-z]+="(?:[^"\\\n]|\\[\\"n])*",?)+)\} (\S+)')
ESCAPES = {r"\\": "\\", r"\"": '"', r"\n": "\n"}


def parsed(text):
    """{(metric, name of a lock or ""): value}; checks each line against the text format."""
    assert text.endswith("\n")
    values, types, family = {}, {}, None
    for line in text.splitlines():
        if line.startswith("# HELP "):
            family = line.split(" ", 3)[2]
            assert family not in types, line
            continue
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name == family and kind == ("counter" if name.endswith("_total") else "gauge")
            types[name] = kind
            continue
        found = SAMPLE.fullmatch(line)
        assert found and found[1] == family and family in types, line
        labels = {label: re.sub(r'\\[\\"n]', lambda each: ESCAPES[each[0]], value)
                  for label, value in re.findall(r'([a-z]+)="((?:[^"\\]|\\.)*)"', found[2])}
        assert labels["domain"] == DOMAIN and labels["owner"] == f"user {os.geteuid()}", line
        key = family, labels.get("name", "")
        assert key not in values, line
        values[key] = float(found[3])
    return values


class Metrics(NamedTest):
    def metrics(self):
        return parsed(self.run_well("top", DOMAIN, "--prometheus", "-"))

    def test_numbers(self):
        self.run_in("true")
        self.hold()
        waiter = self.start("run", "--domain", DOMAIN, "jobs", "--", "true")
        self.addCleanup(self.end, waiter)
        self.hold(options=["--units", "3"], name="gpu")
        self.hold(options=["--units", "3"], name="gpu")
        self.run_in("true", name="free")
        self.wait_for_waiters(1)
        found = self.metrics()

        def of(metric):
            return {name: value for (which, name), value in found.items()
                    if which == "lockflight_lock_" + metric}

        self.assertEqual(of("holders"), {"jobs": 1, "gpu": 2, "free": 0})
        self.assertEqual(of("capacity"), {"jobs": 1, "gpu": 3, "free": 1})
        self.assertEqual(of("waiters"), {"jobs": 1, "gpu": 0, "free": 0})
        self.assertEqual(of("acquires_total"), {"jobs": 2, "gpu": 2, "free": 1})
        self.assertEqual(of("repairs_total"), {"jobs": 0, "gpu": 0, "free": 0})
        self.assertEqual(of("owner_died"), {"jobs": 0, "gpu": 0, "free": 0})
        for metric, who in [("longest_wait_seconds", ["jobs"]), ("held_seconds", ["jobs", "gpu"])]:
            for name, value in of(metric).items():
                self.assertEqual(0 < value < 60, name in who, (metric, name, value))
        self.assertEqual({metric: value for (metric, name), value in found.items() if name == ""}, {
            "lockflight_domain_participants": 4, "lockflight_domain_slots": 4095,
            "lockflight_domain_locks": 3, "lockflight_domain_locks_left_out": 0,
            "lockflight_domain_deaths_total": 0})

    def test_a_death(self):
        holder, _ = self.hold()
        waiter, _ = self.start("run", "--domain", DOMAIN, "jobs", "--", "sh", "-c", "echo; cat"), 0
        self.addCleanup(self.end, waiter)
        self.wait_for_waiters(1)
        holder.kill()
        waiter.stdout.readline()
        found = self.metrics()
        self.assertEqual(found["lockflight_domain_deaths_total", ""], 1)
        self.assertGreaterEqual(found["lockflight_lock_repairs_total", "jobs"], 1)

    def test_any_name(self):
        names = ['quote"', "back\\slash", "tab\t", b"\xff", "\x1b[31m", "ü", "\\xff"]
        for name in names:
            self.run_in("true", name=name)
        shown = {name for metric, name in self.metrics() if metric == "lockflight_lock_holders"}
        # The last name would be written as the fourth is, and a metric must not be there twice.
        self.assertEqual(shown, {'quote"', "back\\slash", "tab\\x09", "\\xff", "\\x1b[31m", "ü",
                                 "\\x5cxff"})
        self.assertEqual(self.metrics()["lockflight_domain_locks_left_out", ""], 0)

    def test_bounded_number_of_locks(self):
        script = ("import sys; sys.path.insert(0, sys.argv[1]); import lockflight as l\n"
                  "for i in range(1100):\n"
                  "    with l.Mutex(f'n{i:04}', domain=sys.argv[2]): pass\n"
                  "with l.Mutex('n1099', domain=sys.argv[2]): pass\n")
        python = os.path.join(os.path.dirname(PROGRAM), "python")
        made = subprocess.run(["python3", "-c", script, python, DOMAIN], capture_output=True,
                              text=True, timeout=60, check=False)
        if "No module" in made.stderr:
            self.skipTest("the Python package is not built")
        self.assertEqual(made.stderr, "")
        self.hold(name="n1098")
        found = self.metrics()
        shown = {name for metric, name in found if metric == "lockflight_lock_holders"}
        self.assertEqual(len(shown), MOST_LOCKS)
        self.assertLessEqual({"n1098", "n1099"}, shown)
        self.assertEqual(found["lockflight_domain_locks_left_out", ""], 100)

    def test_the_file_is_whole_at_any_time(self):
        self.run_in("true")
        file = self.path("locks.prom")
        writer = self.start("top", DOMAIN, "--prometheus", file)
        self.addCleanup(self.end, writer)
        self.assertTrue(wait_until(lambda: os.path.exists(file)))
        before, first = os.stat(file), parsed(self.read("locks.prom"))
        self.run_in("true")
        self.assertTrue(wait_until(lambda: os.stat(file).st_ino != before.st_ino))
        self.assertEqual(os.stat(file).st_mode & 0o777, 0o644 & ~current_umask())
        name = "lockflight_lock_acquires_total", "jobs"
        self.assertEqual((first[name], parsed(self.read("locks.prom"))[name]), (1, 2))
        writer.send_signal(signal.SIGTERM)
        self.assertEqual(writer.wait(timeout=10), -signal.SIGTERM)
        self.assertIn("lockflight_lock_holders", self.read("locks.prom"))

    def test_once(self):
        self.run_in("true")
        self.assertEqual(self.run_well("top", DOMAIN, "--once", "--prometheus", "a.prom"), "")
        parsed(self.read("a.prom"))
        self.assert_nothing_left(["a.prom"])

    def test_what_cannot_be_written(self):
        self.run_in("true")
        os.mkdir(self.path("folder"))
        os.symlink("/proc/self/fd/1", self.path("link"))
        for file in ["folder", "link", "/dev/null", ""]:
            code, out, err = self.run_program("top", DOMAIN, "--prometheus", file)
            self.assertEqual((code, out), (2, ""))
            self.assertIn(f"--prometheus '{file}' (accepted: a regular file", err)
        code, _, err = self.run_program("top", DOMAIN, "--prometheus", "none/a.prom")
        self.assertEqual(code, 3)
        self.assertIn("--prometheus 'none/a.prom': No such file", err)
        self.assertTrue(os.path.islink(self.path("link")))

    def test_a_full_disk(self):
        self.run_in("true")
        os.mkdir(self.path("small"))
        code, _, why = checked([
            "unshare", "--map-root-user", "--mount", "sh", "-c",
            'mount -t tmpfs -o size=4k none small && echo old > small/a.prom || exit 99\n'
            '"$1" top "$2" --once --prometheus small/a.prom; code=$?\n'
            'ls small >&2; cat small/a.prom >&2; exit $code', "-", PROGRAM, DOMAIN],
            cwd=self.folder)
        if code in (1, 99):
            self.skipTest(f"no mount in a namespace: {why}")
        self.assertEqual(code, 3)
        self.assertIn("No space left on device\na.prom\nold\n", why)


def current_umask():
    was = os.umask(0)
    os.umask(was)
    return was


if __name__ == "__main__":
    unittest.main()
