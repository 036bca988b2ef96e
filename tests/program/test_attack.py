"""Programs of an attacker, each certified once: what they took from the table, or how they failed after the charge."""

import enum
import gc
import math
import sys
from collections import OrderedDict, namedtuple
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from tests.program.conftest import checked

import noiseaware as na
import noiseaware.program as pp

COIN = pp.Booleans(adjacency="replace")
UNIT = pp.Reals((0, 1), adjacency="replace")


def failed(verdict) -> str:
    """What was not proved, in words."""
    assert not verdict.is_certified
    return " ".join(obligation.statement for obligation in verdict.obligations if not obligation.is_proved)


def test_noisy_records_are_not_mapped_again():
    """The second map was free, as noisy records are public, and was run on the records of the table."""
    with pytest.raises(pp.Escape, match=r"^test_attack.py, line \d+: map is of the database itself; .*\.$"):
        checked(UNIT, lambda p, db: db.map(lambda x: p.laplace(x, epsilon=1)).map(lambda y: p.laplace(y, epsilon=99)))


def test_a_model_holds_nothing_of_the_table():
    """The release of a sum tells the model's variance, which was the sum itself."""

    def variance(p, db):
        pp.infer(pp.observe(db, pp.normal(0, 1), lambda m, x: pp.normal(m, db.sum()) == x))
        return p.laplace(db.sum(), epsilon="1/2")

    assert "the model must not depend on the data, and does" in failed(
        checked(pp.Reals((1, 2), adjacency="replace"), variance)
    )


KEPT = []
OUT_OF_PLACE = {
    "a draw of a private distribution": (
        COIN,
        lambda p, db: p.laplace(pp.clip(pp.ran(pp.gamma(db.count() - 5, 1)), 0, 1), epsilon=1),
        "ran: the distribution must not depend on the data",
    ),
    "a divergence in a result": (
        COIN,
        lambda p, db: pp.kl(pp.beta(p.laplace(db.count(), epsilon=1), 1), pp.beta(1, 1)),
        "divergence is not computed outside a score",
    ),
    "a divergence with noise": (
        COIN,
        lambda p, db: p.laplace(pp.clip(pp.kl(pp.beta(1 + db.count(), 1), pp.beta(1, 1)), 0, 1), epsilon=1),
        "divergence is not computed outside a score",
    ),
    "a candidate": (
        COIN,
        lambda p, db: [p.exponential([0, 1], lambda r: KEPT.append(r) or 0 * r, epsilon=1), KEPT.pop()],
        "a candidate must not be used outside its score",
    ),
    "a draw of another record": (
        UNIT,
        lambda p, db: _modelled(
            db.map(lambda x: KEPT.append(p.laplace(x, epsilon=1)) or KEPT[0]), lambda m: pp.normal(m, KEPT.pop())
        ),
        "a model of public records must not depend on the data",
    ),
    "a distribution without a density": (
        UNIT,
        lambda p, db: _modelled(db.map(lambda x: p.laplace(x, epsilon=1)), lambda m: pp.dirichlet([m, m])),
        "infer: a record must not come from a dirichlet distribution",
    ),
    "a prior without a sampler": (
        UNIT,
        lambda p, db: pp.infer(
            pp.observe(db.map(lambda x: p.laplace(x, epsilon=1)), pp.poisson(3), lambda m, x: pp.normal(m, 1) == x)
        ),
        "infer: the prior must be beta, dirichlet, gamma, normal, and is poisson",
    ),
    "a distance of the parameter": (
        UNIT,
        lambda p, db: _modelled(
            db.map(lambda x: p.laplace(x, epsilon=1)), lambda m: pp.normal(pp.l1(pp.normal(m, 1), pp.normal(0, 1)), 1)
        ),
        "a model must hold no distance",
    ),
    "a map hidden from the account": (
        UNIT,
        lambda p, db: [db.map(lambda x: p.laplace(x, epsilon=99)).sum(), p.maps.pop()][:1],
        "its own p and database",
    ),
}


def _modelled(noisy, law):
    return pp.infer(pp.observe(noisy, pp.normal(0, 1), lambda m, x: law(m) == x))


@pytest.mark.parametrize("name", OUT_OF_PLACE)
def test_what_has_no_value_when_the_program_runs_is_not_certified(name):
    records, function, words = OUT_OF_PLACE[name]
    assert words in failed(checked(records, function))


class Shifting(list):
    """A list that gives its second part alone once it was asked twenty times."""

    times = 0

    def __iter__(self):
        self.times += 1
        return iter(self[1:] if self.times > 20 else self[:1])


@pytest.mark.parametrize("form", [list, Shifting])
def test_a_result_that_changes_after_the_check_is_what_was_checked(form):
    result = form()
    verdict = checked(COIN, lambda p, db: result.extend([p.laplace(db.count(), epsilon=100), db.size]) or result)
    result.append(verdict.trace.database.count())
    released, *rest = verdict.run([True, False])
    assert (released.steps, rest) == ((1,), [2] if form is list else [])


ILL = [True] * 37 + [False] * 5


def minded(base: type, secret: object, *, after: int, **own: object) -> type:
    """A class of containers that holds the secret alone, once it was asked so often what it holds."""

    class Minded(base):
        times = 0

        def asked(self, honest):
            self.times += 1
            return iter([secret] if self.times > after else honest)

        def __iter__(self):
            return self.asked(base.__iter__(self))

        def items(self):
            return ((key, value) for key, value in zip("a", self.asked(dict.values(self)), strict=False))

        def values(self):
            return self.asked(dict.values(self))

    for name, value in own.items():
        setattr(Minded, name, value)
    return Minded


@pytest.mark.parametrize("after", [1, 2, 5, 11, 20])
@pytest.mark.parametrize("form", ["named tuple", "tuple", "list", "dict", "within apply"])
def test_a_result_class_with_a_mind_of_its_own_gives_what_was_checked(form, after):
    """A tuple class with `_fields` kept its own `__iter__`: certified at a cost of 0, it gave the exact count."""

    def body(p, db):
        noisy, secret = p.laplace(0 * db.count(), epsilon=100), db.count()
        if form == "dict":
            return minded(dict, secret, after=after)(a=noisy)
        if form == "list":
            return minded(list, secret, after=after)([noisy])
        if form == "named tuple":
            made = lambda kind, *parts: tuple.__new__(kind, parts)  # noqa: E731
            return minded(tuple, secret, after=after, _fields=("a",), __new__=made)(noisy)
        made = minded(tuple, secret, after=after)([noisy])
        return pp.apply(lambda given: given, made) if form == "within apply" else made

    found = checked(COIN, body).run(ILL)
    assert [*(dict.values(found) if form == "dict" else (found[0],))] == pytest.approx([0], abs=1)


def test_containers_are_given_back_as_pythons_own_and_named_tuples_are_made_last():
    Named = namedtuple("Named", ["noisy", "n"])

    def body(p, db):
        noisy = p.laplace(db.count(), epsilon=100) + 0
        return [Named(noisy, db.size), OrderedDict(a=noisy), Shifting([noisy])]

    named, mapping, listed = checked(COIN, body).run(ILL)
    assert named == Named(37, 42)
    assert [type(named), type(mapping), type(listed)] == [Named, dict, list]
    assert (mapping, listed) == ({"a": 37}, [37])


class Whole(int):
    """A whole number that is 37 when it is first asked, and 38 after that."""

    times = 36

    def __int__(self):
        self.times += 1
        return self.times

    def __str__(self):
        return str(int(self))


class Kind(enum.StrEnum):
    YES = "yes"
    NO = "no"


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (np.float64(0.5), float),
        (np.int64(3), int),
        (Kind.YES, str),
        (np.str_("a"), str),
        (True, bool),
        (None, type(None)),
    ],
)
def test_numbers_and_text_of_a_subclass_are_given_back_as_pythons_own(given, kind):
    found, inner = checked(COIN, lambda p, db: (given, {"a": [given]})).run(ILL)
    assert [type(found), type(inner["a"][0])] == [kind, kind]
    assert found == given


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda p, db: (x for x in [db.count()]), "generator"),
        (lambda p, db: iter([db.size]), "list_iterator"),
        (lambda p, db: {db.size.__class__}, "set"),
        (lambda p, db: object(), "object"),
        (lambda p, db: pp, "module"),
        (lambda p, db: [p], "Mechanisms"),
        (lambda p, db: pp.apply(lambda given: given, p), "Mechanisms"),
        (lambda p, db: pp.apply(lambda given: given, [db]), "Database"),
    ],
)
def test_what_a_result_may_not_be_is_refused_where_the_program_begins(make, name):
    with pytest.raises(
        pp.Escape, match=rf"^test_attack.py, line \d+: program .* must return values.*, got {name}; .*\.$"
    ):
        checked(COIN, make)


def test_a_program_is_a_plain_function_that_returns():
    def lazy(p, db: COIN):
        yield db.count()

    async def later(p, db: COIN):
        return db.size

    class Callable:
        def __call__(self, p, db: COIN):
            return db.size

    for function in (lazy, later):
        with pytest.raises(ValueError, match=r"must return its result, and not yield or await\.$"):
            pp.program(epsilon=1)(function)
    with pytest.raises(ValueError, match="must be made of a function, def or lambda, got Callable"):
        pp.program(epsilon=1)(Callable())


# ---- what a hostile author hands to the language, and forges of it ---------------------------------------------------


class Sly(Fraction):
    """A number that is never too large, and is 37 to whoever asks late."""

    def __gt__(self, other):
        return False

    __lt__ = __ge__ = __le__ = __gt__


def forged(kind: type, **says: object) -> object:
    """An object of a subclass, whose attributes are what the forger says."""
    own = {name: property(lambda self, value=value: value) for name, value in says.items()}
    return object.__new__(type(kind.__name__, (kind,), own))


CONSTANT, BETA = type(pp.clip(0, 0, 0)), type(pp.beta(1, 1))


def _mapped_from_nothing(p, db):
    db.map(lambda x: p.laplace(x, epsilon=100))
    known = p.maps.pop()
    p.maps.append(type(known)(known.source, known.record, (), known.result, known.line))
    return type(db)(pp.Reals(adjacency="replace"), p, p.maps[-1]).sum()


def _tiny(p, db):
    other = type(db)(pp.Reals((0, "1e-9"), adjacency="replace"), db.mechanisms)
    return p.laplace(other.sum(), epsilon=9)


FORGED = {
    "a constant": lambda p, db: p.laplace(db.count(), epsilon=forged(CONSTANT, value=Fraction(1))),
    "a sly constant": lambda p, db: p.laplace(db.count(), epsilon=CONSTANT(Sly(1))),
    "a posterior": lambda p, db: forged(BETA, name="beta", parameters=(), origin=None),
    "a draw": lambda p, db: forged(type(p.laplace(0, epsilon=1)), mechanism=p.drawn[0], index=0),
    "a term": lambda p, db: p.laplace(forged(type(-db.count()), name="-", arguments=()), epsilon=1),
    "parameters": lambda p, db: BETA("beta", minded(tuple, db.count(), after=1)([p.laplace(0, epsilon=1)])),
    "a field": lambda p, db: object.__setattr__(x := p.laplace(0, epsilon=1), "more", Sly(1)) or x,
    "a database": _tiny,
    "the account": lambda p, db: p.drawn.append(noisy := p.laplace(db.count(), epsilon=100)) or noisy,
    "a map": _mapped_from_nothing,
    "the bounds": lambda p, db: object.__setattr__(db, "_records", UNIT) or p.laplace(db.sum(), epsilon=1),
}


@pytest.mark.parametrize("name", FORGED)
def test_what_is_forged_is_not_certified(name):
    try:
        verdict = checked(COIN, FORGED[name])
    except pp.Escape as escape:
        assert "must be made of numbers, and of what" in escape.sentence or "must return" in escape.sentence  # noqa: PT017
    else:
        assert "a program must use its own p and database, and not another's" in failed(verdict)


class Forgetful(list):
    """A list that is empty when it was asked so often."""

    def __init__(self, parts, times):
        super().__init__(parts)
        self.times = times

    def __iter__(self):
        self.times -= 1
        return super().__iter__() if self.times >= 0 else iter(())


@pytest.mark.parametrize("times", range(6))
def test_an_account_that_forgets_a_mechanism_is_noticed_or_charged(times):
    def body(p, db):
        noisy = p.laplace(db.count(), epsilon=100)
        p.drawn = Forgetful(p.drawn, times)
        return noisy

    verdict = checked(COIN, body)
    assert verdict.epsilon == 100 if times else not verdict.is_certified


def test_numbers_of_a_class_of_their_own_are_read_once():
    """Whatever the class says later, the number is the one that the check saw."""
    verdict = checked(COIN, lambda p, db: p.laplace(db.count(), epsilon=Whole(5), sensitivity=Fraction(np.float64(2))))
    assert verdict.epsilon == Fraction(37, 2)


def test_levels_and_columns_of_a_class_of_their_own_are_pythons_own():
    records = pp.Categories([*Kind], np.str_("answer"), adjacency="replace", size=np.int64(3))
    assert (records.levels, records.column, records.size) == (("yes", "no"), "answer", 3)
    assert {type(part) for part in (*records.levels, records.column, records.size)} == {str, int}
    with pytest.raises(ValueError, match=r"^levels must be texts or whole numbers, got \["):
        pp.Categories([object(), "a"], adjacency="replace")


def test_a_program_that_changes_its_own_budget_or_neighbours_is_checked_as_it_was():
    def greedy(p, db: COIN):
        object.__setattr__(made, "epsilon", Fraction(100))
        object.__setattr__(made, "records", pp.Booleans(adjacency="add_remove"))
        return p.laplace(list(db.counts()), epsilon=2)

    made = pp.program(epsilon=1)(greedy)
    assert "the cost, ε = 4, must be within the budget of 1" in failed(pp.check(made))


# ---- what a hostile author changes, by object.__setattr__ or by objects made without pp ------------------------------

Records = type(COIN)
FRACTIONS = (Fraction(0), Fraction(1000))
CONTRADICTORY = {
    "numbers with levels": {"kind": "reals", "levels": (False, True), "bounds": FRACTIONS},
    "booleans of one level": {"kind": "booleans", "levels": (True,)},
    "booleans that are numbers": {"kind": "booleans", "levels": (0, 1)},
    "booleans with bounds": {"kind": "booleans", "levels": (False, True), "bounds": FRACTIONS},
    "categories of one level": {"kind": "categories", "levels": ("a",)},
    "rows with levels": {"kind": "rows", "columns": ("x", "y"), "intervals": (FRACTIONS,) * 2, "levels": (0, 1)},
    "rows without bounds": {"kind": "rows", "columns": ("x", "y"), "intervals": (FRACTIONS, None)},
    "rows of one column twice": {"kind": "rows", "columns": ("x", "x"), "intervals": (FRACTIONS,) * 2},
    "numbers with columns": {"kind": "reals", "bounds": FRACTIONS, "columns": ("x",)},
    "counts that are no whole numbers": {"kind": "counts", "bounds": (Fraction(0), Fraction(1, 2))},
    "counts below 0": {"kind": "counts", "bounds": (Fraction(-5), Fraction(3))},
    "bounds in reverse": {"kind": "reals", "bounds": FRACTIONS[::-1]},
    "bounds that are floats": {"kind": "reals", "bounds": (0.0, 1.0)},
    "another kind": {"kind": "other", "bounds": FRACTIONS},
    "a private size": {"kind": "reals", "bounds": FRACTIONS, "size": 3, "adjacency": "add_remove"},
}


@pytest.mark.parametrize("name", CONTRADICTORY)
def test_records_that_no_table_can_hold_are_refused_and_not_certified_if_they_become_so(name):
    """Numbers with levels had their sum, which moves by 1000, taken for a count; one true level cost nothing at all."""
    says = {"adjacency": "replace", **CONTRADICTORY[name]}
    with pytest.raises(ValueError, match=r"must .*\.$"):
        Records(**says)
    records = pp.Booleans(adjacency="replace")

    def nothing(p, db: records):
        return 0

    program = pp.program(epsilon=1)(nothing)
    for field, value in {"levels": (), **says}.items():
        object.__setattr__(records, field, value)
    assert not pp.check(program).is_certified


def test_records_that_are_changed_while_they_are_traced_are_not_certified():
    """A size set under add_remove was certified: whether the run was refused told n."""

    def sized(p, db):
        object.__setattr__(db._records, "size", 42)
        return p.laplace(db.count(), epsilon=1)

    def narrowed(p, db):
        db._records.bounds[1]._numerator = 0
        return p.laplace(db.sum(), epsilon=1)

    for records, function in ((pp.Booleans(adjacency="add_remove"), sized), (UNIT, narrowed)):
        assert "its own p and database" in failed(checked(records, function))
    assert UNIT.bounds == (0, 1)


def _weakened(drawn):
    for draw in drawn:
        object.__setattr__(draw.mechanism.epsilon, "value", Fraction(10**6))


def _reckoned(drawn):
    """Fractions can be changed in place."""
    for draw in drawn:
        draw.mechanism.epsilon.value._numerator = 10**6


@pytest.mark.parametrize("change", [_weakened, _reckoned])
def test_terms_that_are_changed_after_the_check_are_not_what_runs(change):
    """Another program of the same file, when it was checked, took the noise from the first, whose cost stayed."""
    kept = []

    def first(p, db):
        kept.append(p.laplace(db.count(), epsilon="1/1000"))
        return kept[0] + 0

    def second(p, db):
        change(kept)
        return p.laplace(db.count(), epsilon="1/1000")

    verdict = checked(COIN, first, epsilon="1/1000")
    checked(COIN, second, epsilon="1/1000")
    assert kept[0].mechanism.epsilon.value >= 1000
    assert [verdict.run(ILL) for _ in range(3)] != [37] * 3


def test_a_function_given_to_apply_changes_nothing_of_the_next_run():
    kept = []

    def body(p, db):
        kept.append(p.laplace(db.count(), epsilon="1/1000"))
        return pp.apply(lambda found: _weakened(kept) or found.steps, kept[0])

    verdict = checked(COIN, body, epsilon="1/1000")
    verdict.run(ILL)
    assert [verdict.run(ILL) for _ in range(3)] != [(37,)] * 3


def test_a_function_given_a_release_does_not_lower_the_next_charge():
    """The release held the very number that the certificate is charged by."""

    def body(p, db):
        return pp.apply(
            lambda found: setattr(found.guarantee.epsilon, "_numerator", 0), p.laplace(db.count(), epsilon=1)
        )

    verdict = checked(COIN, body)
    verdict.run(ILL)
    assert verdict.guarantee.epsilon == verdict.epsilon == 1


def test_a_trace_is_a_copy_in_which_what_was_shared_is_shared():
    kept = []

    def body(p, db):
        noisy = p.laplace(db.count() + 0, epsilon=1)
        kept.append(noisy)
        return {"a": noisy, "b": [noisy - noisy, pp.beta(noisy, noisy)]}

    trace = checked(COIN, body).trace
    (own,) = trace.mechanisms.drawn
    same, apart, law = trace.result["a"], *trace.result["b"]
    assert same is not kept[0]
    assert own is same.mechanism is not kept[0].mechanism
    assert own.values[0].arguments[0].database is trace.database
    assert trace.database.mechanisms is trace.mechanisms
    assert all(part is same for part in (*apart.arguments, *law.parameters))


@pytest.mark.parametrize("index", [-1, -2, 2, True, 1.0], ids=str)
def test_a_count_under_another_name_is_not_certified(index):
    """The count that −1 names was the count that 1 names, and the cost of the two was that of the dearer."""

    def body(p, db):
        count = db.count()
        return p.laplace(count, epsilon=1), p.laplace(type(count)(db, index), epsilon=1)

    verdict = checked(pp.Booleans(adjacency="add_remove"), body)
    assert "must be one that the database or p gives" in failed(verdict)


@pytest.mark.parametrize("index", [-1, 1, True], ids=str)
def test_a_draw_under_another_name_is_not_certified(index):
    def body(p, db):
        noisy = p.laplace(db.count(), epsilon=1)
        return type(noisy)(noisy.mechanism, index)

    assert "must be one that the database or p gives" in failed(checked(COIN, body))


CHANGED = {
    "epsilon": (lambda own: object.__setattr__(own.epsilon, "value", Fraction(-999)), "epsilon must be positive"),
    "no epsilon": (lambda own: object.__setattr__(own.epsilon, "value", Fraction(0)), "epsilon must be positive"),
    "sensitivity": (
        lambda own: object.__setattr__(own.sensitivity, "value", Fraction(-1, 9)),
        "the sensitivity must be positive",
    ),
    "delta": (lambda own: object.__setattr__(own, "delta", Fraction(-1, 2)), "delta must be between 0 and 1"),
    "a delta of Laplace noise": (lambda own: object.__setattr__(own, "delta", Fraction(1, 2)), "delta must be"),
    "within": (lambda own: object.__setattr__(own, "within", (Fraction(1, 2), Fraction(1, 3))), "within must be two"),
}


@pytest.mark.parametrize("name", CHANGED)
def test_a_cost_below_0_pays_for_nothing(name):
    change, words = CHANGED[name]

    def body(p, db):
        dear, own = p.laplace(db.count(), epsilon=1000), p.laplace(db.count(), epsilon=1, sensitivity=1)
        change(own.mechanism)
        return dear

    assert words in failed(checked(COIN, body))


def test_a_gaussian_delta_below_0_pays_for_nothing():
    def body(p, db):
        p.gaussian(db.count(), epsilon="1/2", delta="1/2")
        own = p.gaussian(db.count(), epsilon="1/2", delta="1/4")
        object.__setattr__(own.mechanism, "delta", Fraction(-49, 100))
        return own

    assert "delta must be between 0 and 1" in failed(checked(COIN, body, delta="1/50"))


def _model(db, prior):
    return pp.observe(db, prior, lambda r, x: pp.bernoulli(r) == x)


def test_a_posterior_that_infer_did_not_make_is_not_bounded_by_its_model():
    """Any parameters at all, with the model of an honest posterior, were as far apart as those of the honest one."""

    def body(p, db, factor):
        prior = pp.beta(1, 1)
        false, true = db.counts()
        own = BETA("beta", (1 + factor * true, 1 + false), pp.infer(_model(db, prior)).origin)
        laws = [pp.beta(1, 40), pp.beta(40, 1)]
        return p.exponential(laws, lambda r: -pp.hellinger(own, r), epsilon=1, sensitivity="0.9")

    verdict = checked(COIN, lambda p, db: body(p, db, 1000))
    assert not verdict.is_certified


def test_a_sample_is_of_booleans_whatever_its_posterior_says():
    """One row moves the sum that stood in the place of the count by 2."""
    rows = pp.Rows(["x"], "y", bounds={"x": (0, 1), "y": (0, 1)}, adjacency="replace")

    def body(p, db):
        return p.sample(BETA("beta", pp.beta(1, 1).parameters, _model(db, pp.beta(1, 1))), within=("1/4", "3/4"))

    assert "sample must be given the posterior of the database" in failed(checked(rows, body))


def test_a_model_is_of_a_database_of_the_account():
    """A database that no map of the account made had its noise for nothing."""

    def body(p, db):
        noisy = db.map(lambda x: p.laplace(x, epsilon=99))
        hidden = type(db)(noisy.records, p, p.maps.pop())
        return pp.infer(pp.observe(hidden, pp.normal(0, 1), lambda m, x: pp.normal(m, 1) == 0))

    assert "its own p and database" in failed(checked(UNIT, body))


# ---- pp.apply --------------------------------------------------------------------------------------------------------


PRIVATE = ("_Run", "_Each", "Table")


def private_objects() -> list[object]:
    """All of them that there are, those that other tests have left among them."""
    return [value for value in gc.get_objects() if type(value).__name__ in PRIVATE]


def reached(table, before: list[object]) -> list[str]:
    """What a function can reach of a run: walking up the stack, and among all objects that were not there before."""
    found, known = [], set(map(id, before))
    frame = sys._getframe(1)
    while frame is not None:
        values = list(frame.f_locals.values())
        found += [type(value).__name__ for value in values if type(value).__name__ in PRIVATE]
        is_ours = "noiseaware" in Path(frame.f_code.co_filename).parts and "tests" not in frame.f_code.co_filename
        found += [frame.f_code.co_qualname for value in values if is_ours and (value is table or value == 37)]
        frame = frame.f_back
    return found + [type(value).__name__ for value in private_objects() if id(value) not in known]


@pytest.mark.parametrize("by", ["apply", "named tuple", "key", "argument"])
def test_what_a_person_wrote_runs_when_nothing_private_is_left(by):
    """`sys._getframe().f_back` led from a function of `pp.apply` to the exact statistics."""
    table, seen, before = [*ILL], [], []

    class Named(tuple):
        _fields = ("a", "b")

        def __new__(cls, *parts):
            seen.append(reached(table, before))
            return tuple.__new__(cls, parts)

    class Key:
        def __hash__(self):
            seen.append(reached(table, before))
            return 1

    def body(p, db):
        noisy = p.laplace(0 * db.count(), epsilon=100)
        if by == "named tuple":
            return Named(noisy, db.size)
        if by == "key":
            return {Key(): [noisy, p.laplace(db.count(), epsilon="1/9")]}
        return [
            pp.apply(lambda *_: seen.append(reached(table, before)), noisy, Key()),
            p.laplace(db.count(), epsilon="1/9"),
        ]

    verdict = checked(COIN, body)
    gc.collect()
    before += private_objects()
    seen.clear()
    verdict.run(table)
    assert seen
    assert not any(seen)


def test_a_long_calculation_fails_before_the_charge_or_not_at_all():
    """Public terms were certified without a look at how deep they are, and were evaluated by recursion."""

    def long(p, db):
        total = noisy = p.laplace(db.count() + 0, epsilon=100)
        for _ in range(2000):
            total = total + noisy
        return total

    assert checked(COIN, long).run([True]) == 2001


def coin_sample(within):
    def program(p, db):
        return p.sample(pp.infer(pp.observe(db, pp.beta(1, 1), lambda r, x: pp.bernoulli(r) == x)), within=within)

    return program


VAST = 10**400
EXTREME = {
    "a sample from 1e-400 on": (coin_sample(("1e-400", "1/2")), lambda found: 0 < found <= 0.5),
    "a sample up to 1 - 1e-400": (coin_sample(("1/2", 1 - Fraction(1, VAST))), lambda found: 0.5 <= found <= 1),
    "a sample within less than a step": (coin_sample(("0.5", "0.5000000001")), lambda found: 0.5 <= found < 0.51),
    "a distribution beyond floats": (
        lambda p, db: pp.beta((5 + p.laplace(db.count(), epsilon=100)) * VAST, 1),
        lambda found: (found.a, found.b) == (math.inf, 1),
    ),
    "a number beyond floats": (
        lambda p, db: p.laplace(db.count(), epsilon=100) * VAST / 3 + p.laplace(db.count(), epsilon=100) / 7,
        lambda found: found == math.inf,
    ),
    "a score that moves by 1e10": (
        lambda p, db: p.exponential([0, 1], lambda r: (r == 1) * db.count() * 10**10, epsilon=100, sensitivity=10**10),
        lambda found: found == 1,
    ),
    "noise that no release can tell": (
        lambda p, db: p.laplace(db.count(), epsilon=10**200),
        lambda found: found == 2,
    ),
}


@pytest.mark.parametrize("name", EXTREME)
def test_an_extreme_program_runs(name):
    function, is_right = EXTREME[name]
    assert is_right(checked(COIN, function, epsilon=10**201).run([True, True]))


def test_a_draw_of_a_distribution_beyond_floats_is_none_and_all_else_is_told():
    def body(p, db):
        noisy = p.laplace(db.count(), epsilon=100)
        drawn = pp.ran(pp.normal(noisy * VAST, 1))
        return {"count": noisy + 0, "drawn": drawn, "more": [drawn + noisy], "law": pp.normal(drawn, 1)}

    vast = checked(COIN, body)
    with pytest.warns(RuntimeWarning, match=r"^ran must be given .* exists; noise made it normal\(inf, 1\)\. What"):
        found = vast.run([True])
    assert found["count"] == 1
    assert math.isnan(found["drawn"])
    assert math.isnan(found["more"][0])
    assert math.isnan(found["law"].mean)


@pytest.mark.parametrize("variance", ["1e-400", VAST, None], ids=["tiny", "vast", "impossible"])
def test_a_model_whose_variance_no_release_can_tell_fails_for_no_table(variance):
    def model(p, db):
        given = -1 - p.laplace(db.sum(), epsilon=1) ** 2 if variance is None else variance
        pp.infer(pp.observe(db, pp.normal(0, 1), lambda m, x: pp.normal(m, given) == x))
        return p.laplace(db.sum(), epsilon=1000)

    assert checked(UNIT, model, epsilon=1001).run([0.5]) == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize(
    "function",
    [
        lambda p, db: p.laplace(db.count(), epsilon="1e-400"),
        lambda p, db: p.laplace(pp.clip(db.count(), 0, 1), epsilon="1e30"),
        lambda p, db: p.gaussian(db.count(), epsilon="1/2", delta="1e-400"),
        lambda p, db: p.exponential([0, 1], lambda r: (r == 0) * pp.clip(db.count(), 0, 1), epsilon="1e-300"),
        lambda p, db: db.map(lambda x: p.exponential([0, 1], lambda r: r == x, epsilon="1e-300")).count(),
    ],
    ids=["noise too wide", "too narrow", "delta", "choice", "of each record"],
)
def test_noise_that_cannot_be_drawn_is_refused_before_the_charge(function, tmp_path):
    certificate = checked(COIN, function, epsilon=10**31, delta="1/2")
    ledger = na.Ledger.create(tmp_path / "a.ledger", epsilon=10**32, delta="3/4")
    with pytest.raises(ValueError, match=r"^test_attack.py, line \d+: epsilon, delta, sensitivity .* nearer to 1"):
        certificate.run([True, True], ledger=ledger)
    assert not ledger.entries()


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: pp.Counts((0, 2**31), adjacency="replace"), r"at most 2\*\*30 for counts, so that 64 bits hold"),
        (lambda: pp.Reals((0, VAST), adjacency="replace"), "within ±1e150 and at least 1e-150 apart"),
        (lambda: pp.Reals((0, "1e-400"), adjacency="replace"), "within ±1e150 and at least 1e-150 apart"),
        (lambda: pp.program(epsilon="1e400"), "epsilon must be from 1e-300 to 1e300"),
    ],
)
def test_bounds_and_budgets_that_no_sum_can_bear_are_refused(make, sentence):
    """Counts of up to 2^62 were certified, and their sum wrapped around in 64 bits: two records were told apart."""
    with pytest.raises(ValueError, match=sentence):
        make()
