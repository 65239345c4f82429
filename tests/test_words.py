"""The words of documents and docstrings: short sentences, plain phrases, little passive.

The rules are those of CONTRIBUTING.md. Documents keep all of them. The first paragraphs of
docstrings keep those on phrases and length.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[1]
ROOMS: Final = ("partiscope", "broker", "spark_metrics", "planner", "control", "dashboard", "tui")
DOCUMENTS: Final = [
    str(path.relative_to(ROOT))
    for path in (*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md")))
]
CLAUSE_WORDS_MAX: Final = 25
"""From one full stop, colon or semicolon to the next; code is one word."""
MEAN_WORDS_MAX: Final = 16.0
PASSIVE_SHARE_MAX: Final = 0.4
SENTENCES_MIN: Final = 10
"""A document with fewer sentences has no mean and no share."""
DOCSTRING_WORDS_MAX: Final = 30
MESSAGE_WORDS_MIN: Final = 4
_CODE_MARKS: Final = "<>\\^"
"""Markup, patterns and scripts have some of these."""

RIDDLES: Final = {
    r"\bof which\b|\bthereof\b|\bfor lack of\b|\bis so already\b|\ball one to\b": "name the thing",
    r"\bway back\b|\bt(?:ake|aken|akes|aking) back\b": "say roll back, rollback",
    r"\bforeseen\b|\bforesee\b": "say estimated",
    r"\bin the stead\b|\bstead of one\b": "say instead of",
    r"\bno more\b(?! than)|\bnot any ?more\b|\bno longer so\b": "say what is so now",
}
HISTORY: Final = {r"\bno longer\b|\bformerly\b|[,;] before, |\bused to be\b": "say what is so now"}
OPENING: Final = re.compile(r"(?:What|Who|Whose|Whoever|Of|Whatever) (?!.*\?)")
"""A sentence that makes a noun of a clause, or begins with its own end."""

_CODE: Final = re.compile(r"```.*?```|^ {4,}\S.*$", re.DOTALL | re.MULTILINE)
_LINK: Final = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_ITEM: Final = re.compile(r"^\s*(?:[-*]|\d+\.)\s+")
_ENDS: Final = re.compile(r"(?<=[.!?])\s+(?=[^a-z])|(?<=[;:])\s+")
_PASSIVE: Final = re.compile(
    r"\b(?:is|are|was|were|be|been|being)"
    r"(?: (?:not|also|then|still|once|only|never|\w+ly))* "
    r"(?:\w{3,}ed|told|shown|made|read|sent|written|known|given|taken|left|kept|found|held|put|"
    r"drawn|seen|begun|lost|met|chosen|built|cut|run)\b"
)


def prose(text: str) -> Iterator[str]:
    """Paragraphs and items of a Markdown document, each on one line, without code and tables."""
    held: list[str] = []
    for line in [*_CODE.sub("\n\n", text).splitlines(), ""]:
        bare = line.strip()
        if held and (not bare or bare[0] in "|#" or _ITEM.match(line)):
            yield " ".join(held)
            held = []
        if bare and bare[0] not in "|#":
            held.append(_ITEM.sub("", line).strip())


def clauses(text: str) -> list[str]:
    """Sentences of a paragraph, and their parts between colons and semicolons."""
    return [it for it in _ENDS.split(_plain(text)) if _words(it)]


def _plain(text: str) -> str:
    return re.sub(r"``[^`]*``|`[^`]*`", "X", _LINK.sub(r"\1", text)).replace("*", "")


def _words(text: str) -> int:
    return len(re.findall(r"[A-Za-z][\w'-]*", text))


def _phrases(text: str, banned: dict[str, str]) -> Iterator[str]:
    for pattern, instead in banned.items():
        for found in re.finditer(pattern, _plain(text), re.IGNORECASE):
            yield f"{found[0]!r}: {instead}"


@pytest.mark.parametrize("document", DOCUMENTS)
def test_documents_are_read_once(document: str) -> None:
    text = (ROOT / document).read_text()
    complaints = list(_phrases(_CODE.sub("", text), RIDDLES | HISTORY))
    if document == "docs/reference/commands.md":  # the program's own texts, judged there
        assert not complaints, "\n".join(complaints)
        return
    found = [clause for paragraph in prose(text) for clause in clauses(paragraph)]
    complaints += [
        f"{_words(it)} words, {CLAUSE_WORDS_MAX} are allowed: {it}"
        for it in found
        if _words(it) > CLAUSE_WORDS_MAX
    ]
    complaints += [f"begins with a clause: {it}" for it in found if _is_riddle(it)]
    if len(found) >= SENTENCES_MIN:
        mean = sum(map(_words, found)) / len(found)
        passive = sum(bool(_PASSIVE.search(it)) for it in found) / len(found)
        if mean > MEAN_WORDS_MAX:
            complaints.append(f"{mean:.1f} words in the mean, {MEAN_WORDS_MAX} are allowed")
        if passive > PASSIVE_SHARE_MAX:
            complaints.append(f"{passive:.0%} passive, {PASSIVE_SHARE_MAX:.0%} are allowed")
    assert not complaints, "\n".join(complaints)


def _is_riddle(clause: str) -> bool:
    return bool(OPENING.match(clause)) and clause.endswith(".")


def _docstrings(path: Path) -> Iterator[tuple[str, str]]:
    """Name and first paragraph of each docstring of a file."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text:
                yield getattr(node, "name", "module"), " ".join(text.split("\n\n")[0].split())


def _complaints(text: str) -> Iterator[str]:
    yield from _phrases(text, RIDDLES)
    if OPENING.match(text):
        yield "begins with a clause: say what it is or does"
    if max(map(_words, clauses(text)), default=0) > DOCSTRING_WORDS_MAX:
        yield f"a sentence of more than {DOCSTRING_WORDS_MAX} words"


def test_docstrings_say_what_a_thing_is_or_does() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{name} ({'; '.join(why)})"
        for room in ROOMS
        for path in sorted((ROOT / room).rglob("*.py"))
        for name, text in _docstrings(path)
        if (why := list(_complaints(text)))
    ]
    assert not found, "\n".join(found)


def _messages(path: Path) -> Iterator[tuple[int, str]]:
    """Line and text of what may be shown: strings of some words that are no docstrings."""
    tree = ast.parse(path.read_text())
    aside = {id(it.value) for it in ast.walk(tree) if isinstance(it, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            aside.update(id(it) for it in node.values)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
        elif isinstance(node, ast.JoinedStr):
            parts = (it.value if isinstance(it, ast.Constant) else "X" for it in node.values)
            text = "".join(map(str, parts))
        else:
            continue
        is_prose = _words(text) >= MESSAGE_WORDS_MIN and not set(text) & set(_CODE_MARKS)
        if id(node) not in aside and is_prose:
            yield node.lineno, text


@pytest.mark.parametrize("room", ["planner", "control", "partiscope", "dashboard", "tui"])
def test_messages_are_read_once(room: str) -> None:
    found = []
    for path in sorted((ROOT / room).rglob("*.py")):
        for line, text in _messages(path):
            why = list(_phrases(text, RIDDLES | HISTORY))
            why += [
                f"{_words(it)} words, {CLAUSE_WORDS_MAX} are allowed"
                for it in clauses(text)
                if _words(it) > CLAUSE_WORDS_MAX
            ]
            if why:
                found.append(f"{path.relative_to(ROOT)}:{line}: {text} ({'; '.join(why)})")
    assert not found, "\n".join(found)


def test_sentences_and_riddles_are_found() -> None:
    text = "# Head\n\nOne is `a. B`: two; three. What is left is told.\n\n- An item\n  goes on.\n"
    assert [clauses(it) for it in prose(text)] == [
        ["One is X:", "two;", "three.", "What is left is told."],
        ["An item goes on."],
    ]
    assert _is_riddle("What is left is told.")
    assert not _is_riddle("What is it?")
    assert list(_phrases("A round of which parts lack; the way back.", RIDDLES)) == [
        "'of which': name the thing",
        "'way back': say roll back, rollback",
    ]
