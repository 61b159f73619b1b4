"""The other facts of the validators' corpus: what is, was or will be."""

from __future__ import annotations

from typing import Final

from strandline.bench.quality.validator_fact import fact

STATES: Final = (
    fact(
        "The budget cap for the experiment is $5,000.",
        """The experiment's budget cap is $5,000.
        The budget limit for the experiment is $5k.
        For the experiment, the budget cap is 5,000 dollars.
        Budget cap for the experiment: $5,000.""",
        """The budget cap for the experiment is about $5,000.
        The budget for the experiment is $5,000 above the cap.
        The budget floor for the experiment is $5,000.
        The budget cap for the pilot is $5,000.
        The experiment cost $5,000.""",
    ),
    fact(
        "Dana approved release-42 on 2026-03-14.",
        """release-42 was approved by Dana on 2026-03-14.
        Dana has approved release-42 on March 14, 2026.
        On 2026-03-14, Dana approved release-42.
        On 14 March 2026 release-42 was approved by Dana.""",
        """Sam approved release-42 on 2026-03-14.
        Dana reviewed release-42 on 2026-03-14.
        Dana will approve release-42 on 2026-03-14.
        Dana was asked to approve release-42 on 2026-03-14.
        Dana rejected release-42 on 2026-03-14.
        Release-42 approved Dana on 2026-03-14.""",
    ),
    fact(
        "The security review of the login page is still pending.",
        """The login page's security review is pending.
        Security review of the login page: pending.
        The security review of the login page is pending.
        The security review of the login page has not been completed yet.""",
        """The security review of the login page was approved.
        The security review of the login page is done.
        The security review of the login page passed.
        The security review of the login page was pending.
        The security review of the logout page is still pending.
        The security review of the login page is no longer pending.""",
    ),
    fact(
        "The export job will run on Tuesday at 5 pm.",
        """The export job is going to run on Tuesday at 17:00.
        The export job is scheduled to run on Tuesday at 5 pm.
        On Tuesday at 5 pm, the export job will run.
        The export job runs on Tuesday at 17:00.""",
        """The export job ran on Tuesday at 5 pm.
        The export job will run on Thursday at 5 pm.
        The export job will run on Tuesday at 5 am.
        The import job will run on Tuesday at 5 pm.
        The export job may run on Tuesday at 5 pm.
        The export job has run on Tuesday at 5 pm.""",
    ),
    fact(
        "The request timeout of the gateway is 30 seconds.",
        """The gateway's request timeout is 30 s.
        The request timeout of the gateway is thirty seconds.
        Gateway request timeout: 30 seconds.
        The gateway has a request timeout of 30 seconds.""",
        """The request timeout of the gateway is 30 minutes.
        The request timeout of the gateway is 30 ms.
        The request timeout of the client is 30 seconds.
        The gateway took 30 seconds for the request.
        The request timeout of the gateway is at least 30 seconds.""",
    ),
    fact(
        "The bucket handle for the test artifacts is bucket-7f3a91.",
        """The test artifacts' bucket handle is bucket-7f3a91.
        Bucket handle for the test artifacts: bucket-7f3a91.
        For the test artifacts, the bucket handle is bucket-7f3a91.
        Test artifacts are stored in bucket-7f3a91.""",
        """The bucket handle for the test artifacts is bucket-7f3a9.
        The bucket handle for the test artifacts is bucket-7f3a911.
        The bucket handle for the build artifacts is bucket-7f3a91.
        The bucket handle for the test artifacts was bucket-7f3a91.
        A bucket for the test artifacts exists.""",
    ),
    fact(
        "The frontend depends on the billing service.",
        """The frontend is dependent on the billing service.
        The frontend needs the billing service.
        Frontend depends on the billing service.
        The billing service is a dependency of the frontend.""",
        """The billing service depends on the frontend.
        The frontend does not depend on the billing service.
        The frontend depends on the mailing service.
        The backend depends on the billing service.
        The frontend depended on the billing service.""",
    ),
    fact(
        "Issue 317 is open: the OAuth token has the scope admin:org, which is wider than needed.",
        """Issue 317 is still open: the OAuth token has scope admin:org, which is wider than needed.
        Open: issue 317, the OAuth token's scope admin:org is wider than needed.
        Issue 317 remains open: the OAuth token has the scope admin:org, which is wider than needed.""",
        """Issue 317 is closed: the OAuth token had the scope admin:org, which is wider than needed.
        Issue 317 is open: the OAuth token has the scope read:org, which is wider than needed.
        Issue 371 is open: the OAuth token has the scope admin:org, which is wider than needed.
        Issue 317 was fixed: the OAuth token has the scope admin:org, which is as needed.
        The OAuth token has the scope admin:org.""",
    ),
    fact(
        "The customer's refund of 120 EUR has not been paid yet.",
        """The refund of 120 EUR has not been paid to the customer yet.
        The customer's refund of 120 euros has not yet been paid.
        The customer's refund of €120 is not paid yet.
        The customer is still waiting for the refund of 120 EUR.""",
        """The customer's refund of 120 EUR has been paid.
        The customer's refund of 120 USD has not been paid yet.
        The customer's refund of 12 EUR has not been paid yet.
        The customer's refund of 120 EUR is paid.
        The customer's refund of 120 EUR was refused.
        The customer refunded 120 EUR.""",
    ),
    fact(
        "Sam owns the parser, and Kim owns the scheduler.",
        """The parser is owned by Sam, and the scheduler is owned by Kim.
        Kim owns the scheduler, and Sam owns the parser.
        Sam owns the parser; Kim owns the scheduler.
        Sam is the owner of the parser and Kim of the scheduler.""",
        """Kim owns the parser, and Sam owns the scheduler.
        Sam and Kim own the parser and the scheduler.
        Sam owns the parser.
        Sam wrote the parser, and Kim wrote the scheduler.
        Sam owns the parser, and Kim owns the renderer.""",
    ),
    fact(
        "The launch was moved from 3 May 2026 to 17 June 2026.",
        """The launch has been moved from May 3, 2026 to June 17, 2026.
        The launch was postponed from 3 May 2026 to 17 June 2026.
        From 2026-05-03 the launch was moved to 2026-06-17.
        The launch moved to 17 June 2026; it had been planned for 3 May 2026.""",
        """The launch was moved from 17 June 2026 to 3 May 2026.
        The launch will be moved from 3 May 2026 to 17 June 2026.
        The launch was moved from 3 May 2026 to 17 July 2026.
        The launch was not moved from 3 May 2026 to 17 June 2026.
        The launch is on 3 May 2026.""",
    ),
    fact(
        "The nightly build failed because the disk was full.",
        """The nightly build failed since the disk was full.
        Because the disk was full, the nightly build failed.
        The nightly build failed: the disk was full.
        A full disk made the nightly build fail.""",
        """The nightly build failed although the disk was not full.
        The disk was full because the nightly build failed.
        The nightly build passed because the disk was full.
        The weekly build failed because the disk was full.
        The nightly build will fail because the disk is full.
        The nightly build failed because the memory was full.""",
    ),
    fact(
        "The cache holds up to 10,000 entries.",
        """The cache holds at most 10,000 entries.
        The cache holds no more than 10000 entries.
        The cache contains up to 10,000 entries.
        Up to ten thousand entries fit in the cache.""",
        """The cache holds more than 10,000 entries.
        The cache holds at least 10,000 entries.
        The cache holds up to 100,000 entries.
        The cache held 10,000 entries.
        The cache holds up to 10,000 bytes.
        The queue holds up to 10,000 entries.""",
    ),
    fact(
        "The load test is running on staging.",
        """The load test is still running on staging.
        On staging, the load test is running.
        The load test runs on staging at the moment.
        Load test running on staging.""",
        """The load test ran on staging.
        The load test is running on production.
        The load test will run on staging.
        The load test is not running on staging.
        The smoke test is running on staging.
        The load test has run on staging.""",
    ),
    fact(
        "Prices are shown without VAT to business customers.",
        """To business customers, prices are shown without VAT.
        Prices are displayed without VAT to business customers.
        Business customers are shown prices without VAT.
        Prices without VAT are shown to business customers.""",
        """Prices are shown with VAT to business customers.
        Prices are shown without VAT to private customers.
        Prices are not shown without VAT to business customers.
        Prices were shown without VAT to business customers.
        Prices are shown without VAT to customers.
        Prices must be shown without discounts to business customers.""",
    ),
    fact(
        "The agent started the transfer of 4 TB, and it has not finished.",
        """The transfer of 4 TB was started by the agent, and it has not finished.
        The agent has started the transfer of 4 TB, and it has not finished.
        The agent started the transfer of 4 TB, which has not finished.
        The agent started the transfer of 4 TB; it is unfinished.""",
        """The agent started the transfer of 4 TB, and it has finished.
        The agent finished the transfer of 4 TB.
        The agent started the transfer of 4 GB, and it has not finished.
        The agent started the transfer of 4 TB.
        The agent will start the transfer of 4 TB, and it has not finished.
        The agent has not started the transfer of 4 TB, and it has not finished.""",
    ),
    fact(
        "Root cause: the lock in src/store/lock.py is released twice.",
        """The root cause is that the lock in src/store/lock.py is released twice.
        Root cause: the lock in src/store/lock.py gets released two times.
        The lock in src/store/lock.py is released twice, which is the root cause.""",
        """Root cause: the lock in src/store/lock.py is never released.
        Root cause: the lock in src/store/block.py is released twice.
        Root cause: the lock in src/store/lock.py is released once.
        Root cause: the lock in src/store/lock.py is acquired twice.
        Suspected cause: the lock in src/store/lock.py is released twice.""",
    ),
    fact(
        "The staging password was rotated by Kim after the incident.",
        """After the incident, the staging password was rotated by Kim.
        Kim rotated the staging password after the incident.
        Kim has rotated the staging password after the incident.
        After the incident Kim rotated the password for staging.""",
        """The staging password was rotated by Kim before the incident.
        The staging password was rotated by Sam after the incident.
        The production password was rotated by Kim after the incident.
        The staging password will be rotated by Kim after the incident.
        The staging password was not rotated by Kim after the incident.
        The staging password must be rotated by Kim after the incident.""",
    ),
    fact(
        "The container image is built from commit 9f8e7d6c and tagged web:1.8.0.",
        """The container image is built from commit 9f8e7d6c and is tagged web:1.8.0.
        From commit 9f8e7d6c the container image is built and tagged web:1.8.0.
        The container image tagged web:1.8.0 is built from commit 9f8e7d6c.""",
        """The container image is built from commit 9f8e7d6d and tagged web:1.8.0.
        The container image is built from commit 9f8e7d6c and tagged web:1.8.1.
        The container image will be built from commit 9f8e7d6c and tagged web:1.8.0.
        The container image is built from commit 9f8e7d6c.
        The container image is not built from commit 9f8e7d6c and tagged web:1.8.0.""",
    ),
    fact(
        "The user prefers short answers without bullet points.",
        """Short answers without bullet points are preferred by the user.
        The user prefers short answers with no bullet points.
        The user prefers brief answers without bullet points.""",
        """The user prefers short answers with bullet points.
        The user prefers long answers without bullet points.
        The user accepts short answers without bullet points.
        The user demands short answers without bullet points.
        The user does not prefer short answers without bullet points.
        The agent prefers short answers without bullet points.""",
    ),
    fact(
        "The vendor granted us a discount of 15 % until the end of the year.",
        """A discount of 15 % until the end of the year was granted to us by the vendor.
        The vendor has granted us a discount of 15 % until the end of the year.
        Until the end of the year, the vendor granted us a discount of 15 percent.
        We have a discount of 15 % from the vendor until the end of the year.""",
        """The vendor granted us a discount of 50 % until the end of the year.
        The vendor granted us a discount of 15 % after the end of the year.
        The vendor will grant us a discount of 15 % until the end of the year.
        We granted the vendor a discount of 15 % until the end of the year.
        The vendor granted us a discount of 15 $ until the end of the year.
        The vendor offered us a discount of 15 % until the end of the year.""",
    ),
)
