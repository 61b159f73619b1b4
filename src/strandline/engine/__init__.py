"""The engine: one verb per file, each in the order that the invariants demand."""
