"""Expected width of an interval against ε: the picture of docs/plan.md."""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import noiseaware as na

PATH = Path(__file__).parents[1] / "_static" / "plan.png"

if __name__ == "__main__":
    plan = na.plan(na.family.Bernoulli(), na.prior.Beta(1, 9), n=5000, width=0.02)
    plan.plot().savefig(PATH, dpi=160)
    print(f"ε = {plan.epsilon}, width {plan.width:.4f}, without noise {plan.floor:.4f}; wrote {PATH.name}")
