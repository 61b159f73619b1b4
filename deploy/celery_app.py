"""The Celery app of the compose file: `celery --app deploy.celery_app worker`, and `… beat`."""

import os

from strandline.integrations.celery import make_app

app = make_app(
    os.environ["STRANDLINE_STORE"],
    os.environ["STRANDLINE_BROKER"],
    summarizer=os.environ.get("STRANDLINE_SUMMARIZER"),  # "package.module:factory"; none: the extractive one
)
