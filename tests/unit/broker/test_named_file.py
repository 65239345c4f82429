"""Files that an operator names: read whole, or refused; what the table of places cannot show."""

from pathlib import Path

import pytest

from broker import named_file
from broker.named_file import NamedFileError, read_bytes, read_text


def test_text_loses_its_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("a\n", encoding="utf-8-sig")
    assert read_text(tmp_path / "file") == "a\n"


def test_a_file_that_is_too_long_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(named_file, "BYTES_MAX", 3 << 20)
    file = tmp_path / "file"
    file.write_bytes(bytes(3 << 20))
    assert len(read_bytes(file)) == 3 << 20
    with file.open("ab") as more:
        more.write(b"x")
    with pytest.raises(NamedFileError, match="longer than 3 MiB"):
        read_bytes(file)


@pytest.mark.parametrize("name", ["a\0b", "x" * 5000, "file/below"])
def test_a_name_that_no_file_has_is_quoted(name: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(NamedFileError, match="cannot read --here") as told:
        read_bytes(tmp_path / name, "--here")
    assert not told.value.is_missing


def test_only_what_has_no_link_either_is_missing(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("nowhere")
    for name, is_missing in {"none": True, "link": False}.items():
        with pytest.raises(NamedFileError) as told:
            read_bytes(tmp_path / name)
        assert told.value.is_missing is is_missing
