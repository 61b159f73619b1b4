"""A store in dictionaries: for tests and for `:memory:`. tables.py keeps versions, facets.py says what they mean."""

from strandline.stores.memory.store import MemoryStore

__all__ = ["MemoryStore"]
