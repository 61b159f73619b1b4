"""Judges of summaries: the rules by themselves, without a store, and anything else that may refuse a draft (C13)."""

from strandline.validators.by_rules import judge
from strandline.validators.callable import CallableJudge, as_judge

__all__ = ["CallableJudge", "as_judge", "judge"]
