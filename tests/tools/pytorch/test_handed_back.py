"""What the child of an import leaves makes kopt read and run nothing else."""

import os
from pathlib import Path

import numpy as np
import pytest

from kopt.config.errors import ToolError
from kopt.tools.pytorch.graph import Node, Ref
from kopt.tools.pytorch.importing.handed_back import read_constant, read_regular
from kopt.tools.pytorch.operators import is_allowed, refuse_foreign
from support.hand_made_graphs import COLUMNS, ROWS, graph_of, value_type


def test_a_link_a_pipe_and_a_large_file_are_not_read(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("token")
    (tmp_path / "link").symlink_to(secret)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "large").write_bytes(bytes(11))
    assert read_regular(secret, 10) == b"token"
    for name in ("link", "pipe", "large", "missing", "."):
        with pytest.raises(OSError):
            read_regular(tmp_path / name, 10)


def test_a_constant_is_an_array_of_numbers(tmp_path: Path) -> None:
    np.save(tmp_path / "right.npy", np.arange(3))
    assert read_constant(tmp_path / "right.npy").tolist() == [0, 1, 2]
    np.save(tmp_path / "objects.npy", np.array([print]), allow_pickle=True)
    (tmp_path / "link.npy").symlink_to(tmp_path / "right.npy")
    (tmp_path / "text.npy").write_text("import os")
    for name in ("objects", "link", "text"):
        with pytest.raises(ToolError, match=f"{name}.npy cannot be taken over"):
            read_constant(tmp_path / f"{name}.npy")


@pytest.mark.parametrize("op", ["aten.mul.Tensor", "aten.sum.dim_IntList", "aten._softmax.default"])
def test_operators_of_the_table_are_allowed(op: str) -> None:
    assert is_allowed(op)


@pytest.mark.parametrize(
    "op",
    [
        "aten.mul.__reduce_ex__",
        "aten.mul.__getattr__",
        "aten.mul._op",
        "aten.mul.Tensor.redispatch",
        "aten.mul.out",
        "aten.mul.Tensor_out",
        "aten.mul",
        "aten.mul.Tensor\n",
        "aten.rand.default",
        "prims.mul.default",
        "kopt.packed_e2m1.default",
        "aten.__class__.default",
    ],
)
def test_attributes_of_operators_and_foreign_ones_are_refused(op: str) -> None:
    assert not is_allowed(op)
    matrix = value_type(ROWS, COLUMNS)
    node = Node(name="y", op=op, args=(Ref(node="x"),), results=(matrix,))
    with pytest.raises(ToolError, match="no operator that kopt interprets"):
        refuse_foreign(graph_of({"x": matrix}, [node], Ref(node="y")))


def test_a_name_that_is_no_name_is_no_node() -> None:
    with pytest.raises(ValueError, match="pattern"):
        Node(name="x*/ #include", op="aten.mul.Tensor", results=())
