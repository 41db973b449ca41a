"""kopt's own operators in torch: they round as the oracles do, and an export knows their shapes."""

import importlib
from typing import Any

import numpy as np
import pytest

from kopt.kernels.rounding import pack_e2m1, round_to_e2m1
from kopt.tools.pytorch.custom_operators import PACKED_E2M1, WRITTEN_WHERE, custom_operators
from kopt.tools.pytorch.operators import CUSTOM, is_allowed, is_known

pytestmark = pytest.mark.slow  # torch is loaded


def test_packed_codes_are_those_of_the_oracles_at_ties_too() -> None:
    torch: Any = importlib.import_module("torch")
    ties = np.concatenate([np.arange(-8, 8.25, 0.25), [1e-30, -1e-30, 5e9, -np.inf, -0.0]])
    beside = (np.nextafter(ties, np.inf), np.nextafter(ties, -np.inf))
    values = np.stack([ties, *beside]).reshape(3, -1, 2)
    made = custom_operators()[PACKED_E2M1](torch.from_numpy(values)).numpy()
    assert np.array_equal(made, pack_e2m1(round_to_e2m1(values)))


def test_an_export_knows_the_shapes_without_values() -> None:
    torch: Any = importlib.import_module("torch")
    x = torch.empty(5, 48, dtype=torch.float32, device="meta")
    packed = custom_operators()[PACKED_E2M1](x)
    assert (tuple(packed.shape), packed.dtype) == ((5, 24), torch.uint8)
    valid = torch.empty(5, 1, dtype=torch.bool, device="meta")
    kept = custom_operators()[WRITTEN_WHERE](x, valid)
    assert (tuple(kept.shape), kept.dtype) == ((5, 48), torch.float32)


def test_they_are_known_and_allowed_to_nobody_else() -> None:
    assert {f"kopt.{name}.default" for name in custom_operators()} == CUSTOM
    assert all(is_known(one) and not is_allowed(one) for one in CUSTOM)
