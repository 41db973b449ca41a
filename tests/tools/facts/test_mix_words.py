"""The instruction mix in words: the commonest first, conversions by format."""

from kopt.tools.facts.compile_facts import mix_words
from support.estimate_cases import EstimateCase

MIX = (("bar", 1), ("f2fp", 12), ("ldg_128", 2), ("shfl", 10))


def test_conversions_are_told_by_format() -> None:
    kernel = EstimateCase(mix=MIX).kernel()
    converting = kernel.model_copy(update={"conversions": {"bf16": 4, "e2m1": 8}})
    assert mix_words(converting, 3) == "12 f2fp (4 bf16, 8 e2m1), 10 shfl, 2 ldg_128"


def test_without_formats_only_the_class_is_counted() -> None:
    assert mix_words(EstimateCase(mix=MIX).kernel(), 2) == "12 f2fp, 10 shfl"
