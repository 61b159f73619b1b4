"""The protocol as a small model in plain Python, searched breadth-first, and asked about what real stores did (ADR 67).

- `search` walks every state that a few processes can reach within bounds, and looks at the laws in each of them.
- `conforms` reads what a workflow's store recorded, and replays it through the same rules.

`python -m strandline.testing.protocol --count 1000000` searches from the command line.
"""

from strandline.testing.protocol.conforming import Refusal, conform, conforms
from strandline.testing.protocol.search import search
from strandline.testing.protocol.traces import steps_of

__all__ = ["Refusal", "conform", "conforms", "search", "steps_of"]
