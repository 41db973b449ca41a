"""Stretches of time: what several of them cover together. Unix microseconds, begin before end."""

from collections.abc import Iterable

Span = tuple[int, int]


def joined(spans: Iterable[Span]) -> list[Span]:
    """Return the same time as stretches that neither touch nor overlap, in order."""
    result: list[Span] = []
    for begin, end in sorted(span for span in spans if span[0] < span[1]):
        if result and begin <= result[-1][1]:
            result[-1] = (result[-1][0], max(end, result[-1][1]))
        else:
            result.append((begin, end))
    return result


def common(first: Iterable[Span], second: Iterable[Span]) -> list[Span]:
    """Return the time that lies in both."""
    others = joined(second)
    return joined(
        (max(begin, other[0]), min(end, other[1]))
        for begin, end in joined(first)
        for other in others
        if max(begin, other[0]) < min(end, other[1])
    )


def seconds(spans: Iterable[Span]) -> float:
    """Return how long the stretches last together."""
    return sum(end - begin for begin, end in joined(spans)) / 1e6
