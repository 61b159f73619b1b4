"""The kinds of value that must survive verbatim."""

from __future__ import annotations

import enum


class ReferenceClass(enum.StrEnum):
    """What sort of value an extracted reference is (C3).

    The class is a function of the reference's own text, but for VALUE, which is what JSON makes of a plain word. The
    values are stored with sightings: never rename one.
    `docs/references.md` has an example of each, and says what each does not match.
    """

    URL = "url"
    UUID = "uuid"
    TIMESTAMP = "timestamp"
    HOST = "host"
    VERSION = "version"
    NUMBER = "number"
    HASH = "hash"
    ISSUE = "issue"
    TICKET = "ticket"
    EMAIL = "email"
    PATH = "path"
    CONSTANT = "constant"
    HANDLE = "handle"
    SNAKE_CASE = "snake_case"
    CAMEL_CASE = "camel_case"
    VALUE = "value"
