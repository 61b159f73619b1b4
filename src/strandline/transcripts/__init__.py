"""Transcripts of other tools, and our own JSONL, read record by record (C2)."""

from strandline.transcripts.export import ExportFormat, check_export, export_lines
from strandline.transcripts.live import Known
from strandline.transcripts.transcript import Transcript, open_transcript, read_events
from strandline.transcripts.usage import Request, read_requests

__all__ = [
    "ExportFormat",
    "Known",
    "Request",
    "Transcript",
    "check_export",
    "export_lines",
    "open_transcript",
    "read_events",
    "read_requests",
]
