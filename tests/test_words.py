"""Numbers and names as they are shown."""

import math

import pytest

from noiseaware.words import number, shown


@pytest.mark.parametrize(
    ("value", "sd", "text"),
    [
        (5.69e-6, 0.005, "5.69×10⁻⁶"),
        (0.0204, 0.005, "0.0204"),
        (0.2198, 0.0218, "0.220"),
        (0.23096, 1e-5, "0.230960"),
        (1234567.0, 300.0, "1,234,567"),
        (-3.2, 1.0, "−3.2"),
        (0.0, 1.0, "0.0"),
        (0.0, math.nan, "0"),
        (-7.0, math.nan, "−7"),
        (6148.2, math.nan, "6,148"),
        (1e-7, 1e-8, "1.00×10⁻⁷"),
        (1e20, 1e18, "1.00×10²⁰"),
        (math.nan, math.nan, "–"),
    ],
)
def test_number(value, sd, text):
    assert number(value, sd) == text


def test_shown_names_are_printable_and_short():
    assert shown("a\x00b\n\u202ec") == "a\ufffdb\ufffd\ufffdc"
    assert len(shown("x" * 1000)) == 60
