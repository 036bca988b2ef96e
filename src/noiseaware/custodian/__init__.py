"""Everything that sees private records, and nothing else does: this folder is the trust boundary."""
