"""What a person has given: a whole number where there must be one, and how a refusal tells it."""

import numpy as np


def whole(name: str, value: object, least: int = 1, most: int | None = None) -> int:
    """A whole number from least to most; refused in one sentence if it is none."""
    is_whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not is_whole or not least <= value or (most is not None and value > most):  # type: ignore[operator]
        reach = f"of at least {least:,}" if most is None else f"from {least:,} to {most:,}"
        raise ValueError(f"{name} must be a whole number {reach}, got {shown(value)}.")
    return int(value)  # type: ignore[call-overload]


def kind(value: object) -> str:
    """What kind of thing was given, with a class told from one of its objects."""
    return f"the class {value.__name__}" if isinstance(value, type) else type(value).__name__


def shown(value: object, longest: int = 60) -> str:
    """What was given, as Python writes it and cut short."""
    text = repr(value.tolist() if isinstance(value, np.generic | np.ndarray) else value)
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
