"""The benchmark of the store: how fast, how small, beside the raw driver and beside peers, in one run."""
