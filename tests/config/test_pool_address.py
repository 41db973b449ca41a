"""Names of pools."""

import pytest

from kopt.config.device_names import asks_for_simulator, is_elsewhere, known_device
from kopt.config.errors import ToolError
from kopt.config.pool_address import PoolAddress, is_pool, pool_address


@pytest.mark.parametrize(
    ("text", "address", "name"),
    [
        ("ray", PoolAddress(None, "cuda"), "ray"),
        ("ray/cuda", PoolAddress(None, "cuda"), "ray"),
        ("ray/sim", PoolAddress(None, "sim"), "ray/sim"),
        ("ray://head:6379", PoolAddress("head:6379", "cuda"), "ray://head:6379"),
        ("ray://10.0.0.1:6379/sim", PoolAddress("10.0.0.1:6379", "sim"), "ray://10.0.0.1:6379/sim"),
        ("ray://[fd00::1]:06379/", PoolAddress("[fd00::1]:6379", "cuda"), "ray://[fd00::1]:6379"),
    ],
)
def test_each_form_has_one_name(text: str, address: PoolAddress, name: str) -> None:
    assert pool_address(text) == address
    assert known_device(text) == name == known_device(name)
    assert is_elsewhere(name)
    assert asks_for_simulator(name) is (address.kind == "sim")


@pytest.mark.parametrize(
    "text",
    [
        "ray://",
        "ray://head",
        "ray://head:0",
        "ray://head:65536",
        "ray://-x:1",
        "ray://a b:1",
        "ray/tpu",
        "ray:6379",
        "ray://head:1/sim/x",
    ],
)
def test_another_form_is_refused_with_what_to_write(text: str) -> None:
    assert is_pool(text)
    with pytest.raises(ToolError, match=r"write ray .* or ray://HOST:PORT"):
        known_device(text)


@pytest.mark.parametrize("text", ["rays", "xray", "cuda:0", "sim", "ssh://ray/sim"])
def test_other_names_are_no_pool(text: str) -> None:
    assert not is_pool(text)
