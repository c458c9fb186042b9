#!/usr/bin/env python3
"""Checks which folders include which, and that locks touch shared memory through their port only.

usage: layering.py ROOT

A lock that used an atomic, a clock or a loop of its own would work on shared memory and be invisible
to the simulator and the checker. First every rule is seen to fail on a text that breaks it.

Exit codes: 0 fine, 1 a rule is broken, 2 bad usage.
"""

import pathlib
import re
import sys

SOURCES = (".h", ".hpp", ".c", ".cpp", ".cc", ".in")
FOLDERS = ("include", "src", "bindings", "lab", "tests", "examples")
MOST_LOCK_LINES = 300

LOCK = "include/lockflight/lock/"
PRINTED = "lab/printed/"  # locks as papers print them: the same rules
RMA = "include/lockflight/rma/"
FABRIC = "include/lockflight/fabric/"

# ---- what may be included -----------------------------------------------------------------------

# Folder: the parts of lockflight that its files may include. Other folders may include all of it.
MAY_INCLUDE = {
    RMA: ("lockflight/rma/",),
    LOCK: ("lockflight/rma/", "lockflight/lock/"),
    PRINTED: ("lockflight/rma/", "lockflight/lock/"),
    FABRIC: ("lockflight/rma/", "lockflight/fabric/"),
    "include/lockflight/baseline/": ("lockflight/rma/", "lockflight/lock/about.hpp"),
    "src/fabric/": ("lockflight/rma/", "lockflight/fabric/"),
    "lab/sim/": ("lockflight/rma/", "lockflight/fabric/"),
    "src/catalogue/": ("lockflight/rma/", "lockflight/lock/", "lockflight/baseline/", "lockflight/mode.hpp"),
}

# Every room with sources: the other rooms that its files may include. What is in src/ and bindings/
# runs at users', and needs nothing of lab/.
ROOMS = {
    "src/base": (),
    "src/toml": ("src/base",),
    "src/catalogue": ("src/base",),
    "src/wireup": ("src/base",),
    "src/fabric": ("src/base", "src/wireup"),
    "src/mpi_preload": ("src/base", "src/fabric"),
    "src/profile": ("src/base", "src/toml", "src/catalogue"),
    "src/names/file": ("src/base", "src/fabric"),
    "src/names/life": ("src/base", "src/fabric", "src/names/file"),
    "src/names/cluster/core": ("src/base",),
    "src/names/cluster/client": ("src/base", "src/fabric", "src/names/file", "src/names/life",
                                 "src/names/cluster/core"),
    "src/names/locks": ("src/base", "src/catalogue", "src/fabric", "src/names/file",
                        "src/names/life", "src/names/cluster/client"),
    "src/names/agent": ("src/base", "src/toml", "src/fabric", "src/tool", "src/names/file",
                        "src/names/life", "src/names/locks", "src/names/cluster/core",
                        "src/names/cluster/client"),
    "src/tool": ("src/base", "src/catalogue"),
    "src/cli": ("src/base", "src/catalogue", "src/tool"),
    "bindings/c": ("src/base", "src/catalogue"),
    "bindings/python": (),
    "lab/printed": (),
    "lab/fiber": (),
    "lab/sim": ("src/base", "src/toml", "lab/fiber"),
    "lab/check": ("src/base", "src/catalogue", "lab/fiber", "lab/printed"),
    "lab/cluster": ("src/names/cluster/core",),
    "lab/report": ("src/base",),
    "lab/bench": ("src/base", "src/catalogue", "lab/printed", "lab/sim"),
    "lab/reproduce": ("src/base", "src/toml", "lab/sim", "lab/report", "lab/bench"),
    "lab/tune": ("src/base", "src/catalogue", "lab/bench"),
    "lab/perf": ("src/base", "src/names/cluster/core", "src/names/agent", "lab/fiber", "lab/bench",
                 "lab/cluster"),
    "lab/program": ("src/base", "src/tool", "lab/sim", "lab/check", "lab/cluster", "lab/report",
                    "lab/bench", "lab/reproduce", "lab/tune"),
}

# Folders of a room: each may include those before it only.
FOLDERS_IN_ORDER = {
    "lab/check": ("memory", "engine", "search", "program"),
    "src/names/agent": ("etcd", "link", "host", "process", "program"),
    "lab/bench": ("port", "workload", "shm", "sim", "entry", "plan", "fit", "launched", "mpi", "wired", "oshmem", "json"),
}

# Headers of a network library: the folders that may include them.
NETWORK_HEADERS = {
    # lockflight_mpi.h is for users: it alone names MPI_Comm, so that the libraries need not. Programs
    # of users include mpi.h, or a header that does.
    r"mpi(-ext|x)?\.h": (
        "src/fabric/mpi/", "src/mpi_preload/", "include/lockflight/lockflight_mpi.h",
        "include/lockflight/fabric/wired_mpi.hpp", "tests/fabric/wired/on_mpi.cpp",
        "tests/mpi_preload/", "tests/bindings/c/on_mpi.c", "tests/bindings/c/profile_on_mpi.c", "lab/perf/mpi_window_locks.c",
        "lab/perf/mpi_never_locks.c", "lab/perf/d_mcs_on_mpi.c", "tests/clients/early_get.c"),
    # Else a file that includes it would depend on one MPI.
    r"lockflight/lockflight_mpi\.h": (
        "tests/bindings/c/on_mpi.c", "tests/bindings/c/profile_on_mpi.c", "examples/"),
    r"(uc[pts])/.*|ucp\.h": ("src/fabric/ucx/",),
    r"p?shmemx?\.h": ("src/fabric/oshmem/", "lab/perf/shmem_lock.c", "examples/shmem/",
                      "tests/bindings/c/on_oshmem.c"),
    r"rdma/fi_.*|rdma/fabric\.h": ("src/fabric/libfabric/",),
    r"infiniband/.*|rdma/(?!fi_|fabric\.h).*": (),  # no fabric is on verbs
}

# In these folders only headers of the C++ standard library come in angle brackets …
STANDARD_ONLY = (RMA, LOCK, PRINTED)
# … and in locks none that offers a way round the port.
HIDDEN_FROM_LOCKS = {
    "atomic", "barrier", "chrono", "condition_variable", "coroutine", "csetjmp", "csignal",
    "cstdio", "ctime", "fstream", "future", "iostream", "latch", "mutex", "random", "semaphore",
    "shared_mutex", "stop_token", "thread",
}

# ---- what locks may not contain -----------------------------------------------------------------

FORBIDDEN_IN_LOCKS = {
    "an atomic of its own": r"\batomic(_\w+|\b)|\b__(atomic|sync)_\w+|\bvolatile\b",
    "thread-local state": r"\bthread_local\b|\b__thread\b",
    "static state": r"\bstatic\s+(?:inline\s+)?(?!constexpr\b|inline\b)"
                    r"(?:std::)?\w+(?:::\w+)*(?:<[^;(]*>)?\s+\w+\s*(=|;|\{)",
    "a clock": r"\bchrono\b|\bclock(_\w+|\b)|\b(gettimeofday|nanosleep|usleep|rdtsc\w*)\b"
               r"|\b__rdtscp?\b|\btime\s*\(",
    "threads": r"\bthis_thread\b|\bj?thread\b|\bsched_\w+|\bpthread_\w+|\bfutex\b",
    "a pause instruction": r"\b_mm_pause\b|\b__builtin_ia32_\w+|\b__?asm(__)?\b|\basm\b",
}


def strip_comments_and_strings(text):
    """The code alone: comments are blanked, strings emptied, lines kept."""
    token = re.compile(
        r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])*'", re.S)

    def blank(match):
        found = match.group()
        return '""' if found[0] == '"' else "\n" * found.count("\n") or " "

    kept_includes = re.sub(r'(#\s*include\s*)"([^"\n]*)"', r"\1<:\2:>", text)
    return token.sub(blank, kept_includes)


def line_of(text, position):
    return text.count("\n", 0, position) + 1


def includes_of(code):
    """(line, name, is_quoted) of every include."""
    for match in re.finditer(r"^[ \t]*#\s*include\s*<(:?)([^>]*?):?>", code, re.M):
        yield line_of(code, match.start()), match.group(2), match.group(1) == ":"


def room_of(path):
    """The row of ROOMS that a file is in; None if in none."""
    return next((room for room in ROOMS if path.startswith(room + "/")), None)


def path_of(name):
    """Where the file is that is included by this name: headers of src/ are named from there, those of
    the other folders from the root."""
    return name if name.startswith(("lab/", "bindings/", "tests/")) else f"src/{name}"


def rooms_that_differ(files):
    """Rows of ROOMS without a file, and files of its folders without a row."""
    for room in ROOMS:
        if not any(f.startswith(room + "/") for f in files):
            yield f"ROOMS of layering.py: {room} has no sources"
    for file in files:
        if file.startswith(("src/", "bindings/", "lab/")) and room_of(file) is None:
            yield f"{file}: ROOMS of layering.py has no row for its folder"


def check_includes(path, code):
    for line, name, quoted in includes_of(code):
        is_ours = name.startswith("lockflight/")
        for pattern, folders in NETWORK_HEADERS.items():
            if re.fullmatch(pattern, name) and not path.startswith(folders):
                yield line, f"only {' and '.join(folders) or 'nothing'} may include {name}"
        for folder, allowed in MAY_INCLUDE.items():
            if not path.startswith(folder):
                continue
            if is_ours and not name.startswith(allowed):
                yield line, f"{folder} may not include {name}, of lockflight only {allowed}"
            if quoted and not is_ours and folder.startswith("include/"):
                yield line, f"{name}: public headers are included by their full name"
        here, there = room_of(path), room_of(path_of(name))
        if (quoted and not is_ours and "/" in name and here
                and there not in (here, *ROOMS[here])):
            yield line, f"{here} may not include {name}, only {ROOMS[here]}"
        for folder, inner in FOLDERS_IN_ORDER.items():
            here = re.match(rf"{folder}/(\w+)/", path)
            there = re.match(rf"{folder}/(\w+)/", path_of(name))
            if here and there and inner.index(there[1]) > inner.index(here[1]):
                yield line, f"{folder}/{here[1]} may not include {name}, of a later folder"
        if path.startswith(STANDARD_ONLY) and not quoted and not re.fullmatch(r"[a-z_]+", name):
            yield line, f"<{name}> is not of the standard library"
        if path.startswith((LOCK, PRINTED)) and name in HIDDEN_FROM_LOCKS:
            yield line, f"<{name}> offers a lock a way round its port"


def after_bracket(code, opening):
    """The position after the bracket that closes the one at `opening`."""
    depth = 0
    for position in range(opening, len(code)):
        depth += {"(": 1, "{": 1, ")": -1, "}": -1}.get(code[position], 0)
        if depth == 0:
            return position + 1
    return len(code)


def hand_made_waits(code):
    """Where a loop has no body, or polls a cell of its node: it would spin."""
    ends_of_do = {after_bracket(code, m.end() - 1) for m in re.finditer(r"\bdo\s*\{", code)}
    for match in re.finditer(r"\b(while|for)\s*\(", code):
        end = after_bracket(code, match.end() - 1)
        is_do = len(code[:match.start()].rstrip()) in ends_of_do
        is_empty = re.match(r"\s*(;|\{\s*\}|\{?\s*continue\b)", code[end:]) and not is_do
        if is_empty or re.search(r"(\.|->)load\s*\(", code[match.end():end]):
            yield match.start()


def check_lock(code, lines):
    if lines >= MOST_LOCK_LINES:
        yield lines, f"{lines} lines; a lock has fewer than {MOST_LOCK_LINES}"
    for match in re.finditer(r"^[ \t]*#[ \t]*(\w+)([^\n]*)", code, re.M):
        if match.group(1) != "include" and match.group().split() != ["#pragma", "once"]:
            yield line_of(code, match.start()), "a lock has no directive but #include, #pragma once"
    for position in hand_made_waits(code):
        yield line_of(code, position), "a lock waits with await or poll, never in a loop"
    for what, pattern in FORBIDDEN_IN_LOCKS.items():
        for match in re.finditer(pattern, code):
            found = " ".join(match.group().split())
            yield line_of(code, match.start()), f"a lock has no place for {what}: {found}"


def violations(path, text):
    """What is wrong in a file, as (line, what)."""
    code = strip_comments_and_strings(text)
    found = list(check_includes(path, code))
    if path.startswith((LOCK, PRINTED)):
        found += check_lock(code, text.count("\n"))
    return found


STANDARD = "lockflight/rma/cxx20.hpp"


def is_silent_about_the_standard(path, text):
    """True for a public header from which no include leads to the one that says that C++20 is
    needed. It is enough to look at headers that include no other one of lockflight."""
    if not path.startswith("include/") or not path.endswith(".hpp") or path.endswith(STANDARD):
        return False
    names = [name for _, name, _ in includes_of(strip_comments_and_strings(text))]
    return not any(re.fullmatch(r"lockflight/.*\.hpp", name) for name in names)


# ---- every rule is seen to fail -----------------------------------------------------------------

BROKEN = [
    (LOCK + "x.hpp", "#include <atomic>"),
    (LOCK + "x.hpp", "#include <mutex>"),
    (LOCK + "x.hpp", "#include <pthread.h>"),
    (LOCK + "x.hpp", "#include <sys/mman.h>"),
    (LOCK + "x.hpp", '#include "lockflight/fabric/shm.hpp"'),
    (LOCK + "x.hpp", '#include "lockflight/baseline/pthread.hpp"'),
    (LOCK + "x.hpp", '#include "lockflight/mutex.hpp"'),
    (LOCK + "x.hpp", '  #  include "lockflight/fabric/shm.hpp"'),
    (LOCK + "x.hpp", '#include "about.hpp"'),
    (LOCK + "x.hpp", "std::atomic<int> n;"),
    (LOCK + "x.hpp", "std::atomic_ref n(m);"),
    (LOCK + "x.hpp", "__atomic_load_n(p, 0);"),
    (LOCK + "x.hpp", "volatile int n;"),
    (LOCK + "x.hpp", "thread_local int depth = 0;"),
    (LOCK + "x.hpp", "static int holders = 0;"),
    (LOCK + "x.hpp", "static inline std::vector<int> holders;"),
    (LOCK + "x.hpp", "auto t = std::chrono::steady_clock::now();"),
    (LOCK + "x.hpp", "clock_gettime(CLOCK_MONOTONIC, &t);"),
    (LOCK + "x.hpp", "if (time(nullptr) > 7) return;"),
    (LOCK + "x.hpp", "std::this_thread::yield();"),
    (LOCK + "x.hpp", "sched_yield();"),
    (LOCK + "x.hpp", "_mm_pause();"),
    (LOCK + "x.hpp", 'asm volatile("pause");'),
    (LOCK + "x.hpp", "while (port_.load(c) != 0);"),
    (LOCK + "x.hpp", "while (port_.load(c) != 0) {}"),
    (LOCK + "x.hpp", "while (port_.load(c) != 0) {\n}"),
    (LOCK + "x.hpp", "if (a) {\n  b();\n}\nwhile (port_.load(at(c)) != 0);"),
    (LOCK + "x.hpp", "while (busy()) continue;"),
    (LOCK + "x.hpp", "while (port_.load(c) != 0) ++looks;"),
    (LOCK + "x.hpp", "do {\n  ++looks;\n} while (port_.load(c) != 0);"),
    (LOCK + "x.hpp", "for (;;) {}"),
    (LOCK + "x.hpp", "for (int i = 0; busy(); ++i) ;"),
    (LOCK + "x.hpp", "#if defined(__x86_64__)\n#endif"),
    (LOCK + "x.hpp", "#define SPIN 1"),
    (LOCK + "x.hpp", "#pragma GCC unroll 4"),
    (LOCK + "x.hpp", "\n" * MOST_LOCK_LINES),
    (RMA + "x.hpp", '#include "lockflight/lock/about.hpp"'),
    (RMA + "x.hpp", '#include "lockflight/fabric/shm.hpp"'),
    (RMA + "x.hpp", "#include <unistd.h>"),
    (FABRIC + "x.hpp", '#include "lockflight/lock/about.hpp"'),
    (FABRIC + "x.hpp", "#include <mpi.h>"),
    ("src/fabric/shm/x.cpp", '#include "lockflight/lock/d_mcs.hpp"'),
    ("src/fabric/shm/x.cpp", '#include "lockflight/mutex.hpp"'),
    ("src/fabric/shm/x.cpp", "#include <mpi.h>"),
    ("src/fabric/mpi/x.cpp", "#include <ucp/api/ucp.h>"),
    ("src/fabric/ucx/x.cpp", "#include <mpi.h>"),
    ("src/fabric/wired/x.cpp", "#include <ucp/api/ucp.h>"),
    ("src/fabric/ucx/x.cpp", "#include <rdma/fi_endpoint.h>"),
    ("src/fabric/libfabric/x.cpp", "#include <rdma/rdma_cma.h>"),
    ("lab/bench/x.cpp", "#include <mpi.h>"),
    ("lab/check/engine/x.cpp", '#include "lab/check/search/search.hpp"'),
    ("lab/check/search/x.cpp", '#include "lab/check/program/subject.hpp"'),
    ("lab/printed/x.hpp", "#include <atomic>"),
    ("lab/printed/x.hpp", "while (port_.load(c) != 0);"),
    ("src/names/cluster/core/x.cpp", '#include "lab/cluster/world.hpp"'),
    ("src/names/cluster/core/x.cpp", '#include "names/file/file.hpp"'),
    ("src/names/life/x.cpp", '#include "names/locks/users.hpp"'),
    ("src/names/agent/link/x.cpp", '#include "names/agent/process/status.hpp"'),
    ("lab/bench/workload/x.hpp", '#include "lab/bench/plan/request.hpp"'),
    ("lab/bench/sim/x.hpp", '#include "lab/bench/entry/entry.hpp"'),
    ("bindings/c/x.cpp", '#include "lab/fiber/fiber.hpp"'),
    ("src/catalogue/x.hpp", '#include "lockflight/fabric/shm.hpp"'),
    ("src/cli/x.cpp", '#include "lab/bench/bench.hpp"'),
    ("src/cli/x.cpp", '#include "no_room/commands.hpp"'),
    ("src/tool/x.cpp", '#include "cli/commands.hpp"'),
    ("bindings/c/x.cpp", "#include <mpi.h>"),
    ("bindings/c/x.cpp", '#include "lockflight/lockflight_mpi.h"'),
    ("include/lockflight/lockflight.h", "#include <mpi.h>"),
    ("src/cli/x.cpp", '#include "mpi.h"'),
    ("tests/lock/x.cpp", "#include <shmem.h>"),
]

SOUND = [
    (LOCK + "x.hpp", "#pragma once\n#include <array>\n#include <cstdint>\n"
                     '#include "lockflight/lock/about.hpp"\n#include "lockflight/rma/port.hpp"\n'),
    (LOCK + "x.hpp", "// std::atomic would be invisible; while (x); too\n/* #if */ int clocks;"),
    (LOCK + "x.hpp", 'auto text = "std::atomic while (x);";'),
    (LOCK + "x.hpp", "for (auto b = first(); !try_lock();) port_.pause(b.next());"),
    (LOCK + "x.hpp", "do {\n  step();\n} while (level > 1);"),
    (LOCK + "x.hpp", "while (true) {\n  if (done()) return;\n}"),
    (LOCK + "x.hpp", "while (++level <= tree_.levels()) tree_.leave(level, order());"),
    (LOCK + "x.hpp", "static constexpr int most = 1'000'000;\nstatic cells place(layout& in) {}"),
    (RMA + "x.hpp", '#include <vector>\n#include "lockflight/rma/cell.hpp"'),
    (FABRIC + "x.hpp", '#include <atomic>\n#include "lockflight/rma/port.hpp"'),
    ("src/fabric/shm/x.cpp", '#include <unistd.h>\n#include "segment.hpp"'),
    ("src/fabric/mpi/x.cpp", "#include <mpi.h>"),
    ("include/lockflight/lockflight_mpi.h", "#include <lockflight/lockflight.h>\n#include <mpi.h>"),
    ("src/fabric/ucx/x.cpp", "#include <ucp/api/ucp.h>"),
    ("src/fabric/libfabric/x.cpp", "#include <rdma/fabric.h>\n#include <rdma/fi_cm.h>"),
    ("lab/bench/x.cpp", '#include "lockflight/lock/all.hpp"\n#include <chrono>'),
    ("src/cli/x.cpp", '#include "cli/commands.hpp"\n#include "tool/tool.hpp"\n'
                      '#include "lockflight/domain.hpp"'),
    ("lab/bench/plan/x.cpp", '#include "lab/bench/entry/entry.hpp"\n'
                             '#include "lab/bench/plan/request.hpp"\n#include "base/number.hpp"'),
    ("lab/check/check.cpp", '#include "lab/check/program/subject.hpp"'),
    ("src/names/locks/x.cpp", '#include "names/cluster/client/words.hpp"\n#include "users.hpp"'),
]


def self_test():
    for path, text in BROKEN:
        if not violations(path, text):
            yield f"no rule notices, in {path}: {text[:60]!r}"
    header = "include/lockflight/x.hpp"
    if not is_silent_about_the_standard(header, '#include <array>\n#include "lockflight/x.h"'):
        yield "no rule notices a header that does not say that it needs C++20"
    if is_silent_about_the_standard(header, f'#include "{STANDARD}"'):
        yield "a rule is too strict about headers that say that they need C++20"
    files = [room + "/x.cpp" for room in ROOMS]
    if not list(rooms_that_differ(files[1:])) or not list(rooms_that_differ([*files, "src/x/y.cpp"])):
        yield "no rule notices that ROOMS has other rooms than the sources"
    for path, text in SOUND:
        for _, what in violations(path, text):
            yield f"a rule is too strict, in {path}: {text[:60]!r}: {what}"


def main(arguments):
    if len(arguments) != 1 or not (pathlib.Path(arguments[0]) / LOCK).is_dir():
        print("usage: layering.py ROOT (of lockflight's sources)", file=sys.stderr)
        return 2
    broken = list(self_test())
    root = pathlib.Path(arguments[0])
    files = []
    for folder in FOLDERS:
        for file in sorted((root / folder).rglob("*")):
            if file.suffix not in SOURCES or not file.is_file():
                continue
            path = file.relative_to(root).as_posix()
            files.append(path)
            text = file.read_text(encoding="utf-8")
            broken += [f"{path}:{line}: {what}" for line, what in violations(path, text)]
            if is_silent_about_the_standard(path, text):
                broken.append(f"{path}: a public header includes {STANDARD}, or one that does")
    broken += rooms_that_differ(files)
    for each in broken:
        print(each)
    print(f"{len(BROKEN) + len(SOUND)} examples, {len(files)} files, {len(broken)} broken rules")
    return 1 if broken or not files else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
