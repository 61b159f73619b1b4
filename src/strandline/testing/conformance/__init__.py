"""The suite that every store passes: the laws of `strandline.ports.Store`, each test under the law that it checks.

It needs pytest. Subclass it in a test module, and say how your store is opened:

    from strandline.testing.conformance import StoreConformance

    class TestMyStore(StoreConformance):
        durable = True  # what is committed is there when the store is opened again, in this process or in another

        @pytest.fixture
        def open_store(self, tmp_path):
            return functools.partial(MyStore, str(tmp_path / "data"))

`open_store` gives a callable that opens the store of this test. For a durable store each call opens the same data, and
the callable can be pickled: races and crashes are tried with processes of their own. For any other store each call
gives a new, empty store.

`SummarizerConformance` is the same for summarizers: its fixture `make_summarizer` gives a callable that makes yours,
and `failing_summarizer`, which may be left out, one whose model is in trouble.

`python -m strandline.testing.conformance` runs either without a test module, and says what is kept and what is missing.
"""

import pytest

# pytest explains a failed assertion only in modules that are registered before they are imported.
pytest.register_assert_rewrite(
    *(
        f"strandline.testing.conformance.{module}"
        for module in (
            "base",
            "cooldowns",
            "decisions",
            "due",
            "durability",
            "effects",
            "erasure",
            "figures",
            "isolation",
            "jobs",
            "lineage",
            "log",
            "processes",
            "races",
            "refs",
            "register",
            "search",
            "stage",
            "states",
            "summaries",
            "summarizers",
            "transactions",
            "values",
            "views",
        )
    )
)

from strandline.testing.conformance.cooldowns import CooldownLaws  # noqa: E402
from strandline.testing.conformance.decisions import DecisionLaws  # noqa: E402
from strandline.testing.conformance.due import DueLaws  # noqa: E402
from strandline.testing.conformance.durability import DurabilityLaws  # noqa: E402
from strandline.testing.conformance.effects import EffectLaws  # noqa: E402
from strandline.testing.conformance.erasure import ErasureLaws  # noqa: E402
from strandline.testing.conformance.figures import FigureLaws  # noqa: E402
from strandline.testing.conformance.isolation import IsolationLaws  # noqa: E402
from strandline.testing.conformance.jobs import JobLaws  # noqa: E402
from strandline.testing.conformance.lineage import LineageLaws  # noqa: E402
from strandline.testing.conformance.log import LogLaws  # noqa: E402
from strandline.testing.conformance.races import RaceLaws  # noqa: E402
from strandline.testing.conformance.refs import RefLaws  # noqa: E402
from strandline.testing.conformance.register import RegisterLaws  # noqa: E402
from strandline.testing.conformance.search import SearchLaws  # noqa: E402
from strandline.testing.conformance.states import StateLaws  # noqa: E402
from strandline.testing.conformance.summaries import SummaryLaws  # noqa: E402
from strandline.testing.conformance.summarizers import (  # noqa: E402
    CompactionLaws,
    DeterminismLaws,
    DraftLaws,
    ErrorLaws,
    IdentityLaws,
    Trouble,
)
from strandline.testing.conformance.transactions import TransactionLaws  # noqa: E402
from strandline.testing.conformance.values import ValueLaws  # noqa: E402
from strandline.testing.conformance.views import ViewLaws  # noqa: E402

__all__ = ["StoreConformance", "SummarizerConformance", "Trouble"]


class StoreConformance(
    LogLaws,
    RefLaws,
    RegisterLaws,
    SearchLaws,
    ViewLaws,
    JobLaws,
    SummaryLaws,
    LineageLaws,
    EffectLaws,
    ErasureLaws,
    FigureLaws,
    DecisionLaws,
    DueLaws,
    CooldownLaws,
    StateLaws,
    ValueLaws,
    TransactionLaws,
    IsolationLaws,
    RaceLaws,
    DurabilityLaws,
):
    """All laws of a store. Subclass it under a name that begins with `Test`."""


class SummarizerConformance(IdentityLaws, DraftLaws, DeterminismLaws, CompactionLaws, ErrorLaws):
    """All laws of a summarizer. Subclass it under a name that begins with `Test`."""
