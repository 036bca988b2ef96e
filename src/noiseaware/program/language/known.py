"""A distribution that a program returned, with numbers as parameters."""

from dataclasses import dataclass

from noiseaware.prior import AbstractPrior, Beta, Dirichlet, Gamma, Normal
from noiseaware.program.language.distribution import FIELDS, VECTORS


@dataclass(frozen=True)
class Known:
    """A distribution by name and parameters, as they were released: noise can make these impossible."""

    name: str
    parameters: dict[str, float | tuple[float, ...]]

    def __getattr__(self, name: str) -> float | tuple[float, ...]:
        parameters = vars(self).get("parameters", {})  # empty while it is being unpickled
        if name not in parameters:
            raise AttributeError(f"this distribution has no {name}; it has {', '.join(parameters)}.")
        return parameters[name]

    @property
    def prior(self) -> AbstractPrior:
        """The distribution as one of noiseaware.prior, to evaluate or to draw from."""
        kinds = {"beta": Beta, "dirichlet": Dirichlet, "gamma": Gamma, "normal": Normal}
        if self.name not in kinds:
            raise ValueError(f"prior must be of a beta, dirichlet, gamma or normal distribution, got {self.name}.")
        try:
            return kinds[self.name](*self.parameters.values())  # type: ignore[arg-type]
        except ValueError as error:
            advice = "the noise outweighed the data; release the statistic, and use na.infer on it"
            raise ValueError(f"{self.name}: {str(error).removesuffix('.')} ({advice}).") from None


def known(name: str, numbers: list[float]) -> Known:
    """The distribution of this name with these parameters, in order."""
    if name in VECTORS:
        return Known(name, {VECTORS[name]: tuple(numbers)})
    return Known(name, dict(zip(FIELDS[name], numbers, strict=True)))
