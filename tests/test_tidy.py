"""The house budget: small files, small functions, full annotations, no loose ends.

An exception is a named line here, with its reason.
"""

import ast
import graphlib
import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import grimp
import pytest

from tests.support.phrases import kafka_says

ROOT: Final = Path(__file__).resolve().parents[1]
ROOMS: Final = ("partiscope", "broker", "spark_metrics", "planner", "control", "dashboard", "tui")
FILE_LINES_MAX: Final = 600
FUNCTION_LINES_MAX: Final = 60
LINE_CHARACTERS_MAX: Final = 100
CLASS_METHODS_MAX: Final = 25
POSITIONAL_ARGUMENTS_MAX: Final = 5
BANNED_WORDS: Final = ("TO" + "DO", "FIX" + "ME", "XX" + "X", "NotImplemented" + "Error")

FILES_ALLOWED: Final[dict[str, str]] = {}
FOLDER_FILES_MAX: Final = 20
FOLDERS_ALLOWED: Final[dict[str, str]] = {
    "broker/handlers": "one file per API key",
}
FUNCTIONS_ALLOWED: Final[dict[str, str]] = {}
ASSERTED_WORDS_MAX: Final = 6
SENTENCES_ALLOWED: Final[dict[str, str]] = {
    "tests/test_words.py": "what is found in sentences is the subject",
    "tests/unit/test_compatibility_table.py": "the table with its heading is the subject",
}
CLASSES_ALLOWED: Final[dict[str, str]] = {}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def _tracked(*patterns: str) -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *patterns],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [ROOT / name for name in listed.stdout.split() if (ROOT / name).exists()]


def _sources() -> list[Path]:
    return [path for path in _tracked("*.py") if path.relative_to(ROOT).parts[0] in ROOMS]


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _functions(tree: ast.AST) -> Iterator[Function]:
    for node in ast.walk(tree):
        if isinstance(node, Function):
            yield node


def _body_lines(node: Function) -> int:
    """Lines of a function without its docstring: prose is not complexity."""
    assert node.end_lineno is not None
    lines = node.end_lineno - node.lineno + 1
    first = node.body[0]
    if ast.get_docstring(node) is not None:
        assert first.end_lineno is not None
        lines -= first.end_lineno - first.lineno + 1
    return lines


def test_files_are_small() -> None:
    lengths = {_name(path): len(path.read_text().splitlines()) for path in _sources()}
    too_long = {
        name: length
        for name, length in lengths.items()
        if length > FILE_LINES_MAX and name not in FILES_ALLOWED
    }
    assert not too_long


def test_folders_are_small() -> None:
    """Beside ``__init__.py``, which has no subject of its own."""
    sizes = Counter(_name(it.parent) for it in _sources() if it.name != "__init__.py")
    too_full = {name for name, size in sizes.items() if size > FOLDER_FILES_MAX}
    assert too_full == FOLDERS_ALLOWED.keys(), "split the folder, or drop its exception"


def test_functions_are_small_and_take_few_positional_arguments() -> None:
    complaints = []
    for path in _sources():
        for node in _functions(ast.parse(path.read_text())):
            where = f"{_name(path)}:{node.name}"
            if _body_lines(node) > FUNCTION_LINES_MAX and where not in FUNCTIONS_ALLOWED:
                complaints.append(f"{where} has {_body_lines(node)} lines")
            positional = [a.arg for a in (*node.args.posonlyargs, *node.args.args)]
            count = len([name for name in positional if name not in ("self", "cls")])
            if count > POSITIONAL_ARGUMENTS_MAX and where not in FUNCTIONS_ALLOWED:
                complaints.append(f"{where} takes {count} positional arguments")
    assert not complaints, "\n".join(complaints)


def test_classes_have_few_methods() -> None:
    complaints = []
    for path in _sources():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                methods = [item for item in node.body if isinstance(item, Function)]
                counted = [m for m in methods if not _is_property_or_dunder(m)]
                where = f"{_name(path)}:{node.name}"
                if len(counted) > CLASS_METHODS_MAX and where not in CLASSES_ALLOWED:
                    complaints.append(f"{where} has {len(counted)} methods")
    assert not complaints, "\n".join(complaints)


def _is_property_or_dunder(node: Function) -> bool:
    decorators = [d.id for d in node.decorator_list if isinstance(d, ast.Name)]
    return "property" in decorators or node.name.startswith("__")


def test_public_things_have_docstrings() -> None:
    missing = []
    for path in _sources():
        tree = ast.parse(path.read_text())
        if ast.get_docstring(tree) is None:
            missing.append(_name(path))
        for node in tree.body:
            if not isinstance(node, ast.ClassDef | Function) or node.name.startswith("_"):
                continue
            if ast.get_docstring(node) is None:
                missing.append(f"{_name(path)}:{node.name}")
    assert not missing, "\n".join(missing)


def test_assertions_hold_no_sentences() -> None:
    """A sentence can be mended without its test: `lacking` looks for what it must tell."""
    complaints = [
        f"{name}:{line} asserts a text of {words} words: assert its names, numbers and key phrases"
        for path in _tracked("tests/*.py")
        if (name := _name(path)) not in SENTENCES_ALLOWED
        for line, words in _asserted_sentences(ast.parse(path.read_text()))
    ]
    assert not complaints, "\n".join(complaints)


_WORD: Final = re.compile(r"""[("'`]*[A-Za-z][a-z']+[,.;:!?)"'`]*""")


def _asserted_sentences(tree: ast.AST) -> Iterator[tuple[int, int]]:
    """Line and number of words of each long text within an assertion, or of a name within it; what
    it says of a failure does not count, nor do paths, options, numbers and Kafka's own words."""
    values = _values(tree)
    asserted = [it for node in ast.walk(tree) for it in _asserted(node)]
    names = {it.id for found in asserted for it in ast.walk(found) if isinstance(it, ast.Name)}
    told = [text for found in asserted for text in _texts(found)]
    told += [text for name in names for value in values[name] for text in _literals(value)]
    for line, text in told:
        words = sum(_WORD.fullmatch(it) is not None for it in text.split())
        if words > ASSERTED_WORDS_MAX:
            yield line, words


_WAITING: Final = ("wait_until", "until", "eventually", "wait", "is_told")


def _asserted(node: ast.AST) -> list[ast.expr]:
    """What a node compares: also that of Playwright's ``expect``, and of those who wait for it."""
    if isinstance(node, ast.Assert):
        return [node.test]
    if not isinstance(node, ast.Call):
        return []
    called = ast.unparse(node.func)
    name = called.rsplit(".", 1)[-1]
    if called == "pytest.raises":
        return [it.value for it in node.keywords]
    if name == "lacking" or name.startswith(("to_", "not_to_")):
        return node.args
    return node.args[:1] if name in _WAITING else []


def _texts(node: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and words of each text, a formatted one whole."""
    if isinstance(node, ast.JoinedStr):
        parts = [it.value if isinstance(it, ast.Constant) else "0" for it in node.values]
        yield node.lineno, "".join(map(str, parts))
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.lineno, node.value
    elif not (isinstance(node, ast.Call) and ast.unparse(node.func) == kafka_says.__name__):
        for child in ast.iter_child_nodes(node):
            yield from _texts(child)


def _literals(value: ast.expr) -> Iterator[tuple[int, str]]:
    """Texts of a value in one line: not those that are given to a call, nor documents."""
    if isinstance(value, ast.Constant | ast.JoinedStr):
        yield from (text for text in _texts(value) if "\n" not in text[1])
    for part in _parts(value):
        yield from _literals(part)


def _parts(value: ast.expr) -> list[ast.expr]:
    match value:
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts):
            return parts
        case ast.BinOp(left=left, right=right):
            return [left, right]
        case ast.Call(func=ast.Attribute(attr="param"), args=parts):
            return parts
        case ast.Call(func=ast.Attribute(value=ast.Dict(keys=keys, values=values), attr="items")):
            pairs = zip(keys, values, strict=True)
            return [ast.Tuple([key, it], ast.Load()) for key, it in pairs if key is not None]
    return []


def _values(tree: ast.AST) -> defaultdict[str, list[ast.expr]]:
    """What names stand for: by assignments, loops and the parameters of tests."""
    values = defaultdict[str, list[ast.expr]](list)

    def bind(target: ast.AST, value: ast.expr) -> None:
        if isinstance(target, ast.Name):
            values[target.id].append(value)
        elif isinstance(target, ast.Tuple) and len(parts := _parts(value)) == len(target.elts):
            for name, part in zip(target.elts, parts, strict=True):
                bind(name, part)

    for node in ast.walk(tree):
        for target, value in _assigned(node):
            bind(target, value)
        for target, cases in _repeated(node):
            named = [*values[cases.id]] if isinstance(cases, ast.Name) else [cases]
            for case in (it for found in named for it in _parts(found)):
                bind(target, case)
    return values


def _assigned(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    match node:
        case ast.Assign(targets=[target], value=value):
            yield target, value
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            yield target, value


def _repeated(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """What stands for one after the other of several values."""
    match node:
        case ast.For(target=target, iter=cases) | ast.comprehension(target=target, iter=cases):
            yield target, cases
        case ast.Call(func=ast.Attribute(attr="parametrize"), args=[named, cases, *_]):
            names: list[ast.expr] = [ast.Name(text, ast.Store()) for _, text in _texts(named)]
            yield names[0] if len(names) == 1 else ast.Tuple(names, ast.Store()), cases


def test_sentences_in_assertions_are_found() -> None:
    told = "one two three four five six, seven"
    found = f"""
assert found == "{told}", "why"
with pytest.raises(Error, match="{told}"): pass
assert f"{{one}} {told}" in found
expect(page.locator("p")).to_contain_text("{told}")
wait_until(lambda: "{told}" in found, "why")
assert not lacking(found, "{told}")
TOLD = "{told}"
assert TOLD in found
for _, each in ((1, "{told}"), (2, "two")):
    assert each in found
@pytest.mark.parametrize(("given", "words"), [(1, "{told}"), pytest.param(2, "{told}")])
def test_it(given, words):
    assert words in found
"""
    fine = f"""
assert told == "kafka-acls.sh --add --operation Describe --topic a-1 in three parts", "{told}"
wait_until(is_so, "{told}")
for words, each in (("{told}", 1), (told, 2)):
    assert each in found
answer = run("{told}")
KAFKAS = kafka_says("{told}")
assert KAFKAS in answer
assert kafka_says("{told}") in answer
"""
    lines = [line for line, _ in _asserted_sentences(ast.parse(found))]
    assert sorted(lines) == [2, 3, 4, 5, 6, 7, 7, 8, 10, 12, 12]
    assert [*_asserted_sentences(ast.parse(fine))] == []


@pytest.mark.parametrize("word", BANNED_WORDS)
def test_nothing_is_left_for_later(word: str) -> None:
    found = [_name(path) for path in _tracked("*.py", "*.md", "*.toml") if word in path.read_text()]
    assert not found


def _scripts() -> list[Path]:
    """Ours; those of libraries are minified, as published."""
    return [path for path in _tracked("*.js") if "vendor" not in path.parts]


_QUOTED: Final = re.compile(
    r"""//[^\n]*|/\*.*?\*/"""  # comments
    r"""|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`"""  # texts
    r"""|(?:(?<=[(,=:!&|?])|(?<=return))\s*/(?:\\.|\[[^\]]*\]|[^/\\\n])+/""",  # regular expressions
    re.DOTALL,
)
_FUNCTION_HEAD: Final = re.compile(r"(=>|\))\s*$")
_CONTROL_HEAD: Final = re.compile(r"\b(if|for|while|switch|catch|with)\s*$")


def _script_functions(text: str) -> Iterator[tuple[int, int]]:
    """First and last line of each function with braces of a script."""
    plain = _QUOTED.sub(lambda found: "\n" * found[0].count("\n"), text)
    opened: list[tuple[int, bool]] = []
    for at, sign in enumerate(plain):
        if sign == "{":
            opened.append((at, _begins_function(plain[:at])))
        elif sign == "}":
            start, is_function = opened.pop()
            if is_function:
                yield plain.count("\n", 0, start) + 1, plain.count("\n", 0, at) + 1
    assert not opened


def _begins_function(before: str) -> bool:
    head = _FUNCTION_HEAD.search(before)
    if head is None or head[1] == "=>":
        return head is not None
    depth, at = 0, head.start(1)
    while True:
        depth += (before[at] == ")") - (before[at] == "(")
        if depth == 0:
            return _CONTROL_HEAD.search(before[:at]) is None
        at -= 1


def test_scripts_are_small_and_so_are_their_functions() -> None:
    complaints = []
    for path in _scripts():
        text = path.read_text()
        lines = text.splitlines()
        if len(lines) > FILE_LINES_MAX:
            complaints.append(f"{_name(path)} has {len(lines)} lines")
        complaints += [
            f"{_name(path)}:{number} has {len(line)} characters"
            for number, line in enumerate(lines, 1)
            if len(line) > LINE_CHARACTERS_MAX
        ]
        complaints += [
            f"{_name(path)}:{first} is a function of {last - first + 1} lines"
            for first, last in _script_functions(text)
            if last - first + 1 > FUNCTION_LINES_MAX
        ]
    assert not complaints, "\n".join(complaints)


def test_functions_of_scripts_are_found() -> None:
    text = """// if (a) {
    function first(a) {
      if (a) { return "{"; }
      return [1].map((it) => {
        return /[{/]/.test(it);
      });
    }
    """
    assert sorted(_script_functions(text)) == [(2, 7), (4, 6)]


def test_exceptions_still_exist() -> None:
    for allowed in (*FILES_ALLOWED, *FUNCTIONS_ALLOWED, *CLASSES_ALLOWED, *SENTENCES_ALLOWED):
        assert (ROOT / allowed.split(":")[0]).exists(), f"{allowed} is gone: drop its exception"


def test_core_is_reachable_without_screens_and_spark() -> None:
    """The import linter sees the static graph; this sees what is really loaded."""
    code = (
        "import sys, control.operations, control.views, planner, control.model;"
        "bad = {'dash', 'plotly', 'textual', 'rich', 'pyspark'} & sys.modules.keys();"
        "sys.exit(f'control loads {bad}' if bad else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_modules_import_each_other_in_no_circle() -> None:
    """Imports for types alone count too."""
    graph = grimp.build_graph(*ROOMS, exclude_type_checking_imports=False)
    wanted = {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}
    try:
        graphlib.TopologicalSorter(wanted).prepare()
    except graphlib.CycleError as error:
        pytest.fail(f"a circle of imports: {' <- '.join(error.args[1])}")


_WAITS: Final = ("result", "wait", "join", "communicate", "timeout", "wait_for", "run", "flush")
_PATIENT: Final = ("tests/support/patience.py", "tests/support/settle.py")


def test_tests_wait_by_one_patience() -> None:
    """A time-out in numbers is right on one machine: WAIT_S and patience_s grow with slow ones."""
    found = []
    for path in _tracked("tests/*.py"):
        if _name(path) in _PATIENT:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call | ast.BinOp) and _waits_by_number(node):
                found.append(f"{_name(path)}:{node.lineno}")
    assert not found, "use WAIT_S or patience_s of tests/support/patience.py"


def _waits_by_number(node: ast.Call | ast.BinOp) -> bool:
    if isinstance(node, ast.BinOp):
        return ast.unparse(node.left) == "time.monotonic()" and _is_long(node.right)
    named = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    if named not in _WAITS or "mark" in ast.unparse(node.func):
        return False
    limits = [it.value for it in node.keywords if it.arg == "timeout"]
    limits += [node.args[-1]] if node.args and named not in ("run", "communicate") else []
    return any(map(_is_long, limits))


def _is_long(node: ast.AST) -> bool:
    """A second and more: shorter ones are steps of a loop that looks again."""
    return (
        isinstance(node, ast.Constant) and isinstance(node.value, int | float) and node.value >= 1
    )
