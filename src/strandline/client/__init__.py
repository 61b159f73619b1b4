"""The door: what integrations, server, command line and users go through."""

from strandline.client.awaiting import AsyncStrandline, AsyncTenant, AsyncWorkflow, aopen
from strandline.client.blocking import Strandline, Tenant, Workflow, open

__all__ = ["AsyncStrandline", "AsyncTenant", "AsyncWorkflow", "Strandline", "Tenant", "Workflow", "aopen", "open"]
