"""Releases, and what an analyst may conclude from the numbers in them: values, counts, several of one table."""
