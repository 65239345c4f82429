"""The table of what ran on real Kafka keeps what a new report does not tell."""

from pathlib import Path

from scripts.compatibility_table import BEGIN, DOCUMENT, END, rewritten

REPORT = """<testsuites><testsuite timestamp="{day}T10:00:00+00:00">
<testcase classname="tests.contract.test_draining" name="a">
<properties><property name="kafka" value="4.4.0"/></properties></testcase>
<testcase classname="tests.contract.test_draining" name="b">
<properties><property name="kafka" value="4.4.0"/></properties><failure/></testcase>
<testcase classname="tests.contract.test_groups" name="c"/>
<testcase classname="tests.contract.test_kafka_today" name="d">
<properties><property name="kafka" value="4.4.0"/></properties><failure/></testcase>
</testsuite></testsuites>"""


def report(folder: Path, day: str) -> Path:
    path = folder / f"{day}.xml"
    path.write_text(REPORT.format(day=day))
    return path


def test_files_that_are_not_told_anew_keep_their_count_and_day(tmp_path: Path) -> None:
    table = """
Run on 2026-01-02, unless another day stands behind a file.

| | Kafka 4.1.0 | Kafka 4.4.0 |
|---|---|---|
| groups | `groups` 12, `share_groups` 1 (2025-12-31) | – |
| cordon, drain | `cordoned_brokers` 1 | `draining` 9, `kafka_today` 3 |
"""
    told = rewritten(f"a{BEGIN}{table}{END}z", [report(tmp_path, "2026-03-04")])
    assert (
        told
        == f"""a{BEGIN}

Run on 2026-03-04, unless another day stands behind a file.

| | Kafka 4.1.0 | Kafka 4.4.0 |
|---|---|---|
| groups | `groups` 12 (2026-01-02), `share_groups` 1 (2025-12-31) | – |
| cordon, drain | `cordoned_brokers` 1 (2026-01-02) | `draining` 1 |

{END}z"""
    )


def test_the_document_comes_out_as_it_went_in_when_nothing_is_told(tmp_path: Path) -> None:
    document = DOCUMENT.read_text()
    assert rewritten(document, []) == document
