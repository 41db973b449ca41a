"""Definitions and Workloads of FlashInfer-Trace and of SOL-ExecBench, which extends them.

Only what an import reads has a field. Unknown keys are let pass, as both loaders let them.

Source: docs/flashinfer-trace of flashinfer-bench; docs/definition.md and docs/workload.md of
SOL-ExecBench.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field


class _Loose(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class ConstAxis(_Loose):
    """An axis with one value."""

    type: Literal["const"]
    value: Annotated[int, Field(ge=0)]


class VarAxis(_Loose):
    """An axis whose value each workload says."""

    type: Literal["var"]


class ExprAxis(_Loose):
    """An axis that is computed from those before it; SOL-ExecBench's."""

    type: Literal["expr"]
    expression: str


class TraceTensor(_Loose):
    """A tensor; without a shape a Python number."""

    shape: tuple[str, ...] | None
    """Names of axes; SOL-ExecBench allows digits, too."""
    dtype: str


class Definition(_Loose):
    """What is computed."""

    name: Annotated[str, Field(min_length=1)]
    op_type: Annotated[str, BeforeValidator(lambda value: value or "")] = ""
    axes: dict[str, Annotated[ConstAxis | VarAxis | ExprAxis, Field(discriminator="type")]]
    inputs: dict[str, TraceTensor]
    outputs: dict[str, TraceTensor]
    reference: str
    """Python with a function `run` of the inputs in their order."""
    custom_inputs_entrypoint: str | None = None
    """A function of the reference that makes the inputs; SOL-ExecBench's."""

    @property
    def variable_axes(self) -> tuple[str, ...]:
        """The axes whose values workloads say."""
        return tuple(name for name, axis in self.axes.items() if isinstance(axis, VarAxis))


class RandomInput(_Loose):
    """Random values of the dtype."""

    type: Literal["random"]


class ScalarInput(_Loose):
    """A number."""

    type: Literal["scalar"]
    value: bool | int | float


class StoredInput(_Loose):
    """A tensor of a file beside the data set."""

    type: Literal["safetensors"]
    path: str
    tensor_key: str


class CustomInput(_Loose):
    """What the Definition's own function makes; SOL-ExecBench's."""

    type: Literal["custom"]


GivenInput = Annotated[
    RandomInput | ScalarInput | StoredInput | CustomInput, Field(discriminator="type")
]


class TraceWorkload(_Loose):
    """The values of axes, and where inputs come from."""

    uuid: str = ""
    axes: dict[str, Annotated[int, Field(ge=0)]]
    inputs: dict[str, GivenInput] = Field(default_factory=dict[str, GivenInput])


class WorkloadLine(_Loose):
    """A line of a FlashInfer-Trace workload file: a Trace without a Solution."""

    definition: str
    workload: TraceWorkload
