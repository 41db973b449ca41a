"""A document of a base is taken whole or refused with the place and the reason."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from kopt.config.errors import ToolError
from kopt.search.knowledge.base import dump_base
from kopt.search.knowledge.records import Pair, State, Technique
from kopt.search.knowledge.yaml_reader import DOCUMENT_LIMIT, read_base
from kopt.search.knowledge.yaml_writer import FORMAT, render_complete
from support.knowledge_cases import ENTRY, SEED, STATE, TECHNIQUE, projected, sample

pytestmark = pytest.mark.slow  # hundreds of bases are read

BASE = projected([(1, sample(1))])
DOCUMENT = render_complete(BASE)
EVIDENCE = f"{TECHNIQUE} on sm_90a: "


def _with_evidence(fields: str) -> Callable[[str], str]:
    """Return a change of the one evidence line that a document has."""

    def change(document: str) -> str:
        before, line, after = document.partition(EVIDENCE)
        return f"{before}{line}{fields}\n{after.partition(chr(10))[2]}"

    return change


def _replaced(old: str, new: str) -> Callable[[str], str]:
    def change(document: str) -> str:
        assert old in document
        return document.replace(old, new, 1)

    return change


def _added(line: str) -> Callable[[str], str]:
    def change(document: str) -> str:
        return document + line

    return change


def _instead(text: str) -> Callable[[str], str]:
    def change(_: str) -> str:
        return text

    return change


def _halved(document: str) -> str:
    return document[: len(document) // 2]


def test_a_document_is_read_with_its_evidence() -> None:
    assert read_base(DOCUMENT, "d").entries[ENTRY].evidence["sm_90a"]["k1"].tries == 1


def test_evidence_may_be_a_mere_list_of_its_numbers() -> None:
    document = _with_evidence("[5, 2, 1, 1, 1, 2.5, 0.1, 0.02, 1]")(DOCUMENT)
    evidence = read_base(document, "d").entries[ENTRY].evidence["sm_90a"]["k1"]
    assert (evidence.tries, evidence.failed, evidence.weight) == (5, 1, 2.5)


@pytest.mark.parametrize("gains", [7, 1006, 12_345])
def test_weight_that_was_rounded_up_is_read(gains: int) -> None:
    weight = f"{float(gains):.3g}"
    numbers = f"[{gains}, {gains}, 0, 0, 0, {weight}, 0.1, 0.02, 1]"
    assert read_base(_with_evidence(numbers)(DOCUMENT), "d").entries[ENTRY].evidence


@pytest.mark.parametrize("section", ["states", "techniques", "origins", "pairs"])
def test_a_flood_is_refused(section: str) -> None:
    known: dict[str, Any] = {
        "states": {f"s{n}": State(id=f"s{n}", bottleneck="unknown") for n in range(300)},
        "techniques": {f"t{n}": _technique(f"t{n}") for n in range(300)},
        "origins": {f"k{n}": 1 for n in range(300)},
        "pairs": {
            (one, other): Pair(before=one, after=other)
            for one in list(SEED.techniques)
            for other in (*SEED.techniques, *SEED.states)
        },
    }
    field: dict[str, Any] = {section: known[section]}
    flooded = replace(BASE, **field)
    with pytest.raises(ToolError, match=r"at most|more than"):
        read_base(dump_base(flooded), "d")


def _technique(name: str) -> Technique:
    return SEED.techniques[TECHNIQUE].model_copy(update={"id": name})


def test_json_is_read_too() -> None:
    assert read_base(dump_base(BASE), "d") == BASE


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (_replaced(FORMAT, "kopt.knowledge/2"), "this kopt reads kopt.knowledge/1: upgrade kopt"),
        (_replaced(FORMAT, "kopt.run/1"), "not a knowledge base"),
        (_replaced(f"schema: {FORMAT}\n", ""), "not a knowledge base"),
        (_replaced("version: 1\n", ""), "the head: version"),
        (_replaced("version: 1\n", "version: -1\n"), "the head: version"),
        (_replaced("origin: k1\n", "origin: K 1\n"), "the head: origin"),
        (_added("extra: 1\n"), "the head: extra"),
        (_added("version: 1\n"), "stands here and in line"),
        (_added("more: *alias\n"), "aliases are not allowed"),
        (_added("<<<<<<< ours\n"), "line "),
        (_added("pairs: {}\n"), "stands here and in line"),
        (_replaced(f"  {STATE}:", "  nowhere:"), f"names {STATE}, which it does not describe"),
        (_replaced(EVIDENCE, "magic on sm_90a: "), "names magic"),
        (_replaced("family: register_caching", "family: magic"), "names magic"),
        (_replaced("prepares: [", "prepares: [magic, "), "names magic"),
        (_replaced(EVIDENCE, f"{TECHNIQUE} on Mars: "), "is none of ours"),
        (_replaced(EVIDENCE, f"{TECHNIQUE} on sm_90a by k9: "), "k9, which is not among"),
        (_with_evidence("{tries: 9, gained: 1}"), "9 tries, but 1 outcomes"),
        (_with_evidence("{tries: -1, failed: -1}"), "greater than or equal to 0"),
        (_with_evidence("{tries: 1, gained: 1, weight: 7.5}"), "weighs more than the tries"),
        (_with_evidence("{tries: 1, gained: 1, weight: 1, mean: 99.5}"), "less than or equal"),
        (_with_evidence("{tries: 1, gained: 1, weight: 1, mean: 1.6}"), "that no gains have"),
        (_with_evidence("{tries: 1, gained: 1, weight: 1, m2: 1e300}"), "that no gains have"),
        (_with_evidence("{tries: 1, failed: 1, m2: 0.1}"), "that no gains have"),
        (_with_evidence("{tries: 9000000000, failed: 9000000000}"), "less than or equal"),
        (_with_evidence("{tries: 1, failed: 1, kernels: [a, b, c, d]}"), "at most 3"),
        (_with_evidence('{tries: 1, failed: 1, seen: ["\\e[2J"]}'), "should match pattern"),
        (_with_evidence("{tries: 1, gained: 1, mean: nan}"), "finite number"),
        (_with_evidence("{tries: 1, gained: 1, magic: 1}"), "magic"),
        (_with_evidence("[1, 2]"), "expected 9 numbers, got 2"),
        (_with_evidence("text"), "expected keys with values"),
        (_replaced("bottleneck: memory_bound", "bottleneck: bored"), "bottleneck"),
        (_replaced("traits: [", 'traits: ["\\e[2J", '), "should match pattern"),
        (_replaced("needs: [", 'needs: ["a b", '), "should match pattern"),
        (_replaced("prior: 0.", "prior: 9."), "less than or equal to 1.5"),
        (_replaced("description: ", f"description: {'x ' * 300}"), "at most 400"),
        (_halved, "d: "),
        (_instead(""), "empty"),
        (_instead("- a list\n"), "not a knowledge base"),
        (_instead('{"schema": "kopt.run/1"}'), "not a knowledge base"),
        (_added("#" * DOCUMENT_LIMIT), "larger than"),
    ],
)
def test_evil_documents_are_refused_with_the_reason(change: Callable[[str], str], why: str) -> None:
    with pytest.raises(ToolError) as refused:
        read_base(change(DOCUMENT), "d")
    message = str(refused.value)
    assert why in message
    assert message.startswith("d: ") and message.endswith("nothing was read from it")
