"""lockflight run with several names: all of them or none, without deadlock."""

import os
import signal
import unittest

from named_support import DOMAIN, NamedTest


class Several(NamedTest):
    def run_all(self, *names, options=(), command=("true",)):
        process = self.start("run", "--domain", DOMAIN, *options, *names, "--", *command)
        self.addCleanup(self.end, process)
        return process

    def outcome(self, *names, **more):
        process = self.run_all(*names, **more)
        out, err = process.communicate(timeout=30)
        return process.returncode, out.decode(), err.decode()

    def test_the_command_holds_them_all(self):
        script = 'echo "$LOCKFLIGHT_LOCK"; echo "$LOCKFLIGHT_TOKEN" | wc -l; exec sleep 60'
        process = self.run_all("b", "a", "c", command=["sh", "-c", script])
        self.assertEqual([process.stdout.readline() for _ in range(4)],
                         [b"a\n", b"b\n", b"c\n", b"3\n"])
        for name in "abc":
            self.assertEqual(len(self.who(name)["holders"]), 1)
            self.assertEqual(self.run_in("true", options=["--nonblock"], name=name)[0], 1)
        process.kill()
        code, out, _ = self.outcome("c", "d", command=["sh", "-c", "echo $LOCKFLIGHT_OWNER_DIED"])
        self.assertEqual((code, out), (0, "1\n"), "a holder of c died")
        script = "echo ${LOCKFLIGHT_OWNER_DIED-0}"
        code, out, _ = self.outcome("c", "d", command=["sh", "-c", script])
        self.assertEqual((code, out), (0, "0\n"))

    def test_all_or_none(self):
        self.hold(name="b")
        for options, code in ((["--nonblock"], 1), (["--timeout", "0.2"], 1),
                              (["--nonblock", "-E", "9"], 9)):
            found, out, err = self.outcome("c", "a", "b", options=options)
            self.assertEqual((found, out), (code, ""))
            self.assertEqual("lock 'b' was not free in time: held by sleep" in err,
                             "--timeout" in options, err)
            for name in "ac":
                self.assertEqual(self.run_in("true", options=["--nonblock"], name=name)[0], 0)

    def test_shared(self):
        self.hold(name="a", options=["--shared"])
        self.assertEqual(self.outcome("a", "b", options=["--shared", "--nonblock"]), (0, "", ""))
        self.assertEqual(self.outcome("a", "b", options=["--nonblock"])[0], 1)

    def test_opposite_orders_do_not_deadlock(self):
        runs = [self.run_all(*(("a", "b", "c") if i % 2 else ("c", "b", "a"))) for i in range(20)]
        for run in runs:
            self.assertEqual((run.communicate(timeout=30)[1], run.returncode), (b"", 0))

    def test_a_run_that_is_killed_while_it_waits_is_no_death(self):
        """It has some of its locks, and has not begun COMMAND."""
        holder, _ = self.hold(name="b")
        for options in ([], ["--inherit"]):
            waiter = self.run_all("c", "b", "a", options=options)
            self.wait_for_waiters(1, "b")
            [has] = self.who("a")["holders"]
            os.kill(has["pid"], signal.SIGKILL)
            waiter.wait(timeout=10)
            self.wait_for_waiters(0, "b")
            for on_death in ("run", "fail"):
                code, out, err = self.outcome(
                    "a", options=["--timeout", "10", "--on-owner-died", on_death],
                    command=["sh", "-c", "echo ${LOCKFLIGHT_OWNER_DIED-no}"])
                self.assertEqual((code, out, err), (0, "no\n", ""))
        holder.terminate()

    def test_what_is_refused(self):
        for names, options, words in [
                (["a", "b", "a"], [], ["NAME 'a'", "each name once"]),
                (["a", ""], [], ["NAME ''", "1 to 255"]),
                (["a", "b"], ["--units", "2"], ["--units '2'", "only with one NAME"]),
                (["a", "b"], ["--leader"], ["--leader", "only with one NAME"]),
                (["a", "b"], ["--every", "1h"], ["--every '1h'", "only with one NAME"])]:
            with self.subTest(names=names, options=options):
                code, out, err = self.outcome(*names, options=options)
                self.assertEqual((code, out, err.count("\n")), (2, "", 1), err)
                for word in [*words, "accepted"]:
                    self.assertIn(word, err)

    def test_a_command_without_dashes(self):
        code, out, err = self.run_program("run", "--domain", DOMAIN, "a", "true")
        self.assertEqual((code, out, err.count("\n")), (2, "", 1), err)
        self.assertIn("COMMAND '' (accepted: -- and the command to run", err)


if __name__ == "__main__":
    unittest.main()
