"""An agent's memory over MCP: a server on stdin and stdout, and the official client that starts it.

The agent is a script: it states what it made, asks whether it may publish, and tries what it may not. A person
approves, outside. Run it with `python examples/mcp_server.py`; it needs the extra `mcp`, and neither a key nor a
network.

It ends with: whole: True
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from pathlib import Path

from mcp import Client, StdioServerParameters, stdio_client

import strandline

NEEDS = [{"kind": "approved", "subject": "review"}, {"kind": "no_open_issue", "subject": "agent/oauth-scope"}]


async def agent(store: Path) -> None:
    """Do what an agent does that has the tools."""
    whose = ["--store", str(store), "--tenant", "acme", "--workflow", "release-42", "--actor", "agent"]
    words = ["-m", "strandline", "mcp", *whose]
    server = StdioServerParameters(command=sys.executable, args=words, env=dict(os.environ))
    async with Client(stdio_client(server)) as client:

        async def call(tool: str, **arguments: object) -> dict[str, object]:
            result = await client.call_tool(tool, arguments)
            told = dict(result.structured_content or {})
            return told["error"] if result.is_error else told  # type: ignore[return-value]

        print("tools:", ", ".join(tool.name for tool in (await client.list_tools()).tools))
        await call("append_event", kind="artifact", subject="bucket", handle="bucket-7f3a", key="made-1")
        await call("append_event", kind="issue", subject="oauth-scope", text="The token may write.", key="issue-1")
        print("may I publish?", (await call("check_ready", action="publish", needs=NEEDS))["reasons"])
        refused = await call("append_event", kind="approval", subject="review", text="I approve.")
        print("then I approve it:", refused["message"])

        with strandline.open(store) as db:  # a person, by the library or the command line
            workflow = db.tenant("acme").workflow("release-42")
            workflow.append(
                [strandline.approval("review", "Read.", granter="ana"), strandline.resolve("agent/oauth-scope")]
            )

        print("and now?", (await call("check_ready", action="publish", needs=NEEDS))["ready"])
        found = await call("find_reference", ref="bucket-7f3a")
        print("the bucket stands in event", [hit["seq"] for hit in found["hits"]])  # type: ignore[attr-defined]


def main() -> None:
    """Run the agent on a store of its own."""
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "agent.db"
        asyncio.run(agent(store))
        with strandline.open(store) as db:
            print("whole:", db.verify().ok)


if __name__ == "__main__":
    main()
