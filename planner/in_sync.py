"""Whether a change of replicas keeps what is in sync. Pure.

Kafka drops old replicas once every copy is in sync. So afterwards these are in sync: the replicas
that stay and are in sync today, and the copies.

Worked example: [1, 2, 3] with 2 and 3 in sync. [2] and [4] are fine, and so is [1, 4, 5]: copies
take the place of what goes. [1] loses every record that 1 lacks, and [1, 4] keeps 1 in place of 2.
"""

from collections.abc import Collection, Sequence


def keeps_some(before: Collection[int], after: Collection[int]) -> bool:
    """Whether some replicas go, others stay, and fewer copies come: who is in sync decides."""
    coming, staying = set(after).difference(before), set(after).intersection(before)
    is_fewer = not coming or len(after) < len(before)
    return bool(staying) and is_fewer and not set(before).issubset(after)


def why_unsafe(before: Collection[int], after: Sequence[int], in_sync: Collection[int]) -> str:
    """Why nothing that is in sync today would stay; empty where something does, or copies take its
    place. `in_sync`: replicas that run and are in sync today."""
    dropped = sorted(set(in_sync).difference(after))
    if not dropped or set(after).intersection(in_sync) or not keeps_some(before, after):
        return ""
    kept = [id_ for id_ in after if id_ in before]
    lacking, going = (", ".join(map(str, ids)) for ids in (kept, dropped))
    lacks, goes = ("is" if len(ids) == 1 else "are" for ids in (kept, dropped))
    return f"keeps {lacking}, which {lacks} not in sync, and drops {going}, which {goes}"


def why_too_few(
    before: Collection[int], after: Sequence[int], in_sync: Collection[int], min_isr: int | None
) -> str:
    """Why producers with acks=all would wait afterwards although they do not today; empty where
    they would not, or do so already."""
    number = len(set(after).intersection(in_sync)) + len(set(after).difference(before))
    if min_isr is None or number >= min(min_isr, len(set(in_sync))):
        return ""
    return f"would have {number} in sync, fewer than min.insync.replicas {min_isr}"
