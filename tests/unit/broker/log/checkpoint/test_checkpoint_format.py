"""The small text files."""

from pathlib import Path
from uuid import UUID

import pytest

from broker.log.checkpoint.checkpoint_format import (
    decode_clean_shutdown,
    decode_partition_metadata,
    decode_properties,
    encode_clean_shutdown,
    encode_offsets,
    encode_partition_metadata,
    encode_properties,
    read_offsets,
    write_file,
)
from broker.log.errors import StorageError
from broker.log.names import (
    decode_uuid,
    deleted_directory_name,
    encode_uuid,
    new_directory_id,
    parse_partition_directory,
)


def test_offsets_have_kafkas_text_and_come_back(tmp_path: Path) -> None:
    path = str(tmp_path / "replication-offset-checkpoint")
    assert read_offsets(path) == {}
    Path(path).touch()
    assert read_offsets(path) == {}
    offsets = {("orders", 0): 12, ("a-b.c_d", 31): 0}
    write_file(path, encode_offsets(offsets), is_forced=True)
    assert Path(path).read_text() == "0\n2\norders 0 12\na-b.c_d 31 0\n"
    assert read_offsets(path) == offsets
    assert not list(tmp_path.glob("*.tmp"))


@pytest.mark.parametrize("text", ["0\n", "0\n1\n", "1\n1\nt 0 1\n", "0\n1\nt 0\n", "0\n1\nt x 1"])
def test_a_torn_checkpoint_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "checkpoint"
    path.write_text(text)
    with pytest.raises(StorageError, match="not a checkpoint"):
        read_offsets(str(path))


def test_a_directory_in_the_files_place_is_a_storage_error(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="Reading"):
        read_offsets(str(tmp_path))
    with pytest.raises(StorageError, match="Writing"):
        write_file(str(tmp_path), encode_offsets({("t", 0): 1}), is_forced=True)
    assert not list(tmp_path.parent.glob("*.tmp"))


def test_partition_metadata_is_kafkas() -> None:
    topic_id = UUID(int=1)
    content = encode_partition_metadata(topic_id)
    assert content == b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ"
    assert decode_partition_metadata("x", content) == topic_id
    for damaged in (b"", b"version: 0\n", b"version: 0\ntopic_id: short"):
        with pytest.raises(StorageError, match="topic id"):
            decode_partition_metadata("x", damaged)


def test_properties_come_back_and_comments_are_skipped() -> None:
    properties = {"version": "1", "cluster.id": "abc=="}
    content = encode_properties(properties)
    assert content == b"cluster.id=abc==\nversion=1\n"
    assert decode_properties(b"#\n#Sat Nov 21\n" + content) == properties


def test_the_clean_shutdown_mark_tells_the_broker_epoch() -> None:
    assert encode_clean_shutdown(17) == b'{"version":0,"brokerEpoch":17}'
    assert decode_clean_shutdown(encode_clean_shutdown(17)) == 17
    for old in (b"", b"[]", b'{"version":0}', b'{"brokerEpoch":"x"}'):
        assert decode_clean_shutdown(old) == -1


def test_ids_and_names() -> None:
    for _ in range(200):
        directory_id = new_directory_id()
        assert decode_uuid(encode_uuid(directory_id)) == directory_id
        assert not encode_uuid(directory_id).startswith("-")
    assert parse_partition_directory("a-b-12") == ("a-b", 12)
    for name in ("orders", "-3", "orders-", "orders-x", "orders-3.abc-delete"):
        assert parse_partition_directory(name) is None
    assert len(deleted_directory_name("t" * 249, 100_000)) == 255
