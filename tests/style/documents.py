#!/usr/bin/env python3
"""Checks the documents: that what they name exists, and that pictures and tables match the sources.

usage: documents.py ROOT

A path in a document is wrong as soon as the file moves, and no compiler notices. Before the
documents are read, every rule has to fail on a text that breaks it.

Exit codes: 0 fine, 1 a rule is broken, 2 bad usage.
"""

import html
import os
import pathlib
import re
import subprocess
import sys

FOLDERS = ("bindings", "cmake", "docs", "examples", "include", "lab", "packaging", "src", "tests")
SOURCES = (".c", ".cpp", ".h", ".hpp", ".in")
WITH_COMMENTS = (*SOURCES, ".cmake", ".f90", ".py", ".toml", ".txt")

# ---- links, paths -------------------------------------------------------------------------------


def dead_links(name, text, files):
    """Links lead from the document's folder, paths in backticks from the root. C++ in a block has
    lambdas, which look like links."""
    prose = re.sub(r"(?ms)^```.*?^```", "", text)
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", prose):
        path = os.path.normpath(os.path.join(os.path.dirname(name), target))
        if path not in files:
            yield f"{name}: links to {target}, which does not exist"
    for path in re.findall(rf"`((?:{'|'.join(FOLDERS)})/[\w./-]*)`", text):
        if path.rstrip("/") not in files:
            yield f"{name}: {path} does not exist"
    for end in re.findall(r"`([\w/-]+\.(?:c|cpp|f90|hpp|mutants|pml|py))`", text):
        if not end.startswith(FOLDERS) and not any(f"/{f}".endswith(f"/{end}") for f in files):
            yield f"{name}: no file is called {end}"


# ---- tables -------------------------------------------------------------------------------------


def unended_tables(name, text):
    """Markdown takes a line below a table for a row of it, unless an empty line is between."""
    for below in re.findall(r"(?m)^\|.*\n(?=([^|\n].*)$)", text):
        yield f"{name}: no empty line between a table and '{below[:40]}'"


# ---- paragraphs ---------------------------------------------------------------------------------

MOST_WORDS = 120


def long_paragraphs(name, text):
    """Paragraphs and items of lists; no code, tables and headings."""
    text = re.sub(r"(?ms)^ *```.*?^ *```$", "", text)
    for paragraph in re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )", text):
        words = [word for line in paragraph.splitlines() if not re.match(r"\s*[|#]", line)
                 for word in line.split()]
        if len(words) > MOST_WORDS:
            yield (f"{name}: a paragraph of {len(words)} words, more than {MOST_WORDS}: "
                   f"'{' '.join(words[:8])} ...'")


PATH_IN_COMMENT = re.compile(
    r"(?<![\w./<\"-])((?:[a-z][\w-]*/)+[a-z][\w.-]*\.(?:hpp|cpp|h|c|py|toml|pml|f90|mutants|cmake|md))\b")


def dead_paths(name, text, files):
    """Paths in comments lead from the root, or from a folder in which the compiler looks, or from the
    file's own folder or the one above it."""
    folder = os.path.dirname(name)
    bases = ("", "src", "include", "include/lockflight", "include/lockflight/lock", "tests", "lab", folder,
             os.path.dirname(folder))
    for line in text.splitlines():
        comment = re.search(r"(?://|# |!|^\s*/?\*)(?!include)(.*)", line)
        for path in PATH_IN_COMMENT.findall(comment[1]) if comment else []:
            if not path.startswith("linux/") and not any(
                    os.path.normpath(os.path.join(base, path)) in files for base in bases):
                yield f"{name}: a comment names {path}, which does not exist"


# ---- pictures -----------------------------------------------------------------------------------


NAME = r'(?:"[^"]+"|\w+)'


def edges_of(dot):
    """The arrows of a source for graphviz, chains included; no groups in braces."""
    code = re.sub(r'//.*|= *"[^"]*"', "", dot)
    for chain in re.findall(rf"{NAME}(?::\w+)?(?:\s*->\s*{NAME}(?::\w+)?)+", code):
        names = [re.sub(r":\w+$", "", n.strip()).strip('"') for n in chain.split("->")]
        yield from zip(names, names[1:])


def labels_of(dot):
    """The lines of all labels."""
    labels = re.findall(r'\blabel *= *"([^"]*)"', dot)
    lines = [line.strip() for label in labels for line in re.split(r"\\[nlr]", label)]
    return [line for line in lines if line]


def not_redrawn(name, dot, svg):
    """Whether the picture shows what its source says; layout and font are graphviz's affair. A node
    without a label shows its name."""
    titles = {html.unescape(t) for t in re.findall(r"<title>(.*?)</title>", svg)}
    titles -= set(re.findall(r"\b(?:digraph|subgraph) +(\w+)", dot))
    drawn = {t for t in titles if "->" in t}
    shown = [html.unescape(t).strip() for t in re.findall(r"<text[^>]*>(.*?)</text>", svg)]
    labelled = {n.strip('"') for n in re.findall(rf'(?m)^\s*({NAME}) +\[.*\blabel *=', dot)}
    labelled -= {"graph", "node", "edge"}
    said = labels_of(dot) + sorted(titles - drawn - labelled)
    if (not shown or not labelled <= titles or sorted(shown) != sorted(said)
            or drawn != {f"{a}->{b}" for a, b in edges_of(dot)}):
        yield f"{name}: is not what its source says: run ./dev pictures"


def not_drawn(name, svg, drawn):
    """Whether the chart is what its script draws today."""
    if svg != drawn:
        yield f"{name}: has other figures than its table: run ./dev pictures"


def folder_of(path, folders):
    inside = [f for f in folders if path.startswith(f + "/")]
    return max(inside, key=len) if inside else None


def includes(root, files):
    """(file, included file) of all files but tests and examples."""
    for name in files:
        if not name.startswith(("bindings/", "include/", "lab/", "src/")) or not name.endswith(SOURCES):
            continue
        text = (root / name).read_text(encoding="utf-8")
        for target in re.findall(r'(?m)^[ \t]*#\s*include\s*["<]([^">]+)[">]', text):
            for base in ("include", "src", "", os.path.dirname(name)):
                path = os.path.normpath(os.path.join(base, target))
                if path in files:
                    yield name, path
                    break


def reachable(start, edges):
    found, ahead = set(), [start]
    while ahead:
        for a, b in edges:
            if a == ahead[0] and b not in found:
                found.add(b)
                ahead.append(b)
        ahead.pop(0)
    return found


def wrong_layers(name, dot, pairs):
    """Whether the picture has the arrows that the sources have, without those that follow."""
    nodes = {n.strip('"') for n in re.findall(rf"(?m)^\s*({NAME}) +\[", dot)}
    drawn = set(edges_of(dot))
    for path in sorted({p for pair in pairs for p in pair if folder_of(p, nodes) is None}):
        yield f"{name}: has no place for {path}"
    real = {(folder_of(a, nodes), folder_of(b, nodes)) for a, b in pairs}
    real = {(a, b) for a, b in real if a != b and a and b}
    for node in sorted(n for n in nodes if n in reachable(n, real)):
        yield f"{node}: includes itself by way of others, {sorted(b for a, b in real if a == node)}"
    needed = {(a, b) for a, b in real
              if not any(c != b and b in reachable(c, real) for d, c in real if d == a)}
    for a, b in sorted(needed - drawn):
        yield f"{name}: lacks the arrow from {a} to {b}"
    for a, b in sorted(drawn - needed):
        yield f"{name}: the arrow from {a} to {b} is not so, or follows from others"


# ---- searches and models ------------------------------------------------------------------------


def unsearched(name, text, bounds):
    """Whether the largest searches of the table are among those of ./dev check-deep."""
    rows = re.findall(r"(?m)^\| `([\w-]+)`[^|]* \| `(--[^`]+)` \|", text)
    if not rows:
        yield f"{name}: no table of searches"
    for lock, options in rows:
        if f"{lock} {options}" not in bounds:
            yield f"{name}: tests/lab/check_deep does not search it: add to bounds() the line {lock} {options}"


def untold_models(name, text, models, checked):
    """`checked`: the models that lab/models/run has checks of."""
    told = set(re.findall(r"(?m)^\| `(\w+)\.pml` \|", text))
    for model in sorted(models ^ told):
        yield f"{name}: {model}.pml is {'not in the table' if model in models else 'no file'}"
    for model in sorted(models - checked - {"queue_tree", "shared"}):  # parts of the others
        yield f"lab/models/run: has no check of {model}.pml"


# ---- invariants --------------------------------------------------------------------------------


def wrong_labels(name, text, code):
    """Labels of invariants that the document defines, each of which the code cites, and no other."""
    defined = re.findall(r"(?m)^- \*\*([IR]\d+)\*\* ", text)
    cited = {label for line in code.splitlines() if name not in line
             for label in re.findall(r"\b([IR]\d+)\b", line)}
    for label in sorted({d for d in defined if defined.count(d) > 1}):
        yield f"{name}: {label} is there twice"
    for label in sorted(cited - set(defined)):
        yield f"{name}: lacks {label}, which the code cites"
    for label in sorted(set(defined) - cited):
        yield f"{name}: no code cites {label}"


# ---- the states of a gate -----------------------------------------------------------------------


def wrong_transitions(name, dot, code):
    """Whether the picture's edges are the functions whose comments begin with the same edge."""
    drawn = {(a, b, text.split("\\n")[0]) for a, b, text in
             re.findall(rf'(?m)^ *({NAME}) -> ({NAME}) \[label = "([^"]*)"', dot)}
    written = {(a, b, function)
               for sources, b, function in
               re.findall(r"//+ ((?:\w+, )*\w+) -> (\w+)\b.*\n(?: *//.*\n)*.*?(\w+)\(", code)
               for a in sources.split(", ")}
    for a, b, function in sorted(drawn - written):
        yield f"{name}: no function {function} says that it leads from {a} to {b}"
    for a, b, function in sorted(written - drawn):
        yield f"{name}: lacks the edge {function} from {a} to {b}"


# ---- every rule is seen to fail -----------------------------------------------------------------

DOT = '  "a" [label = "A\\nroom"];\n  "b" [label = "B"];\n  "c" [label = "C"];\n'
CHAIN = '  "a" -> "b";\n  "b" -> "c";\n'
SVG = ("<title>a</title><text>A</text><text>room</text><title>b</title><text>B</text>"
       "<title>c</title><text>C</text><title>a&#45;&gt;b</title><title>b&#45;&gt;c</title>")
PAIRS = {("a/x.hpp", "b/x.hpp"), ("b/x.hpp", "c/x.hpp"), ("a/x.hpp", "c/x.hpp")}
FILES = {"README.md", "docs", "docs/a.md", "src/x.hpp"}

BROKEN = [
    dead_links("docs/b.md", "[a](docs/a.md)", FILES),
    dead_links("docs/b.md", "![a](a.svg)", FILES),
    dead_links("README.md", "`src/y.hpp`", FILES),
    dead_links("README.md", "`y.hpp`", FILES),
    dead_paths("src/z.cpp", "int a;  // as in old/x.hpp", FILES),
    dead_paths("cmake/Z.cmake", "# See src/y.cpp.", FILES),
    unended_tables("a.md", "| a |\n|---|\n| 1 |\nBelow.\n"),
    long_paragraphs("a.md", "Short.\n\n" + "word " * 121),
    long_paragraphs("a.md", "- Short.\n- " + "word " * 120),
    not_redrawn("a.svg", DOT + CHAIN, SVG.replace("room", "house")),
    not_redrawn("a.svg", DOT + CHAIN, SVG.replace("<title>b</title>", "")),
    not_redrawn("a.svg", DOT + CHAIN, SVG + "<title>d</title>"),
    not_redrawn("a.svg", DOT + CHAIN + '  "a" -> "c";\n', SVG),
    not_redrawn("a.svg", DOT, SVG),
    not_redrawn("a.svg", "", ""),
    not_redrawn("a.svg", DOT + '  "a" -> "b" -> "a";\n', SVG),
    not_drawn("a.svg", "<text>1.1</text>", "<text>1.2</text>"),
    wrong_layers("l", DOT + '  "a" -> "b";\n', PAIRS),
    wrong_layers("l", DOT + CHAIN + '  "a" -> "c";\n', PAIRS),
    wrong_layers("l", DOT + CHAIN, PAIRS | {("c/x.hpp", "a/x.hpp")}),
    wrong_layers("l", DOT + CHAIN, PAIRS | {("d/x.hpp", "a/x.hpp")}),
    unsearched("v", "| `spin` | `--writers 2` | 1 |", ["spin --writers 3"]),
    unsearched("v", "", []),
    untold_models("m", "", {"a"}, {"a"}),
    untold_models("m", "| `a.pml` | |\n| `b.pml` | |", {"a"}, {"a"}),
    untold_models("m", "| `a.pml` | |", {"a"}, set()),
    wrong_labels("d.md", "- **I1** One.\n", "// so (I1), I2"),
    wrong_labels("d.md", "- **I1** One.\n- **R2** Two.\n", "// so (I1)"),
    wrong_labels("d.md", "- **I1** One.\n- **I1** Two.\n", "// so (I1)"),
    wrong_labels("d.md", "- **I1** One.\n", "// d.md has I1"),
    wrong_transitions("g", '  a -> b [label = "go\\nif (R1)"];\n', "// a -> b.\nvoid come() {\n"),
    wrong_transitions("g", '  a -> b [label = "go"];\n', "// a, c -> b.\nvoid go() {\n"),
    wrong_transitions("g", '  a -> b [label = "go"];\n  b -> a [label = "go"];\n',
                      "// a -> b.\nvoid go() {\n"),
]

SOUND = [
    not_redrawn("a.svg", "digraph g {\n" + DOT + CHAIN, SVG + "<title>g</title>"),
    not_redrawn("a.svg", DOT + '  "a" -> "b" -> "c";\n', SVG),
    not_redrawn("a.svg", DOT + CHAIN + "  d;\n", SVG + "<title>d</title><text>d</text>"),
    dead_links("docs/b.md", "[a](a.md), [r](../README.md#x), [w](https://x.org), `src/x.hpp`, "
                            "`x.hpp`, `src/*.hpp`", FILES),
    dead_paths("src/a/z.cpp", '#include "old/x.hpp"\n// src/x.hpp, <old/y.h>, see linux/fs.h', FILES),
    unended_tables("a.md", "| a |\n|---|\n| 1 |\n\nBelow.\n\n| b |\n"),
    long_paragraphs("a.md", "word " * 70 + "\n\n" + "word " * 70 + "\n- " + "word " * 70 +
                    "\n| " + "word " * 130 + "\n\n```\n" + "word " * 130 + "\n```\n"),
    wrong_layers("l", DOT + CHAIN, PAIRS),
    unsearched("v", "| `spin`, `x` | `--writers 3` | 1 |", ["spin --writers 3"]),
    untold_models("m", "| `a.pml` | |\n| `shared.pml` | |", {"a", "shared"}, {"a"}),
    wrong_labels("d.md", "- **I1** One.\n- **R1** Two.\n", "// so (I1)\n// (R1, C12)\n// d.md has I9"),
    wrong_transitions("g", '  a -> b [label = "go\\nif (R1)"];\n  c -> b [label = "go"];\n',
                      "// a, c -> b: if\n// so.\n[[nodiscard]] bool go(int now) {\n"),
]


def self_test():
    for number, found in enumerate(BROKEN):
        if not list(found):
            yield f"no rule notices example {number} of BROKEN"
    for number, found in enumerate(SOUND):
        for what in found:
            yield f"a rule is too strict, example {number} of SOUND: {what}"


# ---- the documents ------------------------------------------------------------------------------


def files_of(root):
    """Files and folders of the sources, from the root."""
    found = {p.name for p in root.iterdir()}
    for folder in FOLDERS:
        found |= {p.relative_to(root).as_posix() for p in (root / folder).rglob("*")}
    return found


def broken_rules(root):
    def text_of(name):
        return (root / name).read_text(encoding="utf-8")

    files = files_of(root)
    for name in sorted(f for f in files if f.endswith(".md")):
        yield from dead_links(name, text_of(name), files)
        yield from unended_tables(name, text_of(name))
        yield from long_paragraphs(name, text_of(name))
    for name in sorted(f for f in files if f.endswith(WITH_COMMENTS) and f != "tests/style/documents.py"):
        yield from dead_paths(name, text_of(name), files)
    for name in sorted(f for f in files if f.endswith(".dot")):
        picture = name.removesuffix(".dot") + ".svg"
        yield from not_redrawn(picture, text_of(name), text_of(picture))
    for name in ("grid", "hosts"):
        chart = subprocess.run([root / "docs" / f"{name}_chart.py", root / "docs" / "performance.md"],
                               capture_output=True, text=True, check=True).stdout
        yield from not_drawn(f"docs/{name}.svg", text_of(f"docs/{name}.svg"), chart)
    yield from wrong_layers("docs/layers.dot", text_of("docs/layers.dot"),
                            set(includes(root, files)))
    yield from unsearched("docs/verification.md", text_of("docs/verification.md"),
                          text_of("tests/lab/check_deep").splitlines())
    yield from wrong_labels("docs/flight.md", text_of("docs/flight.md"),
                            "".join(text_of(f) for f in sorted(files)
                                    if f.startswith("include/lockflight/lock/flight")
                                    and f.endswith(".hpp")))
    yield from wrong_transitions("docs/gates.dot", text_of("docs/gates.dot"),
                                 "".join(text_of(f"include/lockflight/lock/flight_rw/{side}.hpp")
                                         for side in ("reader_side", "writer_side")))
    yield from wrong_transitions("docs/windows.dot", text_of("docs/windows.dot"),
                                 "".join(text_of(f"src/mpi_preload/{name}.hpp")
                                         for name in ("group_table", "window_groups")))
    listed = subprocess.run([root / "lab" / "models" / "run", "--list"], capture_output=True, text=True,
                            check=True).stdout.splitlines()[1:]
    yield from untold_models("lab/models/README.md", text_of("lab/models/README.md"),
                             {pathlib.Path(f).stem for f in files if f.endswith(".pml")},
                             {line.split()[0] for line in listed})


def main(arguments):
    if len(arguments) != 1 or not (pathlib.Path(arguments[0]) / "docs").is_dir():
        print("usage: documents.py ROOT (of lockflight's sources)", file=sys.stderr)
        return 2
    broken = [*self_test(), *broken_rules(pathlib.Path(arguments[0]))]
    for each in broken:
        print(each)
    print(f"{len(BROKEN) + len(SOUND)} examples, {len(broken)} broken rules")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
