"""What the wheel holds, and what it asks for: read from the rules, without building it."""

import ast
import re
import tomllib
from collections import defaultdict
from importlib.metadata import version
from typing import Final

from packaging.requirements import Requirement
from packaging.version import Version

from spark_metrics.job.connector_jars import JARS, SPARK
from tests.support.node_cluster import ROOT
from tests.support.packages import PACKAGES, PROJECT, ignored_files, packaged_files

SOURCES: Final = [file for file in packaged_files() if file.suffix == ".py"]
REQUIREMENTS: Final = [
    Requirement(text)
    for texts in (
        PROJECT["project"]["dependencies"],
        *PROJECT["project"]["optional-dependencies"].values(),
    )
    for text in texts
]


def test_no_file_of_the_packages_is_left_out() -> None:
    assert not ignored_files(packaged_files())
    assert ignored_files([packaged_files()[0].with_suffix(".pyc")]), "the question is understood"


def test_each_file_that_code_names_beside_itself_is_in_a_package() -> None:
    """In modules that look beside themselves, each text that is the name of a file of ours."""
    data = {file.name: file for file in packaged_files() if file.suffix != ".py"}
    elsewhere = {file.name for room in ("docs", "scripts") for file in (ROOT / room).rglob("*.*")}
    named = set()
    for source in SOURCES:
        text = (ROOT / source).read_text()
        if not re.search(r"\b__file__\b|resources\.files|__path__|CSS_PATH", text):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Constant) and re.fullmatch(r"[\w/.-]+\.\w+", str(node.value)):
                name = str(node.value).rpartition("/")[2]
                assert name in data or name not in elsewhere, f"{source} names {name}"
                named |= {name} & data.keys()
    assert named >= {"completion.json", "known_configs.json", "report.html.j2", "app.tcss"}
    assert named >= {"internal_records.json"}


def test_code_imports_nothing_of_the_checkout_that_is_no_package() -> None:
    """Such as tests, benchmarks and scripts."""
    outside = {path.name for path in ROOT.iterdir() if path.is_dir()} - {*PACKAGES}
    assert outside > {"tests", "scripts"}
    wanted = re.compile(rf"^\s*(?:from|import) (?:{'|'.join(map(re.escape, outside))})\b", re.M)
    assert not [source for source in SOURCES if wanted.search((ROOT / source).read_text())]


def test_ranges_allow_what_is_locked_and_its_later_compatible_versions() -> None:
    """From the locked version on, and not beyond its major one (before 1.0: its minor one)."""
    locked = defaultdict(list)
    for package in tomllib.loads((ROOT / "uv.lock").read_text())["package"]:
        locked[package["name"]].append(Version(package["version"]))
    for requirement in REQUIREMENTS:
        versions = locked[requirement.name]
        oldest, newest = min(versions), max(versions)
        wanted = requirement.specifier
        assert all(each in wanted for each in versions), requirement
        beyond = f"{newest.major + 1}.0" if newest.major else f"0.{newest.minor + 1}.0"
        assert beyond not in wanted, f"{requirement} was not tested with {beyond}"
        earlier = f"{oldest.major}.{oldest.minor - 1}.99" if oldest.minor else f"{oldest.major - 1}"
        if requirement.name != "pandas":  # tests/spark run with 2.2 on clusters that have it
            assert earlier not in wanted, f"{requirement} was not tested with {earlier}"


def test_spark_and_its_connector_are_of_one_release() -> None:
    (pyspark,) = (it for it in REQUIREMENTS if it.name == "pyspark")
    assert str(pyspark.specifier) == f"=={SPARK}"
    assert {jar.version for jar in JARS if jar.group == "org.apache.spark"} == {SPARK}


def test_the_version_comes_from_one_place() -> None:
    told = PROJECT["project"]["version"]
    assert version("partiscope") == told
    assert f"\n## {told}" in (ROOT / "CHANGELOG.md").read_text()
    assert not [it for it in SOURCES if f'"{told}"' in (ROOT / it).read_text()]
