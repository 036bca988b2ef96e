"""Texts that were meant as a connection to a database, where a path or a URL is wanted: they may hold a password.

Such a text is no path: a ledger by its name would be a local file, called as the password is, and no error quotes it.
"""

import re
from pathlib import PurePath

_WORDS = "host|hostaddr|port|dbname|user|password|passfile|service|sslmode|sslpassword|options|connect_timeout"
# A scheme whose slashes were forgotten, words of libpq (host=db user=me), and user:password@host without a scheme.
_MEANT = re.compile(
    rf"""(?ix) [\s'"]* (?: postgres(?:ql)?(?:\+\w+)? (?: : | // ) | (?:{_WORDS}) \s* = | [^/\\:\s]+ : /* [^/\\]* @ )"""
)
_PASSWORD = re.compile(r"(?i)password\s*=")


def is_meant(text: str) -> bool:
    """True if a text was meant as a connection, well written or not."""
    return "://" in text or _MEANT.match(text) is not None or _PASSWORD.search(text) is not None


def named(path: str) -> str:
    """The name of a file as an error quotes it: nothing of what was meant as a connection."""
    return "a connection string" if is_meant(path) else PurePath(path).name
