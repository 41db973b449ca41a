"""How close outputs came, in numbers."""

import numpy as np

from kopt.tools.check.accuracy import measure_accuracy
from kopt.tools.check.number_formats import E2M1
from kopt.tools.check.output import Output
from kopt.tools.check.reference import Reference


def test_a_byte_with_two_wrong_codes_is_one_element() -> None:
    reference = Reference(
        number_format=E2M1,
        shape=(1, 8),
        rows=1,
        exact=np.zeros(8),
        bits=np.zeros(4, dtype=np.uint8),
        written=None,
        offsets=None,
        scaled_by=None,
        bit_exact=False,
        slack=None,
        unit=np.ones(()),
        noise=None,
    )
    array = np.array([0x11, 0, 0x20, 0], dtype=np.uint8)
    (measured,) = measure_accuracy({"codes": Output("codes", reference, array)})
    assert measured.mismatch_fraction == 2 / 4
    assert measured.max_abs == 1.0
