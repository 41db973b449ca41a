"""What products in float32 may do in the libraries that a problem is compared with."""

from typing import Literal

Precision = Literal["ieee", "tf32", "torch"]

PRECISIONS: dict[Precision, str] = {
    "ieee": "float32 products are IEEE float32, in libraries too",
    "tf32": "libraries may round the operands of float32 products to TF32, 10 bits of mantissa",
    "torch": "libraries do as torch does by default: IEEE products of matrices, TF32 convolutions",
}
