"""Every certified example, changed in one place so that it is no longer private, is no longer certified.

Mutants are made of the examples' own source: a noise call dropped, a sensitivity or a budget lowered, ε raised, the
neighbours swapped, a raw value returned beside the result.
"""

import ast
from fractions import Fraction

import pytest
from tests.program.conftest import FOLDER

import noiseaware.program as pp

MECHANISMS = ("laplace", "gaussian", "exponential", "sample")
LOWER = ("1/2", "9/10", "999/1000")
HIGHER = ("1001/1000", "2", "10")
RAW = {
    "booleans": ["db.count()", "db.counts()[0]", "db.count() / db.size", "pp.beta(1 + db.count(), 1)"],
    "categories": ["db.counts()", "db.counts()[2]", "db.counts()[0] - db.counts()[1]"],
    "reals": ["db.sum()", "db.sum() / db.size", "pp.exp(db.sum())"],
    "counts": ["db.sum()", "db.sum() / db.size"],
    "rows": ["db.moments()", "db.moments()[2]", "db.moments()[4] / db.size"],
}


def is_call(node, *names):
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in names


def keywords(tree, *names):
    """Every keyword of these names, the decorator's budget apart."""
    body = [node for function in ast.walk(tree) if isinstance(function, ast.FunctionDef) for node in function.body]
    return [word for node in body for word in ast.walk(node) if isinstance(word, ast.keyword) and word.arg in names]


def budgets(tree, *names):
    function = next(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    return [word for word in function.decorator_list[0].keywords if word.arg in names]


def times(node, factor):
    """The expression node times a factor, exactly."""
    if isinstance(node, ast.Constant):
        return ast.Constant(str(Fraction(str(node.value)) * Fraction(factor)))
    return ast.BinOp(node, ast.Mult(), ast.Constant(factor)) if "/" not in factor else _over(node, Fraction(factor))


def _over(node, factor):
    above = ast.BinOp(node, ast.Mult(), ast.Constant(factor.numerator))
    return ast.BinOp(above, ast.Div(), ast.Constant(factor.denominator))


class Dropped(ast.NodeTransformer):
    """The source without its k-th noise call: the raw value is there instead."""

    def __init__(self, place):
        self.place, self.seen = place, -1

    def visit_Call(self, node):
        if is_call(node, "map"):
            self.seen += 1
            return ast.Name("db") if self.seen == self.place else node
        if is_call(node, *MECHANISMS):
            self.seen += 1
            if self.seen == self.place:
                return self._raw(node)
        return self.generic_visit(node)

    @staticmethod
    def _raw(node):
        if is_call(node, "exponential"):
            return ast.Name("posterior")
        if is_call(node, "sample"):
            return ast.parse("pp.ran(posterior)", mode="eval").body
        return node.args[0]


def sources(path):
    """(what was changed, the changed source) for every mutation of a file."""
    text = path.read_text()
    for place in range(len([n for n in ast.walk(ast.parse(text)) if is_call(n, "map", *MECHANISMS)])):
        tree = Dropped(place).visit(ast.parse(text))
        if ast.unparse(tree) != ast.unparse(ast.parse(text)):
            yield f"noise {place} dropped", ast.unparse(tree)
    for find, names, factors in (
        (keywords, ("sensitivity",), LOWER),
        (keywords, ("epsilon",), HIGHER),
        (budgets, ("epsilon", "delta"), LOWER),
    ):
        for place in range(len(find(ast.parse(text), *names))):
            for factor in factors:
                tree = ast.parse(text)
                word = find(tree, *names)[place]
                word.value = times(word.value, factor)
                yield f"{word.arg} {place} of {find.__name__} times {factor}", ast.unparse(tree)
    swapped = text.replace('"replace"', '"swap"').replace('"add_remove"', '"replace"').replace('"swap"', '"add_remove"')
    yield "neighbours swapped", swapped
    kind = next(name for name in RAW if f"pp.{name.title()}(" in text)
    for raw in RAW[kind]:
        for form in ("(lambda made: (made, {raw}))", "(lambda made: [made, pp.apply(print, {raw})])"):
            tree = ast.parse(text)
            function = next(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
            returned = function.body[-1]
            returned.value = ast.Call(ast.parse(form.format(raw=raw), mode="eval").body, [returned.value], [])
            yield f"{raw} returned beside", ast.unparse(ast.fix_missing_locations(tree))


MUTANTS = [(path.stem, what, text) for path in sorted(FOLDER.glob("*.py")) for what, text in sources(path)]


def made(name, text):
    module = {"__name__": name}
    exec(compile(text, f"{name}.py", "exec"), module)
    return next(value for value in module.values() if isinstance(value, pp.Program))


def test_there_are_many_mutants_of_every_kind_of_every_example():
    assert len(MUTANTS) >= 200
    for path in FOLDER.glob("*.py"):
        changed = [what for name, what, _ in MUTANTS if name == path.stem]
        assert sum("dropped" in what for what in changed) >= 1
        assert sum("swapped" in what for what in changed) == 1
        assert sum("beside" in what for what in changed) >= 4
        assert sum("budgets" in what for what in changed) >= 3


@pytest.mark.parametrize("name", sorted({name for name, *_ in MUTANTS}))
def test_no_mutant_is_certified(name):
    original = made(name, (FOLDER / f"{name}.py").read_text())
    assert pp.check(original).is_certified
    survivors = []
    for own, what, text in MUTANTS:
        if own != name:
            continue
        try:
            verdict = pp.check(made(name, text))
        except pp.Escape:
            continue
        if verdict.is_certified:
            survivors.append((what, verdict.epsilon))
    assert not survivors
