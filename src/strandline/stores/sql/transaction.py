"""A transaction: the facets over one session."""

from __future__ import annotations

from strandline.model.ids import Scope
from strandline.stores.sql.cases import SqlCases
from strandline.stores.sql.cooldowns import SqlCooldowns
from strandline.stores.sql.due import SqlDue
from strandline.stores.sql.effects import SqlEffects, SqlPermits
from strandline.stores.sql.jobs import SqlJobs
from strandline.stores.sql.lineage import SqlCheckpoints, SqlLineage
from strandline.stores.sql.log import SqlLog
from strandline.stores.sql.readers import SqlReaders
from strandline.stores.sql.refs import SqlRefs
from strandline.stores.sql.register import SqlRegister
from strandline.stores.sql.search import SqlSearch
from strandline.stores.sql.session import Session
from strandline.stores.sql.states import SqlNodes, SqlStates
from strandline.stores.sql.summaries import SqlSummaries
from strandline.stores.sql.views import SqlViews


class SqlTransaction:
    """`ports.Transaction` over SQL."""

    def __init__(self, session: Session, scope: Scope) -> None:
        self.log = SqlLog(session, scope)
        self.refs = SqlRefs(session)
        self.register = SqlRegister(session)
        self.search = SqlSearch(session)
        self.views = SqlViews(session)
        self.jobs = SqlJobs(session)
        self.summaries = SqlSummaries(session, self.refs)
        self.lineage = SqlLineage(session)
        self.checkpoints = SqlCheckpoints(session)
        self.cases = SqlCases(session)
        self.effects = SqlEffects(session)
        self.permits = SqlPermits(session)
        self.readers = SqlReaders(session)
        self.cooldowns = SqlCooldowns(session)
        self.due = SqlDue(session)
        self.states = SqlStates(session)
        self.nodes = SqlNodes(session)
        self._session = session
        self._tenant = scope.tenant
        self._relatives: dict[str, SqlTransaction] = {scope.workflow: self}  # each holds its head once
        self._locked = {scope.workflow}

    def relative(self, workflow: str, *, locked: bool = False) -> SqlTransaction:
        if workflow not in self._relatives or (locked and workflow not in self._locked):
            scope = Scope(tenant=self._tenant, workflow=workflow)
            session = self._session.relative(workflow, locked=locked)
            found = self._relatives[workflow] = SqlTransaction(session, scope)
            found._relatives, found._locked = self._relatives, self._locked
        if locked:
            self._locked.add(workflow)
        return self._relatives[workflow]
