"""The ledger of what was spent: its arithmetic, its files and servers, and its hash chain."""
