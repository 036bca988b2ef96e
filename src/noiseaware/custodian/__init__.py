"""Everything that sees private records, and nothing else does: this folder is the trust boundary.

`release` is the verb, `table` holds the records and sums them, `ledger` is charged, and then `noise` is drawn.
"""
