"""Celery workers that compact what is due (C26, C35). A message is a wake-up; the store says what there is to do.

    app = make_app("postgresql://…", "redis://…", summarizer="package.module:factory")

and `celery --app module worker`, `celery --app module beat`. It needs the extra `celery`.
"""

from strandline.integrations.celery.app import make_app, register
from strandline.integrations.celery.wakeups import WakeUps

__all__ = ["WakeUps", "make_app", "register"]
