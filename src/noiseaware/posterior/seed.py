"""Random numbers that belong to what they are drawn for: a seed says which, and the releases say where in them.

Two groups that were given one seed must not share their random numbers: a difference of their draws would have next
to no spread. So no seed is used as it is, but hashed with the texts that tell one use of it from another.
"""

import hashlib

_BITS = 63  # what a JAX key and a NumPy generator both take


def own_seed(seed: int, *said: str) -> int:
    """The seed of what these texts tell of, in any order; by SHA-256, so that it is the same on every machine."""
    digest = hashlib.sha256("\n".join([str(seed), *sorted(said)]).encode()).digest()
    return int.from_bytes(digest[:8], "big") >> (64 - _BITS)
