"""Programs of an attacker, each certified once: what they took from the table, or how they failed after the charge."""

import pytest

import noiseaware.program as pp

COIN = pp.Booleans(adjacency="replace")
UNIT = pp.Reals((0, 1), adjacency="replace")


def checked(records, function, *, epsilon=1000, delta=0):
    """The verdict on a function of p and db."""

    def program(p, db):
        return function(p, db)

    program.__annotations__["db"] = records
    return pp.check(pp.program(epsilon=epsilon, delta=delta)(program))


def failed(verdict) -> str:
    """What was not proved, in words."""
    assert not verdict.is_certified
    return " ".join(obligation.statement for obligation in verdict.obligations if not obligation.is_proved)


def test_noisy_records_are_not_mapped_again():
    """The second map was free, as noisy records are public, and was run on the records of the table."""
    with pytest.raises(pp.Escape, match=r"^test_attack.py, line \d+: map is of the database itself; .*\.$"):
        checked(UNIT, lambda p, db: db.map(lambda x: p.laplace(x, epsilon=1)).map(lambda y: p.laplace(y, epsilon=99)))
