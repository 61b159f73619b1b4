"""Transcripts of other tools, and our own JSONL, read record by record (C2)."""

from strandline.transcripts.transcript import Transcript, open_transcript, read_events

__all__ = ["Transcript", "open_transcript", "read_events"]
