"""Sentences, plots and pages about releases and posteriors."""
