"""How the source of a client is fetched: from Debian's source packages with this machine's apt, or as one
commit with git."""

import functools
import hashlib
import os
import re
import shutil
import subprocess
import tarfile
from pathlib import Path

from build import BuildFailed, Builder
from client import Debian

MPIS = ("openmpi", "mpich")
APT_S = 300
GIT_S = 300
ARCHIVE_S = 60


class Failed(Exception):
    """One line: what could not be done, and why."""


def last_line(text):
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip() if lines else "no reason given"


def fetch_and_build(client, folder):
    to = Path(folder).resolve() / client.name
    to.mkdir(parents=True, exist_ok=True)
    wanted = identity(client)
    of = to / "of"
    # Another version, or another way to build it: begin anew.
    if not of.exists() or of.read_text("utf-8") != wanted:
        shutil.rmtree(to)
        to.mkdir()
        fetch(client, to)
        of.write_text(wanted, "utf-8")
    for mpi in MPIS:
        if not shutil.which(f"mpicc.{mpi}"):
            continue
        builder = Builder(to / "source", to / mpi, mpi)
        try:
            client.build(builder)
        except BuildFailed as failed:
            said = failed.args[0].read_text("utf-8", errors="replace")
            raise Failed(f"it could not be built for {mpi}: {last_line(said)}") from failed
        (to / f"{mpi}.txt").write_text(
            f"{len(builder.built)} programs; {len(builder.failed)} do not compile: "
            f"{' '.join(builder.failed) or '-'}\n", "utf-8")
        if not builder.built:
            raise Failed(f"no program could be built for {mpi}: {to}/{mpi}/*.log say why")


def identity(client):
    """The version of the client, and of the files here that say how it is built."""
    here = Path(__file__).resolve().parent
    sources = sorted(path for path in here.iterdir() if path.suffix in (".py", ".h"))
    sources = [path for path in sources if not path.name.endswith("_test.py")]
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources))
    return f"{client.pin()}{digest.hexdigest()}\n"


def fetch(client, to):
    why = []
    local = local_copy(client)
    ways = [("the local copy", lambda source: from_git(client, source, str(local), to))] * bool(local)
    ways.append(("", lambda source: from_debian(client, source, to) if isinstance(source, Debian)
                 else from_git(client, source, source.url, to)))
    for where, way in ways:
        for source in client.sources:
            if where and isinstance(source, Debian):
                continue
            try:
                way(source)
                return
            except (OSError, subprocess.SubprocessError, tarfile.TarError, Failed) as error:
                said = last_line(getattr(error, "stderr", None) or str(error))
                why.append(f"{where or source}: {said}")
    raise Failed("it could not be fetched: " + "; ".join(why))


def local_copy(client):
    """The git folder of the client in LOCKFLIGHT_CLIENTS."""
    folder = os.environ.get("LOCKFLIGHT_CLIENTS")
    for name in (f"{client.name}/.git", client.name, f"{client.name}.git"):
        if folder and (Path(folder) / name).exists():
            return (Path(folder) / name).resolve()
    return None


def from_git(client, source, place, to):
    """`place` is a folder, or an address."""
    repository = Path(place)
    if "://" in place:
        repository = to / "git"
        run(GIT_S, "git", "init", "-q", "--bare", repository)
        run(GIT_S, "git", f"--git-dir={repository}", "fetch", "-q", "--depth", "1", place, source.commit)
    archive = to / "archive.tar"
    run(ARCHIVE_S, "git", f"--git-dir={repository}", "archive", "-o", archive, "--prefix=of/", source.commit,
        *client.parts)
    unpack(client, archive, to)
    shutil.rmtree(to / "git", ignore_errors=True)


def from_debian(client, source, to):
    archives = to / "archives"
    shutil.rmtree(archives, ignore_errors=True)
    archives.mkdir()
    apt_in(to.parent / "apt")("source", "--download-only", f"{source.package}={source.version}", cwd=archives)
    (archive,) = archives.glob("*.orig.tar.*")
    unpack(client, archive, to)
    shutil.rmtree(archives)


@functools.lru_cache
def apt_in(folder):
    """One apt-get for all clients, whose lists are up to date."""
    apt = Apt(folder)
    apt("update", "-o", "APT::Update::Error-Mode=any")
    return apt


class Apt:
    """apt-get with the source packages that belong to the packages of this machine's apt, in lists of its
    own: apt usually lists none, and its own lists are left as they are."""

    def __init__(self, folder):
        shutil.rmtree(folder, ignore_errors=True)
        sources, lists = folder / "sources", folder / "lists"
        sources.mkdir(parents=True)
        (lists / "partial").mkdir(parents=True)
        etc = Path("/etc/apt")
        lines = []
        for path in [etc / "sources.list", *sorted((etc / "sources.list.d").glob("*.list"))]:
            if path.exists():
                lines += re.findall(r"^deb(\s.*)$", path.read_text("utf-8"), re.MULTILINE)
        (sources / "lines.list").write_text("".join(f"deb-src{line}\n" for line in lines), "utf-8")
        for path in (etc / "sources.list.d").glob("*.sources"):
            (sources / path.name).write_text(
                re.sub(r"^Types:.*$", "Types: deb-src", path.read_text("utf-8"), flags=re.MULTILINE), "utf-8")
        self.words = ["apt-get", "-q", "-o", "Dir::Etc::SourceList=/dev/null", "-o",
                      f"Dir::Etc::SourceParts={sources}", "-o", f"Dir::State::Lists={lists}", "-o",
                      "Dir::Cache::srcpkgcache=", "-o", "Dir::Cache::pkgcache=", "-o", "Acquire::Retries=1"]

    def __call__(self, *words, cwd=None):
        run(APT_S, *self.words, *words, cwd=cwd)


def run(limit_s, *words, cwd=None):
    return subprocess.run([str(word) for word in words], cwd=cwd, timeout=limit_s, check=True,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")


def unpack(client, archive, to):
    """The parts of the archive that the client needs, without the folder that all its files are in."""
    unpacked = to / "unpacked"
    shutil.rmtree(unpacked, ignore_errors=True)
    with tarfile.open(archive) as opened:
        for member in opened:
            name = member.name.partition("/")[2]
            inside = any(part == "." or name == part or name.startswith(f"{part}/") for part in client.parts)
            if not inside or not member.isfile() or ".." in Path(name).parts:
                continue
            path = unpacked / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(opened.extractfile(member).read())
            path.chmod(member.mode & 0o777 | 0o600)
    archive.unlink()
    missing = [part for part in client.parts if not (unpacked / part).exists()]
    if missing:
        raise Failed(f"the source has no {missing[0]}")
    unpacked.rename(to / "source")
