"""The examples print what they say."""

import pathlib
import subprocess
import sys

import pytest

EXAMPLES = pathlib.Path(__file__).parents[3] / "examples" / "python"


@pytest.mark.parametrize(
    "name, prints",
    [
        ("first", "400\n"),
        ("leader", "3 leaders, the work was done 1 time\n"),
        ("loss", "report: told\nreport: stopped\n"),
        ("repair", "found: half of a li\nholds: a whole line\n"),
        ("tasks", "[4, 4, 4, 4]\n"),
    ],
)
def test_example(name, prints):
    done = subprocess.run(
        [sys.executable, EXAMPLES / f"{name}.py"], capture_output=True, text=True, timeout=200
    )
    assert done.stderr == ""
    assert (done.returncode, done.stdout) == (0, prints)


def test_all_are_run():
    with_mpi = {"ranks"}  # test_communicator.py
    assert {p.stem for p in EXAMPLES.glob("*.py")} == {"first", "leader", "loss", "repair", "tasks"} | with_mpi
