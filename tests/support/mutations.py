"""Changes valid bytes as a faulty client, peer or disk would; everything follows from the dice."""

import random
import struct
from typing import Final

BYTES: Final = (0x00, 0x01, 0x02, 0x7F, 0x80, 0xFE, 0xFF)
NUMBERS: Final = (0, 1, -1, 127, 128, 2**15 - 1, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63))
LAYOUTS: Final = ((">b", 7), (">h", 15), (">i", 31), (">q", 63))
CHANGES_MAX: Final = 4


def mutated(dice: random.Random, data: bytes) -> bytes:
    """The bytes with one to four changes: values, lengths, parts that lack or come twice."""
    changed = bytearray(data)
    for _ in range(dice.randint(1, CHANGES_MAX)):
        _change(dice, changed)
    return bytes(changed)


def _change(dice: random.Random, data: bytearray) -> None:
    start = dice.randrange(len(data) + 1)
    end = min(len(data), start + dice.choice((1, 2, 4, 8, 60)))
    match dice.randrange(7):
        case 0:
            data[start : start + 1] = bytes((dice.choice(BYTES),))
        case 1 if start < len(data):
            data[start] ^= 1 << dice.randrange(8)
        case 2 | 3:
            layout, bits = dice.choice(LAYOUTS)
            number = dice.choice([n for n in NUMBERS if -(2**bits) <= n < 2**bits])
            data[start : start + struct.calcsize(layout)] = struct.pack(layout, number)
        case 4:
            del data[start:end]
        case 5:
            data[start:start] = data[start:end] * dice.randint(1, 3)
        case _:
            data[start:] = dice.randbytes(dice.randrange(12)) if dice.random() < 0.5 else b""
