"""The USDT probes, in the notes of each file that has named locks in it, and of the drop-ins for
MPI."""

import re
import struct
import sys
import unittest

from support import checked

# Provider: {probe: number of arguments}.
PROBES = {
    "lockflight": {"acquire": 3, "acquired": 3, "released": 2, "repaired": 2},
    "lockflight_mpi": {"acquire": 3, "acquired": 3, "released": 2},
}
FILES = sys.argv[1:]
NOP = 0x90


def provider_of(file):
    return "lockflight_mpi" if "liblockflight-mpi" in file else "lockflight"


def notes_of(file):
    """[(probe, address, number of arguments)] of our provider."""
    code, out, err = checked(["readelf", "--notes", "--wide", file])
    assert code == 0, err
    found = re.findall(rf"Provider: {provider_of(file)}\n\s+Name: (\w+)\n\s+Location: (0x[0-9a-f]+), "
                       r"Base: (0x[0-9a-f]+), Semaphore: 0x0+\n\s+Arguments: (.*)\n", out)
    # A tool such as prelink may have moved the code since.
    base = section(file, ".stapsdt.base")[0] if found else 0
    return [(name, int(at, 16) + base - int(was, 16), len(arguments.split()))
            for name, at, was, arguments in found]


def section(file, name):
    """Its address and its place in the file."""
    _, out, _ = checked(["readelf", "--section-headers", "--wide", file])
    found = re.search(re.escape(name) + r"\s+\S+\s+([0-9a-f]+) ([0-9a-f]+) ", out)
    return int(found[1], 16), int(found[2], 16)


def byte_at(file, address):
    start, place = section(file, ".text")
    with open(file, "rb") as of:
        of.seek(address - start + place)
        return struct.unpack("B", of.read(1))[0]


class Probes(unittest.TestCase):
    def test_each_file_has_them(self):
        self.assertTrue(FILES)
        for file in FILES:
            with self.subTest(file=file):
                found = notes_of(file)
                self.assertEqual({name: arguments for name, _, arguments in found},
                                 PROBES[provider_of(file)])

    def test_one_that_is_off_is_one_nop(self):
        for file in FILES:
            for name, address, _ in notes_of(file):
                with self.subTest(file=file, name=name, address=hex(address)):
                    self.assertEqual(byte_at(file, address), NOP)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
