"""Batches of faulty clients that would stop their consumers for ever."""

from pathlib import Path
from typing import Any, Final

import fastcrc
import pytest

from broker.protocol import codec
from broker.protocol.records import NewRecord, build_batch
from broker.server.node import Node
from tests.unit.broker.server.nodes import create_topic, fetch, request, running

GZIP, ZSTD = 1, 4
NO_ERROR: Final = 0
INVALID_RECORD: Final = 87
UNSUPPORTED_COMPRESSION_TYPE: Final = 76


def _batch(codec_number: int = 0) -> bytes:
    return build_batch([NewRecord(value=b"v" * 50, timestamp=1)], codec=codec_number)


def _says_gzip() -> bytes:
    poison = bytearray(_batch())
    poison[22] = GZIP
    poison[17:21] = fastcrc.crc32.iscsi(bytes(poison[21:])).to_bytes(4, "big")
    return bytes(poison)


async def _produce(node: Node, records: bytes, version: int = 9) -> Any:
    data = [{"name": "t", "partition_data": [{"index": 0, "records": records}]}]
    message = codec.build_request(
        0, version, transactional_id=None, acks=1, timeout=5_000, topic_data=data
    )
    answer = await request(node, 0, version, message)
    return int(answer.responses[0].partition_responses[0].error_code)


@pytest.mark.parametrize(("is_checked", "error"), [("true", INVALID_RECORD), ("false", NO_ERROR)])
async def test_a_batch_that_says_gzip_and_is_not_is_refused_where_it_is_checked(
    tmp_path: Path, is_checked: str, error: int
) -> None:
    async with running(tmp_path, partiscope_produce_check_records=is_checked) as (node,):
        await create_topic([node], "t")
        assert await _produce(node, _says_gzip()) == error
        for codec_number in range(5):
            assert await _produce(node, _batch(codec_number)) == NO_ERROR
        assert (await fetch(node, "t"))["t"].high_watermark == (5 if error else 6)


async def test_zstd_is_refused_in_versions_that_do_not_know_it(tmp_path: Path) -> None:
    async with running(tmp_path) as (node,):
        await create_topic([node], "t")
        for version in (3, 6):
            assert await _produce(node, _batch(ZSTD), version) == UNSUPPORTED_COMPRESSION_TYPE
            assert await _produce(node, _batch(GZIP), version) == NO_ERROR
        assert await _produce(node, _batch(ZSTD), 7) == NO_ERROR
