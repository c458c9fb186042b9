"""The scripts of examples/gpu and examples/slurm: processes and jobs of Slurm share GPUs, which are only
numbers here."""

import os
import subprocess
import unittest

from named_support import DOMAIN, NamedTest
from support import PROGRAM, SOURCES
from waiting import wait_until

EXAMPLES = os.path.join(SOURCES, "examples")


class Gates(NamedTest):
    def script(self, name, *arguments, **variables):
        environment = {**os.environ, "LOCKFLIGHT_DOMAIN": DOMAIN, "LOCKFLIGHT_SLURM": self.path("slurm"),
                       "PATH": os.pathsep.join([self.path("bin"), os.path.dirname(PROGRAM),
                                                "/usr/bin", "/bin"])}
        environment.pop("GPUS", None)
        environment.update({key: str(value) for key, value in variables.items()})
        return subprocess.Popen([os.path.join(EXAMPLES, name), *arguments], cwd=self.folder, text=True,
                                env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE)

    def ended(self, process):
        out, err = process.communicate(timeout=30)
        return process.returncode, out, err

    def gate(self, *arguments, **variables):
        process = self.script("gpu/gate", *arguments, "sh", "-c",
                              "echo $CUDA_VISIBLE_DEVICES; exec sleep 60", **variables)
        self.addCleanup(self.end, process)
        return process

    def setUp(self):
        super().setUp()
        os.mkdir(self.path("bin"))

    def install_nvidia_smi(self):
        self.write("bin/nvidia-smi", "#!/bin/sh\nprintf '0\\n1\\n2\\n'\n")
        os.chmod(self.path("bin/nvidia-smi"), 0o755)

    def units(self):
        shown = self.run_well("units", "gpu", DOMAIN)
        return [line.split()[1] for line in shown.splitlines()[1:]]

    def test_each_job_has_gpus_of_its_own(self):
        self.install_nvidia_smi()
        one = self.gate()
        self.assertEqual(one.stdout.readline(), "0\n")
        two = self.gate("-n", "2")
        self.assertEqual(two.stdout.readline(), "1,2\n")
        self.assertEqual(self.units(), ["held", "held", "held"])
        for each in (one, two):
            each.terminate()
            each.wait(timeout=10)

    def test_gpus_that_are_given(self):
        for gpus, seen in (("5", "5\n"), ("7,3", "3\n")):
            self.assertEqual(self.ended(self.script("gpu/gate", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES",
                                                    GPUS=gpus)), (0, seen, ""))
            self.run_well("domain", "forget", DOMAIN, "gpu")
        self.assertEqual(self.ended(self.script("gpu/gate", "sh", "-c", "exit 7", GPUS="0"))[0], 7)

    def test_what_the_gate_refuses(self):
        code, out, err = self.ended(self.script("gpu/gate", "true"))
        self.assertEqual((code, out), (2, ""))
        self.assertIn("no GPU here", err)
        code, _, err = self.ended(self.script("gpu/gate", GPUS="0"))
        self.assertEqual(code, 2)
        self.assertIn("COMMAND ''", err)
        code, _, err = self.ended(self.script("gpu/gate", "-n", "3", "true", GPUS="0,1"))
        self.assertEqual(code, 2)
        self.assertIn("--take '3' (accepted: a whole number from 1 to 2)", err)

    def test_jobs_of_slurm(self):
        gpus = {"GPUS": "0,2,3"}

        def prolog(job, wanted, wait=20):
            return self.ended(self.script("slurm/prolog", SLURM_JOB_ID=job, SLURM_GPUS_ON_NODE=wanted,
                                          LOCKFLIGHT_WAIT=wait, **gpus))

        def of_task(job):
            return self.ended(self.script("slurm/task_prolog", SLURM_JOB_ID=job))[1]

        def epilog(job):
            self.assertEqual(self.ended(self.script("slurm/epilog", SLURM_JOB_ID=job)), (0, "", ""))

        self.addCleanup(epilog, 7)
        self.assertEqual(prolog(7, 2), (0, "", ""))
        self.assertEqual(of_task(7), "export CUDA_VISIBLE_DEVICES=0,2\nexport LOCKFLIGHT_UNIT=0,2\n")
        self.assertEqual(self.units(), ["held", "held", "free"])
        code, _, err = prolog(8, 2, wait=0.3)
        self.assertEqual(code, 1)
        self.assertIn("job 8 did not get 2 of the GPUs 0,2,3", err)
        self.assertEqual(of_task(8), "")
        epilog(8)
        self.assertEqual(prolog(9, 0), (0, "", ""), "a job without GPUs")
        # A job in the queue gets the GPUs when the other one has ended.
        waits = self.script("slurm/prolog", SLURM_JOB_ID=10, SLURM_GPUS_ON_NODE=3, LOCKFLIGHT_WAIT=20,
                            **gpus)
        self.addCleanup(epilog, 10)
        self.wait_for_waiters(1, "gpu")
        self.assertIsNone(waits.poll())
        epilog(7)
        self.assertEqual(self.ended(waits), (0, "", ""))
        self.assertIn("CUDA_VISIBLE_DEVICES=0,2,3\n", of_task(10))
        epilog(10)
        self.assertTrue(wait_until(lambda: self.units() == ["free"] * 3))
        self.assertEqual(os.listdir(self.path("slurm")), [])


if __name__ == "__main__":
    unittest.main()
