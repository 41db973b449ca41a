"""What `kopt new --small` may name: the integers of a source, and their values."""

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from kopt.config.errors import ToolError
from kopt.tools.pytorch.importing.named_integers import named_integers
from kopt.tools.pytorch.importing.shrinking import chosen

SOURCE = """
batch, hidden = 16, 4096
heads: int = 32
width = depth = 64
layers = 2
table = [128, 256]


def forward(x):
    return x.view(512)


def get_inputs():
    return [rand(batch, 1024)]
"""


@dataclass(frozen=True)
class Sizes:
    """A function with these integers, which is never built."""

    integers: Mapping[str, int]

    @property
    def inner(self) -> frozenset[str]:
        """Return no name: no integer is made smaller last."""
        return frozenset()

    def build(self, values: Mapping[str, int]) -> tuple[Any, tuple[Any, ...]]:
        """Refuse: only its integers are asked for."""
        raise AssertionError(values)


def test_integers_have_the_names_that_they_are_assigned_to() -> None:
    places = named_integers(ast.parse(SOURCE), ("get_inputs",), above=4)
    values = {name: [node.value for node in nodes] for name, nodes in places.items()}
    named = {"batch": [16], "hidden": [4096], "heads": [32], "depth": [64]}
    assert values == named | {"6:9": [128], "6:14": [256], "14:24": [1024]}


@pytest.mark.parametrize(
    ("small", "found"),
    [
        ({"hidden": 256}, {"hidden": 256}),
        ({"1024": 64}, {"14:23": 64}),
        ({"16": 8}, {"batch": 8, "5:3": 8}),
        ({"14:23": 64, "batch": 8}, {"14:23": 64, "batch": 8}),
    ],
)
def test_an_integer_is_named_by_its_name_or_its_value(
    small: dict[str, int], found: dict[str, int]
) -> None:
    integers = {"batch": 16, "5:3": 16, "hidden": 4096, "14:23": 1024}
    assert chosen(Sizes(integers), small) == found


def test_an_unknown_integer_is_refused_with_those_that_there_are() -> None:
    integers = {"batch": 16, "14:23": 1024, "15:2": 1024}
    with pytest.raises(
        ToolError, match=r"--small rows=8: the source's integers are batch=16, 1024$"
    ):
        chosen(Sizes(integers), {"rows": 8})
    with pytest.raises(ToolError, match="the source's integers are none above 4"):
        chosen(Sizes({}), {"rows": 8})
