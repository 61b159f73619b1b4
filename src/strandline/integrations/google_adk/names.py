"""Which workflow holds what: a session, the state of a user, the state of an app. Names can't run into each other."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote, unquote

_ROOM: Final = "google-adk"


def session_workflow(app_name: str, user_id: str, session_id: str) -> str:
    """Return the name of a session's workflow."""
    return _name(app_name, user_id, session_id)


def user_workflow(app_name: str, user_id: str) -> str:
    """Return the name of the workflow that holds what all sessions of a user share."""
    return _name(app_name, user_id)


def app_workflow(app_name: str) -> str:
    """Return the name of the workflow that holds what all sessions of an app share."""
    return _name(app_name)


def session_of(workflow: str) -> tuple[str, str, str] | None:
    """Return app, user and session of a session's workflow; None: it is another one."""
    room, *names = workflow.split("/")
    if room != _ROOM or len(names) != 3:
        return None
    app_name, user_id, session_id = map(unquote, names)
    return app_name, user_id, session_id


def _name(*names: str) -> str:
    return "/".join((_ROOM, *(quote(name, safe=" @:+,=") for name in names)))
