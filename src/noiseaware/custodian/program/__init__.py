"""The custodian's side of a private program: its run, and its noise."""
