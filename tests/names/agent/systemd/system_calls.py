"""A process that may make some system calls only, as under SystemCallFilter= of a systemd unit."""

import ctypes
import os
import re
import struct
import subprocess

HEADER = "/usr/include/x86_64-linux-gnu/asm/unistd_64.h"
ARCHITECTURE = 0xC000003E  # AUDIT_ARCH_X86_64
ALLOWED = 0x7FFF0000
NOT_PERMITTED = 0x00050000 | 1  # SECCOMP_RET_ERRNO, EPERM

# Of linux/bpf_common.h: read a word of struct seccomp_data; jump if it is equal; return.
LOAD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
NUMBER_AT, ARCHITECTURE_AT = 0, 4
PR_SET_SECCOMP, SECCOMP_MODE_FILTER, PR_SET_NO_NEW_PRIVS = 22, 2, 38


def can_filter():
    return os.uname().machine == "x86_64" and os.path.exists(HEADER)


def numbers():
    """{name: number} of the system calls of this kind of machine."""
    with open(HEADER, encoding="ascii") as file:
        return {name: int(number) for name, number in re.findall(r"#define __NR_(\w+) (\d+)", file.read())}


def calls_of(names):
    """The system calls that systemd means by these names and sets, such as @system-service."""
    found = set()
    for name in names:
        if not name.startswith("@"):
            found.add(name)
            continue
        shown = subprocess.run(["systemd-analyze", "--no-pager", "syscall-filter", name], check=True,
                               capture_output=True, text=True).stdout
        words = [line.split()[0] for line in shown.splitlines()[1:] if line.startswith("    ")]
        found |= calls_of([word for word in words if not word.startswith("#")])
    return found


def only(allowed):
    """For preexec_fn: any other system call fails with EPERM."""
    table = numbers()
    wanted = sorted(table[name] for name in allowed if name in table)
    code = [(LOAD, 0, 0, ARCHITECTURE_AT), (JUMP_IF_EQUAL, 1, 0, ARCHITECTURE),
            (RETURN, 0, 0, NOT_PERMITTED), (LOAD, 0, 0, NUMBER_AT)]
    for number in wanted:
        code += [(JUMP_IF_EQUAL, 0, 1, number), (RETURN, 0, 0, ALLOWED)]
    code.append((RETURN, 0, 0, NOT_PERMITTED))
    program = b"".join(struct.pack("=HBBI", *each) for each in code)
    libc = ctypes.CDLL(None, use_errno=True)

    def begin():
        kept = ctypes.create_string_buffer(program, len(program))
        header = struct.pack("@HP", len(code), ctypes.addressof(kept))
        if (libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 or
                libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.c_char_p(header), 0, 0) != 0):
            raise OSError(ctypes.get_errno(), "a filter for system calls is refused")
    return begin
