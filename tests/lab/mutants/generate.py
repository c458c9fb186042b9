"""Changes of C++ sources, each of which may break them: the mutants of `./dev mutate`.

A change replaces whole lines, as in the tables of mutants that are written by hand. The lines are
read token by token and not parsed: a change that does not compile is dropped by mutate.py.
"""

import dataclasses
import re


@dataclasses.dataclass(frozen=True)
class Change:
    file: str  # as the tables name it
    before: tuple  # lines without their indentation, found once in the file
    after: tuple
    kind: str
    line: int

    def key(self):
        """Of the same change in a list, whatever lines around it a change names."""
        before, after = list(self.before), list(self.after)
        while before and after and before[0] == after[0]:
            del before[0], after[0]
        while before and after and before[-1] == after[-1]:
            del before[-1], after[-1]
        return self.file, tuple(before), tuple(after)


TOKEN = re.compile(r"""
    /\*.*?\*/ | //.*$ | "(?:[^"\\]|\\.)*" | '(?:[^'\\]|\\.)*'
  | [A-Za-z_]\w* | \d[\w']* | ->\*? | ::\*? | <<=? | >>=? | <=> | [-+*/%&|^=!<>]= | && | \|\|
  | \+\+ | -- | \.\.\. | \s+ | .
""", re.VERBOSE)

RELATIONS = {"==": ["!="], "!=": ["=="], "<": ["<="], "<=": ["<"], ">": [">="], ">=": [">"]}
OTHERS = {
    "&&": ["||"], "||": ["&&"], "+": ["-"], "-": ["+"], "+=": ["-="], "-=": ["+="],
    "&": ["|"], "|": ["&"], "<<": [">>"], ">>": ["<<"],
}
WORDS = {
    "true": ["false"], "false": ["true"],
    "break": ["continue"], "continue": ["break"],
    "fetch_add_now": ["fetch_sub_now"],
    # The immediate operation, without its flush.
}
NUMBERS = {"0": ["1"], "1": ["0", "2"], "2": ["1", "3"], "3": ["2"]}

# Lines that have no mutants: what is not executed, is checked when it is compiled, is an assertion,
# which finds mutants and is none of the protocol, or is what a variable holds before its result.
NOT_CODE = re.compile(r"""^(
    \s* | \#.* | //.* | .*".*
  | (namespace|using|template|requires|friend|static_assert|public:|private:|protected:)\b.*
  | (enum|class|struct)\b.* | \.\w+\ =.*
  | .*(?:rma::)?ensure\(.* | .*\bassert\(.* | static\ constexpr\b.* | constexpr\b.*
  | .*\bin\.take<.* | if\ constexpr\b.* | (?:rma::)?word\ \w+\ =\ 0; | explicit\b.* | (?:inline\ )?constexpr\b.* | .*=\ default;.* | .*=\ delete;.*
)$""", re.VERBOSE)

# A call or an assignment. A declaration has two words side by side.
STATEMENT = re.compile(r"^(?:if \(|(?![\w:<>,]+[&*]* [\w&*])(?!throw\b|return\b|break;|continue;)[\w*(+\-!]).*;$")


def tokens_of(line):
    return TOKEN.findall(line)


def is_code(line):
    return not NOT_CODE.match(line.strip())


def balanced(text):
    return all(text.count(a) == text.count(b) for a, b in ("()", "{}", "[]"))


def is_statement(line, before):
    """A statement of one line that is a call or an assignment, and begins one."""
    text = line.strip()
    return bool(STATEMENT.match(text)) and balanced(text) and (
        before == "" or before[-1] in ";{}):" or before.endswith("else")
        or before.startswith("//") or " // " in before)


def changes_of_tokens(text):
    tokens = tokens_of(text)
    for i, token in enumerate(tokens):
        if token.startswith(("//", "/*", '"', "'")):
            continue
        spaced = (0 < i < len(tokens) - 1 and tokens[i - 1] == " " and tokens[i + 1] == " ")
        put = []
        if spaced:
            put = RELATIONS.get(token, OTHERS.get(token, []))
            kind = "operator"
        if token in WORDS:
            put, kind = WORDS[token], "word"
        # Not of a template's argument, an index of an array, or a part of a bit layout.
        is_argument = i > 0 and tokens[i - 1] in "<{["
        if token in NUMBERS and not is_argument and (i == 0 or tokens[i - 1] not in (".",)):
            put, kind = NUMBERS[token], "number"
        for other in put:
            yield "".join(tokens[:i] + [other] + tokens[i + 1:]), kind
        # A step of one more or one less is left out.
        if token in "+-" and spaced and i + 2 < len(tokens) and tokens[i + 2] == "1":
            yield "".join(tokens[:i - 1] + tokens[i + 3:]), "off by one"


def negations(text):
    m = re.match(r"^((?:\} else )?if \()(.*)(\) \{?|\) .*|\))$", text)
    if m:
        head, rest = m.group(1), text[len(m.group(1)):]
        depth = 1
        for i, c in enumerate(rest):
            depth += (c == "(") - (c == ")")
            if depth == 0:
                condition = rest[:i]
                if not condition.startswith("!(") and ";" not in condition and balanced(condition):
                    yield head + "!(" + condition + ")" + rest[i:], "negated condition"
                break
    m = re.match(r"^return ([^;{}]*(==|!=|<|>|&&|\|\|)[^;{}]*);$", text)
    if m and balanced(m.group(1)):
        yield f"return !({m.group(1)});", "negated result"
    m = re.match(r"^(.*) \? (.*) : (.*)$", text)
    if m and balanced(m.group(2)) and m.group(3).endswith(";") and balanced(m.group(3)):
        yield f"{m.group(1)} ? {m.group(3)[:-1]} : {m.group(2)};", "exchanged results"


def without_flush(text):
    m = re.match(r"^(?:void \w+\(.*\) \{ )?rma::(put|add)_now\((\w+_?(?:\.port\(\))?), (.*)\);( \})?$",
                 text)
    if m and balanced(m.group(3)):
        call = f"rma::{m.group(1)}_now({m.group(2)}, "
        yield text.replace(call, f"{m.group(2)}.{m.group(1)}("), "no flush"


def not_atomic(text):
    m = re.search(r"(\w+(?:\.port\(\))?)\.cpu_(swap|fetch_add)\(([^(),]+(?:\([^()]*\))?[^(),]*), ", text)
    if not m:
        return
    depth, end = 1, m.end()
    while end < len(text) and depth:
        depth += (text[end] == "(") - (text[end] == ")")
        end += 1
    if depth:
        return
    port, what, cell, value = m.group(1), m.group(2), m.group(3), text[m.end():end - 1]
    new = value if what == "swap" else f"was_before + ({value})"
    yield (text[:m.start()] + f"[&] {{ const auto was_before = {port}.load({cell}); "
           f"{port}.store({cell}, {new}); return was_before; }}()" + text[end:]), "not atomic"


def found_once(lines, first, last):
    """Widens the lines from first to before last until they are found once."""
    stripped = [line.strip() for line in lines]
    while True:
        wanted = stripped[first:last]
        places = sum(stripped[i:i + len(wanted)] == wanted
                     for i in range(len(stripped) - len(wanted) + 1))
        if places == 1:
            return first, last
        if first == 0:
            return None
        first -= 1


def changes_of_file(name, text):
    lines = text.split("\n")

    def make(first, last, put, kind):
        at = found_once(lines, first, last)
        if at is None:
            return None
        before = [line.strip() for line in lines[at[0]:at[1]]]
        after = before[:first - at[0]] + put
        # A line of a table must not be empty.
        if any(line == "" for line in before + after):
            before = [line or None for line in before]
            return None
        return Change(name, tuple(before), tuple(after), kind, first + 1)

    found = []
    facts_end = ""  # not empty: inside, until this line
    for i, line in enumerate(lines):
        text = line.strip()
        # A lock's facts, parameters and promised bounds; also a bound that it promises, which may be larger.
        if re.search(r"facts about\{|constexpr auto all\(\)|int64_t>? \w*most_overtaken\w*\(", text):
            facts_end = line[:len(line) - len(line.lstrip())] + "}"
        if facts_end:
            if line.rstrip(";") == facts_end:
                facts_end = ""
            continue
        if not is_code(line):
            continue
        before = next((l.strip() for l in reversed(lines[:i]) if l.strip()), "")
        for generator in (changes_of_tokens, negations, without_flush, not_atomic):
            for put, kind in generator(text):
                if put != text:
                    found.append(make(i, i + 1, [put], kind))
        if is_statement(line, before):
            found.append(make(i, i + 1, [";"], "no statement"))
            after = lines[i + 1] if i + 1 < len(lines) else ""
            same = len(after) - len(after.lstrip()) == len(line) - len(line.lstrip())
            if same and is_statement(after, text) and after.strip() != text \
                    and not before.startswith(("if ", "for ", "while ", "else")):
                found.append(make(i, i + 2, [after.strip(), text], "exchanged statements"))
    unique = {}
    for change in found:
        if change is not None:
            unique.setdefault(change.key(), change)
    return list(unique.values())
