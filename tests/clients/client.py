"""What a row of the table of clients (clients.py) consists of."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Debian:
    """A source package, in exactly this version."""

    package: str
    version: str

    def __str__(self):
        return f"Debian's source package {self.package} {self.version}"


@dataclass(frozen=True)
class Git:
    """A commit of a repository."""

    url: str
    commit: str

    def __str__(self):
        return f"commit {self.commit[:12]} of {self.url}"


@dataclass(frozen=True)
class Launch:
    """One start of a program."""

    program: str
    ranks: int
    arguments: tuple[str, ...] = ()
    limit_s: float = 60
    # Variables that the client's own tests set.
    environment: tuple[tuple[str, str], ...] = ()

    def name(self):
        return " ".join([*(f"{name}={value}" for name, value in self.environment), self.program,
                         *self.arguments])


@dataclass(frozen=True)
class Client:
    """A project whose programs lock windows, and its own tests."""

    name: str
    # Places that have the same version, tried in this order.
    sources: tuple[Debian | Git, ...]
    # The files and folders of the source that are needed.
    parts: tuple[str, ...]
    # Makes the programs: build(builder).
    build: Callable
    # The launches under an MPI: launches(source, mpi).
    launches: Callable
    # A program that passes ends with exit code 0 and prints a line that matches.
    passes: re.Pattern
    # The folder of the source in which the programs run.
    runs_in: str = "."
    # Programs that are run with no more ranks than cores under MPICH, if that suffices.
    few_ranks: re.Pattern | None = None
    # (MPI, name of a launch, ranks): why a difference is not the drop-in's.
    known: dict[tuple[str, str, int], str] = field(default_factory=dict)

    def pin(self):
        return "".join(f"{source!r}\n" for source in self.sources) + f"{self.parts!r}\n"

    def source(self, fetched):
        return Path(fetched) / self.name / "source"

    def programs(self, fetched, mpi):
        return Path(fetched) / self.name / mpi
