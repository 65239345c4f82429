"""What a text must tell, without its sentences: names, numbers and key phrases."""

import re


def lacking(text: str, *phrases: str) -> list[str]:
    """The phrases that a text does not tell, each in its place: they follow one another.

    A phrase stands by itself: ``1 partition`` is not told by ``21 partitions``.
    """
    lacks, at = list[str](), 0
    for phrase in phrases:
        found = re.compile(rf"(?<!\w){re.escape(phrase)}(?!\w)").search(text, at)
        if found is None:
            lacks.append(phrase)
        else:
            at = found.end()
    return lacks


def kafka_says(words: str) -> str:
    """Kafka's own words, which ours repeats letter by letter: they are no sentence of ours."""
    return words
