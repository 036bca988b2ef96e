"""Likelihoods of released sums and counts, p(y given θ), as values that samplers and `na.model` share."""
