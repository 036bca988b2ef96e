"""Baselines to compare with, called like a sampler, one a file."""
