"""The table of clients of the drop-in: projects whose own tests lock windows, and run with the drop-in as
without it. Each is pinned to one version."""

import re

import armci_mpi
import casper
import mpich_rma
import open_coarrays
import prk
from client import Client, Debian, Git

CLIENTS = {client.name: client for client in [
    Client(
        name="mpich_rma",
        sources=(Debian("mpich", "4.0.2-3"),),
        parts=("test/mpi/rma", "test/mpi/util", "test/mpi/include"),
        build=mpich_rma.build,
        launches=mpich_rma.launches,
        passes=re.compile(r"^\s*No Errors\s*$", re.MULTILINE),
        runs_in=mpich_rma.FOLDER,
        few_ranks=mpich_rma.NOT_OF_LOCKS),
    Client(
        name="open_coarrays",
        sources=(Debian("open-coarrays", "2.10.1-1"),
                 Git("https://github.com/sourceryinstitute/OpenCoarrays", "d8f46576789d168748c9db9786f1d55ee60446ed")),
        parts=("CMakeLists.txt", "src"),
        build=open_coarrays.build,
        launches=open_coarrays.launches,
        passes=re.compile(r"Test passed")),
    Client(
        name="casper",
        sources=(Git("https://github.com/pmodels/casper", "be04c8493fec9a6eae2b241efdabb11225cc83e1"),),
        parts=("src", "include", "maint", "test"),
        build=casper.build,
        launches=casper.launches,
        passes=re.compile(r"^PASS$", re.MULTILINE)),
    Client(
        name="armci_mpi",
        sources=(Debian("armci-mpi", "0.3.1~beta-7"),
                 Git("https://github.com/pmodels/armci-mpi", "0a8636420674d1f6bf1c79bec05b4d612b53ac54")),
        parts=("src", "tests"),
        build=armci_mpi.build,
        launches=armci_mpi.launches,
        passes=re.compile("")),
    Client(
        name="prk",
        sources=(Git("https://github.com/ParRes/Kernels", "04248b66a03d7f5edba8d54c9ae7834dd718027a"),),
        parts=("include", "common", "MPIRMA", "MPISHM", "Cxx11", "FORTRAN"),
        build=prk.build,
        launches=prk.launches,
        passes=re.compile("Solution validates")),
]}

if __name__ == "__main__":
    print(";".join(CLIENTS), end="")
