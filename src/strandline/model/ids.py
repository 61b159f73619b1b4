"""Who owns the data: tenant and workflow."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

from strandline.errors import TenantScopeError
from strandline.limits import NAME_CHARS_MAX

DEFAULT_TENANT = "default"
DEFAULT_VIEW = "main"
DEFAULT_CHECKPOINT_NAME = "main"
TENANT_RULES = "strandline/rules"  # the workflow in whose lineage a tenant's own holds and retention rules stand
EVERYONE = "all"  # the audience that every view reads


def check_name(what: str, name: object) -> str:
    """Return `name` if it can name a `what` (tenant, workflow, view, checkpoint).

    Raises:
        TenantScopeError: not a string, empty, too long, outer spaces, or a character that can't be shown or stored.
    """
    if not isinstance(name, str) or not name:
        raise TenantScopeError(f"a {what} needs a name, got {name!r}")
    if len(name) > NAME_CHARS_MAX:
        raise TenantScopeError(f"{what} name of {len(name)} characters, at most {NAME_CHARS_MAX} are allowed")
    if name != name.strip():
        raise TenantScopeError(f"{what} name {name!r} has spaces around it")
    for char in name:
        if unicodedata.category(char) in {"Cc", "Cs", "Cn"}:
            raise TenantScopeError(f"{what} name {name!r} holds {char!r}, which no name may hold")
    return name


def check_workflow(name: object) -> str:
    """Return `name` if a user's workflow can have it: one name is that of the tenant's own rules.

    Raises:
        TenantScopeError: as of `check_name`, or it is that one.
    """
    if check_name("workflow", name) == TENANT_RULES:
        raise TenantScopeError(f"{TENANT_RULES!r} holds the tenant's own rules; no workflow can have this name")
    return str(name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """One workflow of one tenant: the unit of consistency (SPEC §2)."""

    tenant: str
    workflow: str

    def __post_init__(self) -> None:
        check_name("tenant", self.tenant)
        check_name("workflow", self.workflow)

    def __str__(self) -> str:
        return f"{self.tenant}/{self.workflow}"
