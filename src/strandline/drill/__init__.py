"""The three incidents that Strandline exists to prevent, live: first without its protection, then with it (C41).

Each runs with real processes, a real SIGKILL, a service on loopback whose handles change, and real time-outs.
`strandline.drill.program` is the door; who runs it says how the story is told.
"""
