"""What is needed from outside, as small Protocols. Stores, summarizers, counters and clocks supply it."""

from strandline.ports.decisions import CaseFacet, EffectFacet, PermitFacet
from strandline.ports.log import KeyTakenError, LogFacet, RefFacet, RegisterFacet, SearchFacet
from strandline.ports.memory import (
    CheckpointFacet,
    CooldownFacet,
    DueFacet,
    JobFacet,
    LineageFacet,
    ReaderFacet,
    SummaryFacet,
    ViewFacet,
)
from strandline.ports.outside import (
    AsyncSummarizer,
    Clock,
    Controller,
    Entropy,
    Hook,
    Judge,
    JudgeRequest,
    Summarizer,
    SummaryRequest,
    TokenCounter,
    Tracer,
)
from strandline.ports.states import NodeFacet, StateFacet
from strandline.ports.store import ClockedStore, ScrubbedStore, Store, Transaction

__all__ = [
    "AsyncSummarizer",
    "CaseFacet",
    "CheckpointFacet",
    "Clock",
    "ClockedStore",
    "Controller",
    "CooldownFacet",
    "DueFacet",
    "EffectFacet",
    "Entropy",
    "Hook",
    "JobFacet",
    "Judge",
    "JudgeRequest",
    "KeyTakenError",
    "LineageFacet",
    "LogFacet",
    "NodeFacet",
    "PermitFacet",
    "ReaderFacet",
    "RefFacet",
    "RegisterFacet",
    "ScrubbedStore",
    "SearchFacet",
    "StateFacet",
    "Store",
    "Summarizer",
    "SummaryFacet",
    "SummaryRequest",
    "TokenCounter",
    "Tracer",
    "Transaction",
    "ViewFacet",
]
