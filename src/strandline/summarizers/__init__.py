"""Summarizers that come with Strandline, and the counters that bound what they write."""

from strandline.summarizers.callable import AsyncCallableSummarizer, CallableSummarizer, as_summarizer
from strandline.summarizers.counting import BytesPerToken, CallableCounter, as_counter
from strandline.summarizers.extractive import ExtractiveSummarizer

__all__ = [
    "AsyncCallableSummarizer",
    "BytesPerToken",
    "CallableCounter",
    "CallableSummarizer",
    "ExtractiveSummarizer",
    "as_counter",
    "as_summarizer",
]
