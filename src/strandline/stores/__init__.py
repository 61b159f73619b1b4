"""Stores: where events, summaries, lineage and checkpoints are kept."""
