"""Words for the parameters of a family, which each family brings itself."""

from typing import NamedTuple


class Meaning(NamedTuple):
    """Words for a parameter, and for its entries where it has several."""

    text: str
    """The rate."""
    aside: str = ""
    """Text that follows where there is room: ", one over the mean"."""
    entry: str = ""
    """Words for one entry, with a place for each of its labels: "the coefficient of {}"."""
    twice: str = ""
    """Words for an entry whose two labels are the same, as on the diagonal of a matrix."""
    last: str = ""
    """Words for the last entry, if it differs from the others."""

    def of(self, labels: tuple[str, ...], *, is_last: bool = False) -> str:
        """Return the words for the entry with these labels, or for the parameter where there are none."""
        if is_last and self.last:
            return self.last
        if self.twice and len(set(labels)) == 1:
            return self.twice.format(*labels)
        return self.entry.format(*labels) if labels else self.text
