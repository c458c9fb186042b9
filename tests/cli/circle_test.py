"""Runs that wait for each other's locks in a circle."""

import json
import os
import subprocess
import unittest

from named_support import DOMAIN, NamedTest
from support import PROGRAM
from waiting import wait_until

RUN = f"{PROGRAM} run --domain {DOMAIN}"


class Circles(NamedTest):
    def start_circle(self, *inner_options):
        """Two scripts under a lock each, which wait for the lock of the other one."""
        options = " ".join(inner_options)
        both = []
        for own, other in (("a", "b"), ("b", "a")):
            ready = os.path.join(self.folder, own)
            go_on = os.path.join(self.folder, other)
            script = (f"touch {ready}; while [ ! -e {go_on} ]; do sleep 0.01; done; "
                      f"{RUN} {options} {other} -- echo ran")
            both.append(subprocess.Popen([PROGRAM, "run", "--domain", DOMAIN, own, "--", "sh", "-c",
                                          script], text=True, stdout=subprocess.PIPE,
                                         stderr=subprocess.PIPE))
        for each in both:
            self.addCleanup(self.end, each)
        return both

    def test_it_is_said_once_and_shown(self):
        both = self.start_circle()
        self.wait_for_waiters(1, "a")
        self.wait_for_waiters(1, "b")
        found = self.who("a")
        self.assertEqual([[(each["holds"], each["waits_for"]) for each in sorted(
            circle, key=lambda user: user["holds"])] for circle in found["circles"]],
            [[("a", "b"), ("b", "a")]])
        _, out, _ = self.run_program("who", "a", "--domain", DOMAIN)
        # The script holds, and the run inside of it waits.
        self.assertRegex(out, r"They wait in a circle: sh \(pid \d+\) holds '[ab]', and inside of it "
                              r"echo \(pid \d+\) waits for '[ab]'; sh ")
        _, out, _ = self.run_program("top", DOMAIN, "--once")
        self.assertIn("They wait in a circle", out)
        _, out, _ = self.run_program("top", DOMAIN, "--json", "--once")
        self.assertEqual(len(json.loads(out)["circles"]), 1)
        # Time for a second look, which says nothing more.
        self.assertFalse(wait_until(lambda: any(each.poll() is not None for each in both), 2.5))
        for each in both:
            each.terminate()
        for each in both:
            _, err = each.communicate(timeout=20)
            self.assertEqual(err.count("waits in a circle"), 1, err)

    def test_one_of_them_gives_up(self):
        both = self.start_circle("--on-deadlock", "fail", "-E", "9")
        ended = [(each.communicate(timeout=30), each.returncode) for each in both]
        self.assertEqual(sorted(code for _, code in ended), [0, 9], ended)
        self.assertEqual(sorted(out for (out, _), _ in ended), ["", "ran\n"])
        self.assertEqual(sum(err.count("gives up") for (_, err), _ in ended), 1, ended)

    def test_a_wait_that_is_in_none_is_not_ended(self):
        self.hold("exec sleep 2.5", name="b")
        done = subprocess.run([PROGRAM, "run", "--domain", DOMAIN, "a", "--", *RUN.split(),
                               "--on-deadlock", "fail", "b", "--", "echo", "ran"],
                              capture_output=True, text=True, timeout=30, check=False)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "ran\n", ""))

    def test_bad_values(self):
        code, _, err = self.run_program("run", "--on-deadlock", "hope", "a", "--", "true")
        self.assertEqual(code, 2)
        self.assertIn("--on-deadlock 'hope' (accepted: wait or fail)", err)


if __name__ == "__main__":
    unittest.main()
