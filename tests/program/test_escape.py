"""A private value used outside the language raises at its own line, with a sentence that says what to do."""

import copy
import math
import pickle
import traceback

import jax.numpy as jnp
import numpy as np
import pytest

import noiseaware.program as pp

USES = {
    "if": lambda x: 1 if x > 3 else 0,
    "and": lambda x: x and 1,
    "not": lambda x: not x,
    "chained comparison": lambda x: 0 < x < 3,
    "max": lambda x: max(x, 3),
    "sorted": lambda x: sorted([x, 3]),
    "bool": bool,
    "float": float,
    "int": int,
    "complex": complex,
    "round": round,
    "range": range,
    "index": lambda x: [1, 2][x],
    "len": len,
    "iteration": list,
    "unpacking": lambda x: (*x,),
    "in": lambda x: 3 in x,
    "hash": hash,
    "set": lambda x: {x},
    "dict": lambda x: {x: 1},
    "str": str,
    "f-string": lambda x: f"{x}",
    "format": lambda x: f"{x:.2f}",
    "print": print,
    "math": math.sqrt,
    "np.array": lambda x: np.asarray(x, dtype=float),
    "np.exp": np.exp,
    "np.sum": np.sum,
    "np.float64": np.float64,
    "//": lambda x: x // 2,
    "%": lambda x: x % 2,
    "** half": lambda x: x**0.5,
    "2 **": lambda x: 2**x,
    "@": lambda x: x @ x,
    "call": lambda x: x(),
    "subscript": lambda x: x[0],
    "unknown method": lambda x: x.mean(),
    "unknown attribute": lambda x: x.value,
    "pickle": pickle.dumps,
    "copy": copy.copy,
    "text added": lambda x: x + "apple",
    "array added": lambda x: x + np.ones(3),
    "array multiplied": lambda x: np.ones(3) * x,
}


@pytest.mark.parametrize("use", USES)
def test_a_private_value_used_outside_raises_a_sentence_at_its_line(use):
    @pp.program(epsilon=1)
    def program(p, db: pp.Booleans(adjacency="replace")):
        return USES[use](db.count())

    with pytest.raises(pp.Escape) as raised:
        pp.check(program)
    assert str(raised.value).startswith("test_escape.py, line ")
    assert raised.value.sentence.endswith(".")
    frames = traceback.extract_tb(raised.value.__traceback__)
    lines = {frame.lineno for frame in frames if "test_escape" in frame.filename}
    assert int(raised.value.line.rpartition(" ")[2]) in lines


def test_jax_takes_no_private_value():
    @pp.program(epsilon=1)
    def program(p, db: pp.Booleans(adjacency="replace")):
        return jnp.exp(db.count())

    with pytest.raises(TypeError, match=r"expression\.Statistic"):
        pp.check(program)


@pytest.mark.parametrize(
    "use",
    [len, list, bool, hash, np.asarray, lambda db: db[0], lambda db: db.median(), lambda db: True in db],
)
def test_a_database_gives_nothing_but_what_it_offers(use):
    @pp.program(epsilon=1)
    def program(p, db: pp.Booleans(adjacency="replace")):
        return use(db)

    with pytest.raises(pp.Escape, match=r"test_escape.py, line \d+: a database"):
        pp.check(program)


def test_what_is_noisy_is_not_there_either_and_says_so():
    @pp.program(epsilon=1)
    def program(p, db: pp.Booleans(adjacency="replace")):
        return float(p.laplace(db.count(), epsilon=1))

    with pytest.raises(pp.Escape, match="known only when the program runs"):
        pp.check(program)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (lambda p, db: p.uniform(db.count()), "p has no uniform; it has laplace, gaussian, exponential, sample"),
        (lambda p, db: pp.beta(1, 1).mean, "a beta distribution has no mean; it has a, b"),
        (lambda p, db: db.map(lambda x: x + 1), "returns what a mechanism of p made of its record"),
        (lambda p, db: p.exponential([db], lambda r: r, epsilon=1), "candidates must be a list of at least two"),
        (lambda p, db: pp.observe(db, 3, lambda r, x: x), "observe must be given a prior"),
        (lambda p, db: pp.observe(db, pp.beta(1, 1), lambda r, x: x), "must compare a distribution with the record"),
        (lambda p, db: pp.infer(db), "infer must be given what pp.observe makes"),
        (lambda p, db: pp.hellinger(pp.beta(1, 1), pp.normal(0, 1)), "two distributions of one kind"),
        (lambda p, db: pp.l1(pp.dirichlet(1, 1), pp.dirichlet(1, 1, 1)), "two distributions of one kind"),
        (lambda p, db: pp.hellinger(pp.gamma(1, 1), pp.gamma(1, 2)), "of beta, dirichlet or normal .*, got gamma"),
        (lambda p, db: db.count() / 0, "nothing can be divided by 0"),
        (lambda p, db: p.laplace(object(), epsilon=1), "must be a number"),
        (lambda p, db: p.gaussian([1, 2], epsilon=1, delta=0.1), "gaussian must be given one value"),
        (lambda p, db: p.sample(pp.normal(0, 1), within=(0.1, 0.9)), "sample must be given a beta posterior"),
        (lambda p, db: pp.ran(3), "ran must be given a distribution"),
        (
            lambda p, db: db.size(),
            r"line \d+: size is an attribute of the database: write db.size, without",
        ),
        (lambda p, db: db.count()(), r"is a number and cannot be called; leave the brackets out"),
        (lambda p, db: pp.apply(3, 3), "apply must be given a function first"),
        (lambda p, db: [1, db], "must return values, distributions, .* got Database"),
        (lambda p, db: {"db": db.map(lambda x: p.exponential([0, 1], lambda r: r == x, epsilon=1))}, "got Database"),
        (lambda p, db: pp.observe(db, pp.beta(1, 1), lambda r, x: pp.bernoulli(r) == x), "got Observation"),
    ],
)
def test_wrong_use_of_the_language_is_a_sentence(wrong, sentence):
    @pp.program(epsilon=1)
    def program(p, db: pp.Booleans(adjacency="replace")):
        return wrong(p, db)

    with pytest.raises(pp.Escape, match=sentence):
        pp.check(program)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: pp.program(epsilon=0), "epsilon must be positive"),
        (lambda: pp.program(epsilon=1, delta=2), "delta must be below 1"),
        (lambda: pp.program(epsilon=1)(lambda p: 0), "must have two parameters"),
        (lambda: pp.program(epsilon=1)(lambda p, db: 0), "must say what db is"),
        (lambda: pp.Booleans(adjacency="swap"), "adjacency must be 'replace' or 'add_remove'"),
        (lambda: pp.Booleans(adjacency="add_remove", size=3), "size must be left out"),
        (lambda: pp.Booleans(adjacency="replace", size=0), "size must be a whole number"),
        (lambda: pp.Categories(["a"], adjacency="replace"), "levels must be at least two"),
        (lambda: pp.Reals(bounds=(1, 0), adjacency="replace"), "low < high"),
        (lambda: pp.Reals(bounds="ab", adjacency="replace"), "two finite numbers"),
        (lambda: pp.Counts(bounds=(-1, 3), adjacency="replace"), "whole numbers of at least 0"),
        (lambda: pp.beta(0, 1), "parameters of beta must be positive"),
        (lambda: pp.dirichlet([1]), "at least two entries"),
        (lambda: pp.check(3), "made a program by @pp.program"),
    ],
)
def test_wrong_settings_are_a_sentence(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()


@pytest.mark.parametrize(
    "wrong",
    [
        lambda p, db: p.laplace(db.count(), epsilon=0),
        lambda p, db: p.laplace(db.count(), epsilon=1, sensitivity=-1),
        lambda p, db: p.gaussian(db.count(), epsilon=1, delta=2),
        lambda p, db: p.sample(pp.beta(1, 1), within=(1, 0)),
        lambda p, db: pp.beta(-1, 1),
        lambda p, db: pp.dirichlet([1]),
    ],
)
def test_a_wrong_number_in_a_program_is_a_sentence_with_file_and_line(wrong):
    @pp.program(epsilon=1)
    def program(p, db: pp.Booleans(adjacency="replace")):
        return wrong(p, db)

    with pytest.raises(ValueError, match=r"^test_escape\.py, line \d+: .* (must|at least) .*, got "):
        pp.check(program)


def test_a_program_is_not_called(examples):
    with pytest.raises(pp.Escape, match=r"is not called; give it to pp\.check"):
        examples["coin_laplace"](1, 2)


def test_a_later_if_on_what_is_public_goes_to_apply():
    @pp.program(epsilon=1)
    def decided(p, db: pp.Booleans(adjacency="replace")):
        return pp.apply(lambda release: "many" if release.values[0] > 50 else "few", p.laplace(db.count(), epsilon=1))

    assert pp.check(decided).run([True] * 200) == "many"
