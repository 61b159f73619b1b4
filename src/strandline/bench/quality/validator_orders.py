"""The orders of the validators' corpus: what must be, must not be, or may be."""

from __future__ import annotations

from typing import Final

from strandline.bench.quality.validator_fact import fact

ORDERS: Final = (
    fact(
        "Never deploy on Fridays.",
        """Deploys on Fridays are forbidden.
        Do not deploy on Fridays.
        No deploys on Fridays.
        The team must not deploy on Fridays.
        Under no circumstances deploy on a Friday.""",
        """Avoid deploying on Fridays.
        Deploys on Fridays are risky.
        Never deploy on weekends.
        Deploy on Fridays only.
        The deploy on Friday failed.
        Never deploy.
        Dana never deploys on Fridays.""",
    ),
    fact(
        "All database migrations must be reviewed by Dana before they run in production.",
        """Before they run in production, all database migrations must be reviewed by Dana.
        Dana must review every database migration before it runs in production.
        All DB migrations have to be reviewed by Dana before they run in prod.
        Dana has to review all database migrations before they run in production.""",
        """All database migrations must be reviewed before they run in production.
        All database migrations must be reviewed by Dana after they run in production.
        All database migrations must be reviewed by Dana before they run in staging.
        Some database migrations must be reviewed by Dana before they run in production.
        Dana's migrations must be reviewed before they run in production.
        All database migrations were reviewed by Dana before they ran in production.""",
    ),
    fact(
        "Failed uploads must be retried at most 3 times.",
        """Failed uploads must be retried no more than three times.
        Retry failed uploads at most 3 times.
        The agent must retry failed uploads at most 3 times.
        Failed uploads have to be retried up to 3 times.""",
        """Failed uploads must be retried at least 3 times.
        Failed uploads must be retried 3 times.
        Failed uploads must be retried more than 3 times.
        Failed downloads must be retried at most 3 times.
        Failed uploads were retried 3 times.
        Failed uploads must be retried at most 30 times.""",
    ),
    fact(
        "Only the publisher may push to the main branch.",
        """Only the publisher is allowed to push to the main branch.
        Pushing to the main branch is allowed only for the publisher.
        No one but the publisher may push to the main branch.
        Nobody except the publisher may push to main.""",
        """The publisher may push to the main branch.
        The publisher may push only to the main branch.
        Only the publisher must push to the main branch.
        Everyone may push to the main branch.
        Only the reviewer may push to the main branch.
        Only the publisher may not push to the main branch.""",
    ),
    fact(
        "Customer e-mail addresses must not be written to the logs.",
        """Never write customer e-mail addresses to the logs.
        Customer e-mail addresses must never be written to the logs.
        Do not write customer e-mail addresses to the logs.
        It is forbidden to write customer e-mail addresses to the logs.""",
        """Customer e-mail addresses should not be written to the logs.
        Customer e-mail addresses are written to the logs.
        Customer names must not be written to the logs.
        Customer e-mail addresses must be written to the logs.
        Customer e-mail addresses must not be written to the console.
        E-mail addresses of employees must not be written to the logs.""",
    ),
    fact(
        "If the health check fails, roll back the release and page the on-call engineer.",
        """Roll back the release and page the on-call engineer if the health check fails.
        If the health check fails, the agent must roll back the release and page the on-call engineer.
        When the health check fails, roll back the release and page the on-call engineer.
        Should the health check fail, the release is rolled back and the on-call engineer paged.""",
        """If the health check fails, roll back the release or page the on-call engineer.
        If the health check fails, roll back the release.
        If the health check passes, roll back the release and page the on-call engineer.
        Roll back the release and page the on-call engineer.
        The health check failed, so the release was rolled back and the on-call engineer paged.
        Unless the health check fails, roll back the release and page the on-call engineer.""",
    ),
    fact(
        "The API must stay compatible with version 2.4.1 of the client.",
        """The API has to stay compatible with version 2.4.1 of the client.
        The API must remain compatible with client version 2.4.1.
        Compatibility of the API with version 2.4.1 of the client must be kept.
        Keep the API compatible with version 2.4.1 of the client.""",
        """The API must stay compatible with version 2.4.10 of the client.
        The API must stay compatible with version 2.14 of the client.
        The API is compatible with version 2.4.1 of the client.
        The client must stay compatible with version 2.4.1 of the API.
        The API should stay compatible with version 2.4.1 of the client.""",
    ),
    fact(
        "Copy the nightly backup from eu-west-1 to us-east-2.",
        """The nightly backup must be copied from eu-west-1 to us-east-2.
        From eu-west-1, copy the nightly backup to us-east-2.
        Copy the nightly backup to us-east-2 from eu-west-1.
        Always copy the nightly backup from eu-west-1 to us-east-2.""",
        """Copy the nightly backup from us-east-2 to eu-west-1.
        Copy the weekly backup from eu-west-1 to us-east-2.
        Copied the nightly backup from eu-west-1 to us-east-2.
        Move the nightly backup from eu-west-1 to us-east-2.
        The nightly backup was copied from eu-west-1 to us-east-2.
        Copy the nightly backup to us-east-2.""",
    ),
    fact(
        "Use tabs, not spaces, for indentation in the Makefile.",
        """In the Makefile, use tabs, not spaces, for indentation.
        Tabs, not spaces, must be used for indentation in the Makefile.
        For indentation in the Makefile use tabs, not spaces.
        The Makefile must be indented with tabs instead of spaces.""",
        """Use spaces, not tabs, for indentation in the Makefile.
        Use tabs or spaces for indentation in the Makefile.
        Use tabs for indentation in the README.
        The Makefile uses tabs for indentation.
        Prefer tabs for indentation in the Makefile.""",
    ),
    fact(
        "Every public function needs a docstring and a test.",
        """All public functions need a docstring and a test.
        Each public function needs a docstring and a test.
        Every public function requires a docstring and a test.
        A docstring and a test are needed for every public function.""",
        """Every public function needs a docstring or a test.
        Every public function needs a docstring.
        Some public functions need a docstring and a test.
        Every function needs a docstring and a test.
        Every public function has a docstring and a test.
        Every private function needs a docstring and a test.""",
    ),
    fact(
        "Do not share the contract with anyone outside the legal team before it is signed.",
        """Before it is signed, do not share the contract with anyone outside the legal team.
        The contract must not be shared with anyone outside the legal team before it is signed.
        Never share the contract with anyone outside the legal team before it is signed.
        Sharing the contract with anyone outside the legal team before it is signed is forbidden.""",
        """Do not share the contract with anyone outside the legal team after it is signed.
        Do not share the contract with anyone inside the legal team before it is signed.
        Do not share the contract with the legal team before it is signed.
        Share the contract with anyone outside the legal team before it is signed.
        Do not sign the contract before it is shared with the legal team.
        The contract was not shared with anyone outside the legal team before it was signed.""",
    ),
    fact(
        "The model must answer in French and must not mention prices.",
        """The model has to answer in French and must not mention prices.
        The model must answer in French and must never mention prices.
        Answers must be in French, and prices must not be mentioned.
        The model must answer in French, and it must not mention prices.""",
        """The model must answer in French and must mention prices.
        The model must not answer in French and must mention prices.
        The model must answer in French.
        The model must answer in Spanish and must not mention prices.
        The model must answer in French and should not mention prices.
        The model answered in French and did not mention prices.""",
    ),
    fact(
        "Send the weekly report to finance@example.com, not to ops@example.com.",
        """The weekly report must be sent to finance@example.com, not to ops@example.com.
        Always send the weekly report to finance@example.com, not to ops@example.com.
        Send the weekly report to finance@example.com rather than ops@example.com.""",
        """Send the weekly report to ops@example.com, not to finance@example.com.
        Send the weekly report to finance@example.com and to ops@example.com.
        Send the weekly report to finances@example.com, not to ops@example.com.
        Send the monthly report to finance@example.com, not to ops@example.com.
        The weekly report was sent to finance@example.com, not to ops@example.com.""",
    ),
    fact(
        "Keep the old endpoint /v1/orders alive until all partners have migrated.",
        """The old endpoint /v1/orders must be kept alive until all partners have migrated.
        Until all partners have migrated, keep the old endpoint /v1/orders alive.
        The agent must keep the old endpoint /v1/orders alive until all partners have migrated.
        The old endpoint /v1/orders stays alive until every partner has migrated.""",
        """Keep the old endpoint /v2/orders alive until all partners have migrated.
        Keep the old endpoint /v1/orders alive after all partners have migrated.
        Keep the old endpoint /v1/orders alive until some partners have migrated.
        Remove the old endpoint /v1/orders, since all partners have migrated.
        Keep the old endpoint /v1/orders alive.
        The old endpoint /v1/orders was kept alive until all partners had migrated.""",
    ),
    fact(
        "User data must be deleted within 30 days of a request.",
        """Delete user data within 30 days of a request.
        User data has to be deleted within 30 days of a request.
        Within 30 days of a request, user data must be deleted.
        User data must be erased within thirty days of a request.""",
        """User data must be deleted after 30 days of a request.
        User data must be deleted within 30 weeks of a request.
        User data may be deleted within 30 days of a request.
        User data was deleted within 30 days of a request.
        User data must be archived within 30 days of a request.
        User data must be deleted within 30 hours of a request.""",
    ),
    fact(
        "The agent may spend up to $200 per day on cloud machines without asking.",
        """Without asking, the agent may spend up to $200 per day on cloud machines.
        The agent is allowed to spend up to $200 per day on cloud machines without asking.
        The agent may spend at most $200 per day on cloud machines without asking.
        Up to $200 a day may be spent on cloud machines without asking.""",
        """The agent may spend up to $200 per week on cloud machines without asking.
        The agent must spend up to $200 per day on cloud machines without asking.
        The agent may spend more than $200 per day on cloud machines without asking.
        The agent may spend up to $200 per day on cloud machines after asking.
        The agent may not spend up to $200 per day on cloud machines without asking.
        The agent may spend up to $2,000 per day on cloud machines without asking.""",
    ),
    fact(
        "Ask for confirmation before any booking over 500 dollars.",
        """Before any booking over $500, ask for confirmation.
        The agent must ask for confirmation before any booking over 500 dollars.
        Ask for confirmation before any booking above $500.
        Request confirmation prior to any booking over $500.""",
        """Ask for confirmation before any booking under 500 dollars.
        Ask for confirmation after any booking over 500 dollars.
        Ask for confirmation before any booking over 5,000 dollars.
        Ask for confirmation before any booking.
        Asked for confirmation before any booking over 500 dollars.
        Confirmation is not needed before any booking over 500 dollars.""",
    ),
    fact(
        "Tests must run in parallel, except for the crash tests.",
        """Except for the crash tests, tests must run in parallel.
        Apart from the crash tests, tests must run in parallel.
        Tests have to run in parallel, apart from the crash tests.
        All tests but the crash tests must run in parallel.""",
        """Tests must run in parallel, including the crash tests.
        Tests must run in parallel.
        Only the crash tests must run in parallel.
        Tests must not run in parallel, except for the crash tests.
        Tests must run in parallel, except for the unit tests.
        Tests may run in parallel, except for the crash tests.""",
    ),
    fact(
        "At least two maintainers have to approve a change of the public API.",
        """A change of the public API has to be approved by at least two maintainers.
        At least 2 maintainers must approve a change of the public API.
        A change of the public API must be approved by no fewer than two maintainers.
        No change of the public API without the approval of at least two maintainers.""",
        """At most two maintainers have to approve a change of the public API.
        At least one maintainer has to approve a change of the public API.
        At least two maintainers approved a change of the public API.
        Two maintainers may approve a change of the public API.
        At least two maintainers have to approve a change of the private API.
        At least two users have to approve a change of the public API.""",
    ),
)
