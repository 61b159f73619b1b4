"""Summarizers that come with Strandline, and the counters that bound what they write.

Those over models import their providers' packages when one is made, never before.
"""

from strandline.summarizers.anthropic import AnthropicSummarizer
from strandline.summarizers.calibration import CalibratedCounter, Calibration
from strandline.summarizers.callable import AsyncCallableSummarizer, CallableSummarizer, as_summarizer
from strandline.summarizers.chain import ChainSummarizer
from strandline.summarizers.counting import BytesPerToken, CallableCounter, as_counter
from strandline.summarizers.extractive import ExtractiveSummarizer
from strandline.summarizers.langchain import LangChainSummarizer
from strandline.summarizers.openai import OpenAISummarizer
from strandline.summarizers.pydantic_ai import PydanticAISummarizer
from strandline.summarizers.vocabulary import VocabularyCounter

__all__ = [
    "AnthropicSummarizer",
    "AsyncCallableSummarizer",
    "BytesPerToken",
    "CalibratedCounter",
    "Calibration",
    "CallableCounter",
    "CallableSummarizer",
    "ChainSummarizer",
    "ExtractiveSummarizer",
    "LangChainSummarizer",
    "OpenAISummarizer",
    "PydanticAISummarizer",
    "VocabularyCounter",
    "as_counter",
    "as_summarizer",
]
