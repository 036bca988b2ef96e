"""The proof of a private program's promise, or a refutation."""
