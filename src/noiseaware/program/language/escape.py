"""Guards of a private value: it cannot be used outside the language that is checked.

Nothing in a traced program holds a number, so `bool`, `float`, `len`, iteration, hashing, NumPy and f-strings have
nothing to answer with; each raises at the line where it was tried.
"""

import sys
import sysconfig
from pathlib import Path
from typing import Any, NoReturn

# Frames that are not the person's own: this folder, Python's library and installed packages.
_OTHERS = (str(Path(__file__).parent), *(sysconfig.get_paths()[kind] for kind in ("stdlib", "purelib", "platlib")))


class Escape(TypeError, AttributeError):
    """A value was used outside the language of programs."""

    def __init__(self, sentence: str, line: str = "") -> None:
        super().__init__(f"{line}: {sentence}" if line else sentence)
        self.sentence, self.line = sentence, line


def here() -> str:
    """The person's own line that is being traced: 'coin.py, line 7'."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_OTHERS):
        frame = frame.f_back
    return f"{Path(frame.f_code.co_filename).name}, line {frame.f_lineno}"


_DECIDE = "make it public with a mechanism of p, and decide in a function given to pp.apply"
_ARITHMETIC = "use + − * / and pp.exp, pp.log, pp.minimum, pp.maximum, pp.clip on it"
_NUMBER = f"{_ARITHMETIC}, and add noise with a mechanism of p"
_SIZE = "use .size for the number of records"
_EACH = "use .map, .sum or .counts of the database"
_SHOW = "return it through a mechanism of p, and show what certificate.run gives"

_REFUSED = {
    "__bool__": ("decide an if, and, or, not or while", _DECIDE),
    "__float__": ("be turned into a float", _NUMBER),
    "__int__": ("be turned into an int", _NUMBER),
    "__complex__": ("be turned into a complex number", _NUMBER),
    "__index__": ("be an index or a range", _DECIDE),
    "__round__": ("be rounded", "add noise with a mechanism of p, and round in a function given to pp.apply"),
    "__len__": ("be asked for its len", _SIZE),
    "__iter__": ("be iterated over", _EACH),
    "__contains__": ("be searched with in", _EACH),
    "__getitem__": ("be indexed", _EACH),
    "__hash__": ("be hashed, as a key of a dict or a member of a set", _DECIDE),
    "__str__": ("be written as text", _SHOW),
    "__format__": ("be written in an f-string", _SHOW),
    "__array__": ("be given to NumPy", _NUMBER),
    "__array_ufunc__": ("be given to NumPy", _NUMBER),
    "__array_function__": ("be given to NumPy", _NUMBER),
    "__matmul__": ("be multiplied as a matrix", _ARITHMETIC),
    "__floordiv__": ("be divided with //", _ARITHMETIC),
    "__mod__": ("be divided with %", _ARITHMETIC),
    "__rfloordiv__": ("be divided with //", _ARITHMETIC),
    "__rmod__": ("be divided with %", _ARITHMETIC),
    "__rpow__": ("be an exponent", "use pp.exp"),
    "__reduce_ex__": ("be copied or pickled", _SHOW),
    "__call__": ("be called", _ARITHMETIC),
    "__setitem__": ("be changed in place", _EACH),
}


def _refusal(what: str, instead: str):
    def refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise Escape(f"{self.described} cannot {what}; {instead}.", here())

    return refuse


class Guarded:
    """A value of the language: what is not in the language raises."""

    described = "a private value"
    offers: tuple[str, ...] = ()
    """The public attributes of an object, for the sentence on one that it has not."""

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)  # protocols that Python asks about, such as __array_interface__
        offers = ", ".join(self.offers)
        raise Escape(f"{self.described} has no {name}; it has {offers or 'arithmetic only'}.", here())


for _name, (_what, _instead) in _REFUSED.items():
    setattr(Guarded, _name, _refusal(_what, _instead))
