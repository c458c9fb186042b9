#!/usr/bin/env python3
"""The program on a wired fabric from outside: its ranks meet at a rendezvous, and say in one line
why not.

usage: program_test.py ucx|libfabric PROGRAM LAUNCH
"""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "support"))
from ports import free_port

FABRIC, PROGRAM, LAUNCH = sys.argv[1:]

BENCH = [PROGRAM, "bench", "--fabric", FABRIC, "--lock", "d-mcs"]
NODES = f"LOCKFLIGHT_{FABRIC.upper()}_NODES"
TCP = {"ucx": {"UCX_TLS": "tcp"}, "libfabric": {"FI_PROVIDER": "tcp"}}[FABRIC]
ON_UCX = unittest.skipUnless(FABRIC == "ucx", "of UCX")
ON_LIBFABRIC = unittest.skipUnless(FABRIC == "libfabric", "of libfabric")
SECONDS = 20


def launch(ranks, *command, **environment):
    done = subprocess.run([sys.executable, "-B", LAUNCH, str(ranks), *command],
                          capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL,
                          env=dict(os.environ, NO_COLOR="1", **environment), check=False)
    return done.returncode, done.stdout, done.stderr.splitlines()


def start(rank, ranks, place, **environment):
    """One rank, that has five seconds to meet the others unless told otherwise."""
    return subprocess.Popen([*BENCH, "--ops", "10"], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL,
                            env={**os.environ, "LOCKFLIGHT_RENDEZVOUS": place,
                                 "LOCKFLIGHT_RANK": str(rank), "LOCKFLIGHT_RANKS": str(ranks),
                                 "LOCKFLIGHT_RENDEZVOUS_TIMEOUT": "5", **environment})


class Launches(unittest.TestCase):
    def test_all_locks_on_one_node_and_on_several(self):
        for environment in ({}, {NODES: "2"}):
            code, out, said = launch(2, PROGRAM, "bench", "--fabric", FABRIC, "--ops", "50", "--json",
                                     "-", "--lock", "all", **environment)
            self.assertEqual((code, said), (0, []))
            runs = json.loads(out)["runs"]
            self.assertIn("flight-rw", [run["lock"] for run in runs])
            for run in runs:
                self.assertEqual((run["fabric"], run["procs"], run["violations"], run["ops"]),
                                 (FABRIC, 2, 0, 50), run)

    def test_one_rank_needs_no_rendezvous(self):
        done = subprocess.run([*BENCH, "--ops", "10"], capture_output=True, text=True,
                              timeout=SECONDS, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("d-mcs", done.stdout)

    def test_fewer_ranks_than_the_launch(self):
        code, out, said = launch(3, *BENCH, "--ops", "20", "--procs", "1,2,3", "--json", "-")
        self.assertEqual((code, said), (0, []), out)
        self.assertEqual([run["procs"] for run in json.loads(out)["runs"]], [1, 2, 3])

    def test_with_a_progress_thread(self):
        for word in ("thread", "auto"):
            code, out, said = launch(2, *BENCH, "--seconds", "0.2", "--json", "-",
                                     LOCKFLIGHT_PROGRESS=word, **{NODES: "2"}, **TCP)
            self.assertEqual((code, said), (0, []), out)
            (run,) = json.loads(out)["runs"]
            self.assertEqual(run["violations"], 0)
            self.assertGreater(run["ops"], 0)

    @ON_UCX
    def test_the_cards_atomics_alone(self):
        # Without a card the target's software does these too, and own nic cells go through UCX.
        code, out, said = launch(2, *BENCH, "--ops", "50", "--json", "-", UCX_TLS="tcp,self",
                                 UCX_ATOMIC_MODE="device", LOCKFLIGHT_UCX_NODES="2")
        self.assertEqual((code, said), (0, []), out)
        self.assertEqual(json.loads(out)["runs"][0]["ops"], 50)

    @ON_LIBFABRIC
    def test_the_providers_atomics(self):
        for provider in ("tcp", "shm"):
            code, out, said = launch(2, *BENCH, "--ops", "50", "--json", "-", FI_PROVIDER=provider,
                                     LOCKFLIGHT_LIBFABRIC_OPERATIONS="provider", **{NODES: "2"})
            self.assertEqual((code, said), (0, []), out)
            for run in json.loads(out)["runs"]:
                self.assertEqual((run["violations"], run["ops"]), (0, 50), run)

    def test_doctor(self):
        code, out, said = launch(2, PROGRAM, "doctor", "--fabric", FABRIC)
        self.assertEqual((code, said), (0, []), out)
        for words in ("fetch-add atomic", "compare-swap atomic", "2 on 1 host"):
            self.assertIn(words, out)

    def test_a_fitted_machine_can_be_simulated(self):
        with tempfile.TemporaryDirectory() as folder:
            fitted = os.path.join(folder, "fitted.toml")
            code, out, said = launch(4, PROGRAM, "doctor", "--fabric", FABRIC, "--machine-out",
                                     fitted, **{NODES: "2"})
            self.assertEqual((code, said), (0, []), out)
            self.assertIn(f"wrote {fitted}", out)
            done = subprocess.run(
                [PROGRAM, "bench", "--fabric", "sim", "--machine", fitted, "--levels", "2x2",
                 "--lock", "d-mcs,flight-rw", "--ops", "200", "--json", "-"],
                capture_output=True, text=True, timeout=SECONDS, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertEqual(
                [(run["lock"], run["machine"], run["ops"], run["violations"])
                 for run in json.loads(done.stdout)["runs"]],
                [(lock, f"fitted-{FABRIC}", 200, 0) for lock in ("d-mcs", "flight-rw")])

    def without(self, victim, **environment):
        """What the other one of two ranks says when that one is killed."""
        for _ in range(3):
            code, err = self.once_without(victim, **environment)
            # UCX 1.13 ends the process itself if an atomic operation was about to be sent again just
            # when it gave up the connection (ucp_atomic_req_handler).
            if "Fatal: unexpected error: Endpoint timeout" not in err:
                break
        return code, err

    def once_without(self, victim, **environment):
        place = f"127.0.0.1:{free_port()}"
        ranks = [subprocess.Popen([*BENCH, "--seconds", "60"], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE, text=True,
                                  env={**os.environ, "LOCKFLIGHT_RENDEZVOUS": place,
                                       "LOCKFLIGHT_RANK": str(r), "LOCKFLIGHT_RANKS": "2",
                                       NODES: "2", **environment}) for r in range(2)]
        time.sleep(1)
        ranks[victim].send_signal(signal.SIGKILL)
        ranks[victim].communicate()
        _, err = ranks[1 - victim].communicate(timeout=SECONDS)
        return ranks[1 - victim].returncode, err

    def test_a_rank_that_is_killed_is_named(self):
        for victim in (1, 0):
            code, err = self.without(victim)
            self.assertEqual((code, err.count("\n")), (3, 1), err)
            self.assertRegex(err, f"rank {victim} on .* is gone: its process has ended")

    def test_a_rank_that_is_killed_is_named_beside_a_progress_thread(self):
        code, err = self.without(1, LOCKFLIGHT_PROGRESS="thread", **TCP)
        self.assertEqual((code, err.count("\n")), (3, 1), err)
        self.assertRegex(err, "rank 1 on .* is gone: its process has ended")


class Refusing:
    def refuses(self, code, words, **environment):
        environment = {name: value for name, value in environment.items() if value is not None}
        done = subprocess.run(BENCH, capture_output=True, text=True, timeout=SECONDS,
                              env={**os.environ, **environment}, check=False)
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (code, "", 1),
                         done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)

    def together(self, *ranks):
        """What ranks of one rendezvous say before they exit with 3: (rank, ranks, environment)."""
        place = f"127.0.0.1:{free_port()}"
        running = [start(rank, of, place, **more) for rank, of, more in ranks]
        said = []
        for process in running:
            out, err = process.communicate(timeout=SECONDS)
            self.assertEqual((process.returncode, out, err.count("\n")), (3, "", 1), err)
            said.append(err)
        return said


class RefusalsOfTheLibrary(Refusing, unittest.TestCase):
    @ON_UCX
    def test_ucx_without_a_transport(self):
        self.refuses(3, ["UCX_TLS 'nonsense'", "ucx_info -d"], UCX_TLS="nonsense")

    @ON_LIBFABRIC
    def test_libfabric_without_a_provider(self):
        self.refuses(3, ["FI_PROVIDER 'nonsense'", "fi_info -t FI_EP_RDM"], FI_PROVIDER="nonsense")
        # It says that it has FI_ATOMIC, and has not.
        self.refuses(3, ["FI_RMA and FI_ATOMIC", "FI_PROVIDER 'net'"], FI_PROVIDER="net",
                     LOCKFLIGHT_LIBFABRIC_OPERATIONS="provider")

    @ON_LIBFABRIC
    def test_a_bad_choice_of_operations(self):
        self.refuses(2, ["LOCKFLIGHT_LIBFABRIC_OPERATIONS 'magic'", "provider, messages, auto"],
                     LOCKFLIGHT_LIBFABRIC_OPERATIONS="magic")

    @ON_LIBFABRIC
    def test_ranks_with_different_providers(self):
        for err in self.together((0, 2, {"FI_PROVIDER": "tcp"}), (1, 2, {"FI_PROVIDER": "shm"})):
            self.assertRegex(err, "rank 1 uses libfabric's provider 'shm' .*, rank 0 uses .*'tcp;")

    def test_ranks_that_do_operations_differently(self):
        # An operation of the one would mean something else to the other.
        variable, values = {"ucx": ("UCX_ATOMIC_MODE", ("cpu", "device")), "libfabric": (
            "LOCKFLIGHT_LIBFABRIC_OPERATIONS", ("messages", "provider"))}[FABRIC]
        for order in (values, values[::-1]):
            said = self.together(*((rank, 2, {variable: value, **TCP})
                                   for rank, value in enumerate(order)))
            for err in said:
                self.assertRegex(err, f"rank 1 uses .*, rank 0 uses .*{variable}")


@ON_UCX  # the same on every wired fabric
class RefusalsOfTheRendezvous(Refusing, unittest.TestCase):
    def test_bad_variables(self):
        good = {"LOCKFLIGHT_RENDEZVOUS": "127.0.0.1:7", "LOCKFLIGHT_RANK": "0",
                "LOCKFLIGHT_RANKS": "2"}
        for name, value, words in [
            ("LOCKFLIGHT_RENDEZVOUS", "localhost", ["'localhost'", "HOST:PORT"]),
            ("LOCKFLIGHT_RENDEZVOUS", "localhost:99999", ["1 to 65535"]),
            ("LOCKFLIGHT_RENDEZVOUS", None, ["LOCKFLIGHT_RENDEZVOUS is not set", "HOST:PORT"]),
            ("LOCKFLIGHT_RANK", "2", ["'2'", "0 to 1"]),
            ("LOCKFLIGHT_RANK", None, ["LOCKFLIGHT_RANK is not set"]),
            ("LOCKFLIGHT_RANKS", "none", ["'none'", "1 to"]),
            ("LOCKFLIGHT_RANKS", None, ["LOCKFLIGHT_RANKS is not set"]),
            ("LOCKFLIGHT_RENDEZVOUS_TIMEOUT", "0", ["'0'", "1 to"]),
            ("LOCKFLIGHT_PROGRESS", "magic", ["'magic'", "calls, thread, auto"]),
        ]:
            with self.subTest(name=name, value=value):
                self.refuses(2, words, **{**good, name: value})

    def test_a_machine_that_cannot_be_fitted(self):
        for ranks, file, words in [(1, "m.toml", "'m.toml': one rank on one node (accepted: "),
                                   (2, "m.toml", "'m.toml': 2 ranks on one node (accepted: ")]:
            code, out, said = launch(ranks, PROGRAM, "doctor", "--fabric", FABRIC, "--machine-out",
                                     file)
            self.assertEqual((code, out, len(said)), (2, "", 1), said)
            self.assertIn(words, said[0])
        code, out, said = launch(2, PROGRAM, "doctor", "--fabric", FABRIC, "--machine-out",
                                 "/nowhere/m.toml", **{NODES: "2"})
        self.assertEqual((code, out, len(said)), (2, "", 1), said)
        self.assertIn("--machine-out '/nowhere/m.toml'", said[0])

    def test_a_rank_0_elsewhere(self):
        self.refuses(3, ["192.0.2.1:7777", "whose address this is not"],
                     LOCKFLIGHT_RENDEZVOUS="192.0.2.1:7777", LOCKFLIGHT_RANK="0",
                     LOCKFLIGHT_RANKS="2")

    def test_who_is_missing_is_said_to_all_that_have_come(self):
        soon = {"LOCKFLIGHT_RENDEZVOUS_TIMEOUT": "1"}
        for err in self.together((0, 4, soon), (2, 4, {})):
            self.assertIn("ranks 1 and 3 have not come to", err)

    def test_rank_0_without_descriptors(self):
        place = f"127.0.0.1:{free_port()}"
        other = start(1, 2, place)
        first = subprocess.run(
            ["bash", "-c", 'ulimit -n 4; exec "$@"', "bash",
             os.path.join(os.path.dirname(PROGRAM), FABRIC, "lockflight-lab"), *BENCH[1:]],
            capture_output=True, text=True, timeout=SECONDS, check=False,
            env={**os.environ, "LOCKFLIGHT_RENDEZVOUS": place, "LOCKFLIGHT_RANK": "0",
                 "LOCKFLIGHT_RANKS": "2", "LOCKFLIGHT_RENDEZVOUS_TIMEOUT": "5"})
        other.communicate(timeout=SECONDS)
        self.assertEqual((first.returncode, first.stderr.count("\n")), (3, 1), first.stderr)
        self.assertIn("ulimit -n", first.stderr)

    def test_nobody_listens(self):
        (err,) = self.together((1, 2, {"LOCKFLIGHT_RENDEZVOUS_TIMEOUT": "1"}))
        self.assertIn("rank 0 does not answer", err)

    def test_two_ranks_with_one_number(self):
        for err in self.together((0, 3, {}), (1, 3, {}), (1, 3, {})):
            self.assertIn("two processes are rank 1", err)

    def test_a_wrong_size(self):
        for err in self.together((0, 3, {}), (1, 2, {})):
            self.assertRegex(err, "rank 1 on .* says that there are 2 ranks, rank 0 says 3")

    def test_a_port_in_use(self):
        with socket.socket() as other:
            other.bind(("127.0.0.1", 0))
            other.listen()
            process = start(0, 2, f"127.0.0.1:{other.getsockname()[1]}")
            _, err = process.communicate(timeout=SECONDS)
            self.assertEqual((process.returncode, err.count("\n")), (3, 1), err)
            self.assertIn("the port is in use", err)

    def answered_by(self, answer):
        """What rank 1 says of another program at rank 0's place."""
        with socket.socket() as other:
            other.bind(("127.0.0.1", 0))
            other.listen()

            def serve():
                line, _ = other.accept()
                with line:
                    line.recv(4096)
                    line.sendall(answer)
                    time.sleep(5 if not answer else 0)

            server = threading.Thread(target=serve)
            server.start()
            process = start(1, 2, f"127.0.0.1:{other.getsockname()[1]}",
                            LOCKFLIGHT_RENDEZVOUS_TIMEOUT="1")
            _, err = process.communicate(timeout=SECONDS)
            server.join()
        self.assertEqual((process.returncode, err.count("\n")), (3, 1), err)
        return err

    def test_another_program_answers(self):
        self.assertIn("is no rank 0 of lockflight", self.answered_by(b"HTTP/1.1 400 no" * 10))
        self.assertIn("has said nothing for 1 s", self.answered_by(b""))

    def test_another_program_answers_at_one_of_the_addresses(self):
        port = free_port()
        both = {found[4][0] for found in socket.getaddrinfo("localhost", port)}
        if not {"::1", "127.0.0.1"} <= both:
            self.skipTest("localhost has one address here")
        with socket.socket(socket.AF_INET6) as other:
            other.bind(("::1", port))
            other.listen()

            asked = threading.Event()

            def serve():
                line, _ = other.accept()
                asked.set()
                with line:
                    line.recv(4096)
                    line.sendall(b"HTTP/1.1 400 no" * 10)

            server = threading.Thread(target=serve, daemon=True)
            server.start()
            for process in [start(0, 2, f"127.0.0.1:{port}"), start(1, 2, f"localhost:{port}")]:
                _, err = process.communicate(timeout=SECONDS)
                self.assertEqual((process.returncode, err), (0, ""))
            self.assertTrue(asked.is_set(), "nobody asked the other program")

    def test_strangers_at_the_port_disturb_nobody(self):
        port = free_port()
        first = start(0, 2, f"127.0.0.1:{port}")
        for _ in range(50):
            try:
                with socket.create_connection(("127.0.0.1", port), timeout=1) as stranger:
                    stranger.sendall(b"GET / HTTP/1.1\r\n\r\n")
                    break
            except OSError:
                time.sleep(0.02)
        else:
            self.fail("the stranger never reached rank 0")
        second = start(1, 2, f"127.0.0.1:{port}")
        for process in (first, second):
            _, err = process.communicate(timeout=SECONDS)
            self.assertEqual((process.returncode, err), (0, ""))

    def test_another_version(self):
        port = free_port()
        first = start(0, 2, f"127.0.0.1:{port}")
        hello = (b"\x31\x6c\x66\x6c" + (0).to_bytes(4, "little") + (112).to_bytes(8, "little")
                 + (1).to_bytes(4, "little") + (2).to_bytes(4, "little") + bytes(8)
                 + b"0.0.9".ljust(32, b"\0") + b"elsewhere".ljust(64, b"\0"))
        for _ in range(50):
            try:
                line = socket.create_connection(("127.0.0.1", port), timeout=5)
                break
            except OSError:
                time.sleep(0.02)
        with line:
            line.sendall(hello)
            _, err = first.communicate(timeout=SECONDS)
            told = line.recv(4096)
        self.assertEqual((first.returncode, err.count("\n")), (3, 1), err)
        for said in (err, told.decode(errors="replace")):
            self.assertIn("rank 1 on elsewhere is lockflight 0.0.9", said)


if __name__ == "__main__":
    sys.argv[1:] = []
    unittest.main(verbosity=2)
