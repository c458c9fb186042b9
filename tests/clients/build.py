"""Builds programs of a client with one MPI. Programs that are there are kept."""

import os
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

COMPILERS = {".c": "mpicc", ".cc": "mpicxx", ".f90": "mpif90", ".F90": "mpif90"}
LIMIT_S = 180


class Builder:
    """`source` is the folder of the client's source. `folder` gets the programs, and for those that do
    not compile with this MPI what the compiler said, PROGRAM.log."""

    def __init__(self, source, folder, mpi):
        self.source, self.folder, self.mpi = Path(source), Path(folder), mpi
        self.folder.mkdir(parents=True, exist_ok=True)
        self.built, self.failed = [], []

    def compiler(self, source):
        return f"{COMPILERS[Path(source).suffix]}.{self.mpi}"

    def run(self, name, *words):
        """True when the command succeeds; otherwise NAME.log has its output."""
        log = self.folder / f"{name}.log"
        with open(log, "w", encoding="utf-8") as output:
            try:
                done = subprocess.run([str(word) for word in words], stdout=output, stderr=output,
                                      cwd=self.folder, timeout=LIMIT_S, check=False).returncode == 0
            except (OSError, subprocess.TimeoutExpired) as error:
                output.write(f"{error}\n")
                done = False
        if done:
            log.unlink()
        return done

    def needed(self, name, *words):
        """A command without which no program can be made."""
        if not self.run(name, *words):
            raise BuildFailed(self.folder / f"{name}.log")

    def object(self, source, *words):
        """Compiles a source that all programs need, and returns the object file."""
        folder = self.source if Path(source).is_relative_to(self.source) else self.folder
        name = str(Path(source).relative_to(folder)).replace("/", "_")
        made = self.folder / f"{name}.o"
        if not made.exists():
            self.needed(name, self.compiler(source), *words, "-c", source, "-o", made)
        return made

    def objects(self, sources, *words):
        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            return list(pool.map(lambda source: self.object(source, *words), sources))

    def library(self, name, sources, *words):
        """A static library."""
        made = self.folder / name
        if not made.exists():
            self.needed(name, "ar", "rcs", made, *self.objects(sources, *words))
        return made

    def shared_library(self, name, sources, *words):
        made = self.folder / name
        if not made.exists():
            self.needed(name, self.compiler(sources[0]), "-shared", *self.objects(sources, *words), "-o", made)
        return made

    def header(self, name):
        """The path of a header of the MPI."""
        words = [f"mpicc.{self.mpi}", "-E", "-include", name, "-x", "c", "/dev/null"]
        said = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT_S, check=True).stdout
        return re.search(rf'^# 1 "(.*/{re.escape(name)})"', said, re.MULTILINE)[1]

    def programs(self, recipes):
        """`recipes` maps the name of a program to its sources and the other words of the compiler."""
        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            done = pool.map(lambda name: self.program(name, *recipes[name]), recipes)
        for name, built in zip(recipes, done):
            (self.built if built else self.failed).append(name)

    def program(self, name, sources, words):
        target, log = self.folder / name, self.folder / f"{name}.log"
        if target.exists() or log.exists():
            return target.exists()
        # Modules of Fortran with one name may belong to several programs.
        made = self.folder / f"{name}.made"
        shutil.rmtree(made, ignore_errors=True)
        made.mkdir(parents=True)
        modules = [f"-J{made}"] if Path(sources[0]).suffix.lower() == ".f90" else []
        done = self.run(name, self.compiler(sources[0]), *modules, *sources, *words, "-o", made / "program")
        if done:
            (made / "program").rename(target)
        shutil.rmtree(made)
        return done


class BuildFailed(Exception):
    """The argument is the log of the command that failed."""
