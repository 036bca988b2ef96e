"""Texts that were meant as a connection to a database, where a path or a URL is wanted: they may hold a password.

Such a text is no path: a ledger by its name would be a local file, called as the password is, and no error quotes it.
"""

import re
from pathlib import PurePath

SCHEMES = ("postgresql", "postgres")
_WORDS = "host|hostaddr|port|dbname|user|password|passfile|service|sslmode|sslpassword|options|connect_timeout"
_START = re.compile(rf"""(?ix) [\s'"]* (?: postgres(?:ql)?(?:\+\w+)? (?: : | // ) | (?:{_WORDS}) \s* = )""")
# A URL, user:password@ in any part of one that is none, and a password among libpq's words.
_INSIDE = re.compile(r"(?i)://|:[^/\\]*@|password\s*=")


def is_meant(text: str) -> bool:
    """True if a text was meant as a connection, well written or not."""
    return _START.match(text) is not None or _INSIDE.search(text) is not None


def named(path: str) -> str:
    """Return the name of a file as an error quotes it: nothing of what was meant as a connection."""
    return "a connection string" if is_meant(path) else PurePath(path).name
