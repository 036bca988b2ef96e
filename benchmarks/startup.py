"""How long a person waits for the command, against `import jax`, all in new processes with nothing cached.

Bars: `noiseaware --help` below `import jax`, and a cold `noiseaware infer` within 4 times of it.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import table

import noiseaware as na

ROUNDS = 15
IMPORT = [sys.executable, "-c", "import jax"]
COMMAND = [sys.executable, "-m", "noiseaware"]
RELEASES = {
    "bernoulli": (na.family.Bernoulli(), [231], na.mechanism.DiscreteLaplace(10.0), "beta(0.5, 100)"),
    "exponential": (na.family.Exponential(bounds=(0, 48)), [5900.0], na.mechanism.Laplace(96.0), "gamma(8, 2)"),
    "categorical": (
        na.family.Categorical(levels=["a", "b", "c"]),
        [300, -5, 720],
        na.mechanism.DiscreteLaplace(4.0),
        "dirichlet(1, 1, 1)",
    ),
}


def seconds(command: list[str]) -> float:
    """The time of one new process, without any compilation cache."""
    environment = {k: v for k, v in os.environ.items() if k != "JAX_COMPILATION_CACHE_DIR"}
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
    return time.perf_counter() - start


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        commands = {"import jax": IMPORT, "--help": [*COMMAND, "--help"]}
        for name, (family, values, mechanism, prior) in RELEASES.items():
            path = Path(folder, f"{name}.json")
            na.Release(family=family, values=values, n=1000, mechanism=mechanism).save(path)
            commands[f"infer {name}"] = [*COMMAND, "infer", str(path), "--prior", prior, "--seed", "0"]
        times: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(ROUNDS):  # in turn, so that a busy moment falls on all of them
            for name, command in commands.items():
                times[name].append(seconds(command))
    floor = statistics.median(times["import jax"])
    print(f"{'command':24}{'seconds':>9}{'× import jax':>14}{'bar':>6}")
    for name, taken in times.items():
        middle = statistics.median(taken)
        bar = {"import jax": None, "--help": 1}.get(name, 4)
        print(f"{name:24}{middle:9.2f}{middle / floor:14.2f}{bar or '':>6}")
        if bar:
            peer = f"import jax, {floor:.2f} s"
            table.add(f"a cold {name}", middle / floor, "{} ×", at_most=bar, ours=f"{middle:.2f} s", against=peer)


if __name__ == "__main__":
    main()
