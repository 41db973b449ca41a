"""The script that calls an extension in the sandbox, with a stand-in for torch."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from kopt.tools.review import extension_child


class Tensor:
    """The few things that the script asks of a tensor, over numpy."""

    def __init__(self, array: npt.NDArray[Any]) -> None:
        self.array = array
        self.shape, self.dtype = array.shape, array.dtype

    def reshape(self, *shape: int) -> "Tensor":
        return Tensor(self.array.reshape(shape))

    def view(self, dtype: Any) -> "Tensor":
        return Tensor(self.array.view(dtype))

    def flip(self, axis: int) -> "Tensor":
        return Tensor(np.flip(self.array, axis))

    def copy_(self, other: "Tensor") -> None:
        self.array[:] = other.array

    def same(self, *_: object) -> "Tensor":
        return self

    def numpy(self) -> npt.NDArray[Any]:
        return self.array

    to = contiguous = cpu = same


class Torch(ModuleType):
    """What `import torch` gives."""

    uint8, float32, float16 = np.dtype("u1"), np.dtype("f4"), np.dtype("f2")

    def __init__(self) -> None:
        super().__init__("torch")
        self.Tensor = Tensor

    def empty(self, shape: tuple[int, ...], dtype: Any, device: str) -> Tensor:
        del device
        return Tensor(np.zeros(shape, dtype))

    def full(self, shape: tuple[int, ...], value: int, dtype: Any, device: str) -> Tensor:
        del device
        return Tensor(np.full(shape, value, dtype))

    def frombuffer(self, raw: bytearray, dtype: Any) -> Tensor:
        return Tensor(np.frombuffer(raw, dtype))


Call = Callable[[Tensor, int], object]


@pytest.fixture
def called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Call], dict[str, Any]]:
    """Return a function that lets the script call another, and gives the answer."""
    monkeypatch.setitem(sys.modules, "torch", Torch())
    x = np.arange(8, dtype="f4").reshape(4, 2)
    (tmp_path / "x.in").write_bytes(x.tobytes())
    tensors = [
        {"name": "x", "dtype": "float32", "shape": [4, 2], "bytes": 32, "is_given": True},
        {"name": "y", "dtype": "float32", "shape": [4, 2], "bytes": 32, "is_given": False},
    ]
    job: dict[str, Any] = {"step": "call", "device": "cpu", "poison": 255, "tensors": tensors}
    job |= {"arguments": ["x", 3], "results": ["y"]}

    def call(function: Call) -> dict[str, Any]:
        def found(*_: object) -> Call:
            return function

        monkeypatch.setattr(extension_child, "_function", found)
        (tmp_path / "job.json").write_text(json.dumps(job))
        extension_child.main(tmp_path)
        answer: dict[str, Any] = json.loads((tmp_path / "answer.json").read_text())
        return answer

    return call


def test_outputs_go_back_as_bytes_of_the_last_call(
    called: Callable[[Call], dict[str, Any]], tmp_path: Path
) -> None:
    met: list[list[float]] = []

    def triple(x: Tensor, factor: int) -> Tensor:
        met.append(x.array[:, 0].tolist())
        return Tensor(x.array * np.float32(factor))

    assert called(triple) == {"failure": None}
    assert met == [[6.0, 4.0, 2.0, 0.0], [0.0, 2.0, 4.0, 6.0]]  # other rows first
    y = np.frombuffer((tmp_path / "y.out").read_bytes(), "f4").reshape(4, 2)
    assert y.tolist() == (np.arange(8, dtype="f4").reshape(4, 2) * 3).tolist()
    assert (tmp_path / "x.out").read_bytes() == (tmp_path / "x.in").read_bytes()


def _narrower(x: Tensor, _: int) -> object:
    return Tensor(x.array.astype("f2"))


def _shorter(x: Tensor, _: int) -> object:
    return Tensor(x.array[:2])


def _two(x: Tensor, _: int) -> object:
    return (x, x)


def _none(*_: object) -> object:
    return None


def _raises(*_: object) -> object:
    raise RuntimeError("CUDA error: an illegal memory access was encountered")


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (_narrower, "y is float16 [4, 2], and the problem has"),
        (_shorter, "y is float32 [2, 2], and the problem has"),
        (_two, "it returns 2 values, for y"),
        (_none, "y is no tensor but NoneType"),
        (_raises, "RuntimeError: CUDA error: an illegal memory access"),
    ],
)
def test_what_is_no_output_is_said(
    called: Callable[[Call], dict[str, Any]], function: Call, said: str
) -> None:
    assert said in called(function)["failure"]
