"""The parameters of the statement `figures`."""

from __future__ import annotations

from typing import Final

from strandline.limits import LEASE_TTL_S
from strandline.model.figures import MICROSECONDS
from strandline.model.ids import TENANT_RULES

_LAST_ID: Final = 2**63 - 1


def figures_of(tenant_id: int | None, now_us: int) -> dict[str, object]:
    """Return what selects the figures of one tenant, or of all."""
    return {
        "tenant_id": 0 if tenant_id is None else tenant_id,
        "last_tenant_id": _LAST_ID if tenant_id is None else tenant_id,
        "rules": TENANT_RULES,  # where a tenant's own rules stand is none of its workflows
        "now_us": now_us,
        "latest_us": now_us + int(LEASE_TTL_S * MICROSECONDS),
    }
