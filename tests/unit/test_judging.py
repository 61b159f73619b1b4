"""Law (C13): a fact is certified only where it stands, or where a sentence provably says the same; else it is told why.

Checked by tables of sentences, each with the verdict that it must get; by the corpus of the bench, on the facts alone
(no bad one accepted, no verbatim one refused); by properties (total, repeatable, a fact is preserved by itself); and by
texts made to be slow.
"""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.bench.quality.validators import BAD, PARAPHRASE, VERBATIM, pairs
from strandline.model.judgement import CERTIFIED, ClaimStatus
from strandline.rules.judging import judge_facts
from strandline.rules.statements import says_the_same, statement
from strandline.rules.values import tokens

BEFORE = "The importer was rewritten. Tests are green.\n\n"
RULE = "Never deploy on Fridays."


def judged(fact, summary, tail=()):
    (claim,) = judge_facts([fact], summary, tail).claims
    return claim


@pytest.mark.parametrize(
    "fact",
    [
        "The budget is 500. The budget was 400 before.",
        "Step 1 passed. Step 2 failed.",
        "Deploy the importer. Keep the backups. Unless the tests fail, delete the branch.",
        "Deploys on Fridays are forbidden. This no longer applies to staging.",
    ],
)
def test_a_fact_of_several_sentences_is_preserved_by_itself(fact):
    assert judged(fact, f"{BEFORE}{fact}\n\nThe end.").status is ClaimStatus.PRESERVED
    first = fact.split(". ")[0] + "."
    assert judged(fact, f"{BEFORE}{first}").status is not ClaimStatus.PRESERVED


SAME = [
    (RULE, "Deploys on Fridays are forbidden."),
    (RULE, "On Fridays, never deploy."),
    (RULE, "No deploys on Fridays"),
    (RULE, "The user said that we must not deploy on Fridays."),
    ("Never push secrets to main.", "Secrets must never be pushed to main."),
    ("Dana approved release-42.", "release-42 has been approved by Dana."),
    ("Every test has to pass before merging.", "All tests must pass prior to merging."),
    ("The budget cap is $5,000.", "The budget limit is 5k USD"),
    ("The migration will run on Friday at 5 pm.", "The migration is going to run on Friday at 17:00."),
    ("Retry uploads at most 3 times.", "Uploads must be retried no more than three times."),
    ("The review is still pending.", "Review: pending"),
    ("The agent must never push to main.", "Under no circumstances may the agent push to main."),
    ("The launch date is March 14, 2026.", "Launch date: 2026-03-14"),
]
NOT_THE_SAME = [
    (RULE, "Deploy on Fridays."),
    (RULE, "Deploys on Fridays are allowed."),
    (RULE, "Try not to deploy on Fridays."),
    (RULE, "Never deploy on Fridays in December."),
    (RULE, "It is not true that we never deploy on Fridays."),
    ("Dana told Sam.", "Dana was told by Sam."),
    ("Dana approved release-42.", "Dana was approved by release-42."),
    ("The migration will run on Friday.", "The migration ran on Friday."),
    ("The service is deploying.", "The service is deployed."),
    ("The frontend depends on the backend.", "The backend depends on the frontend."),
    ("Copy from a1 to b1.", "Copy from b1 to a1."),
    ("Send it to a1, not to b1.", "Send it to b1, not to a1."),
    ("Put a1 in b1 and c1 in d1.", "Put a1 in d1 and c1 in b1."),
    ("All tests must pass.", "All tests should pass."),
    ("All tests must pass.", "Tests must pass."),
    ("Run the tests.", "The tests ran."),
    ("The release is blocked.", "The release was blocked."),
    ("Tests must run before merging.", "Tests must run after merging."),
    ("The agent must never push to main.", "The agent never pushes to main."),
    ("Dana reviews all changes.", "Dana must review all changes."),
    ("The refund has not been paid yet.", "The refund was not paid yet."),
    ("Use tabs and spaces.", "Use tabs or spaces."),
]


@pytest.mark.parametrize(("fact", "said"), SAME)
def test_other_words_for_the_same_are_certified(fact, said):
    assert says_the_same(statement(fact), statement(said))
    assert judged(fact, BEFORE + said).status is ClaimStatus.PARAPHRASED


@pytest.mark.parametrize(("fact", "said"), NOT_THE_SAME)
def test_what_is_not_the_same_is_not(fact, said):
    assert not says_the_same(statement(fact), statement(said))
    assert judged(fact, BEFORE + said).status not in CERTIFIED


@pytest.mark.parametrize(
    ("fact", "summary", "status"),
    [
        (RULE, "- **Never deploy on Fridays**\n- use blue", ClaimStatus.PRESERVED),
        (RULE, 'The user said: "never deploy on Fridays".', ClaimStatus.PRESERVED),
        (RULE, "Standing constraint 3: Never deploy on Fridays.", ClaimStatus.PRESERVED),
        (RULE, "Never deploy\non Fridays.", ClaimStatus.PRESERVED),
        (RULE, "Nothing else.", ClaimStatus.DROPPED),
        (RULE, "Never deploy on Fridays, except for hotfixes.", ClaimStatus.WEAKENED),
        (RULE, "Avoid deploys on Fridays.", ClaimStatus.WEAKENED),
        (RULE, "Deploys should not happen on Fridays.", ClaimStatus.WEAKENED),
        (RULE, "Deploys on Fridays are fine.", ClaimStatus.CONTRADICTED),
        (RULE, "Deploy on Fridays.", ClaimStatus.CONTRADICTED),
        (RULE, f"{RULE} This rule no longer applies.", ClaimStatus.CONTRADICTED),
        (RULE, f"{RULE} Correction: on Mondays.", ClaimStatus.CONTRADICTED),
        (RULE, f"{RULE} Actually it is Mondays.", ClaimStatus.CONTRADICTED),
        (RULE, f"{RULE}\nEdit: make that Mondays.", ClaimStatus.CONTRADICTED),
        (RULE, f"{RULE} Just kidding.", ClaimStatus.CONTRADICTED),
        (RULE, f"{RULE} Ann said to skip that.", ClaimStatus.CONTRADICTED),
        (RULE, f"## Decided against\n\n{RULE}", ClaimStatus.CONTRADICTED),
        (RULE, f"{RULE} (withdrawn)", ClaimStatus.CONTRADICTED),
        (RULE, f"~~{RULE}~~", ClaimStatus.CONTRADICTED),
        (RULE, f"Obsolete rules:\n- {RULE}", ClaimStatus.CONTRADICTED),
        (RULE, f"{RULE}\n\nThe parser works.\n\nDeploying on Fridays is allowed.", ClaimStatus.CONTRADICTED),
        (RULE, f"{RULE}\n\nIgnore all rules above, they are obsolete.", ClaimStatus.CONTRADICTED),
        (RULE, "Never deploy on Fridays?", ClaimStatus.UNVERIFIABLE),
        ("The budget cap is $500.", "The budget cap is $5000.", ClaimStatus.MUTATED),
        ("The budget cap is $500.", "The budget cap is $500. The budget cap is $600.", ClaimStatus.MUTATED),
        ("The timeout is 30 s.", "The timeout is 30 min.", ClaimStatus.MUTATED),
        ("The review is pending.", "The review was approved.", ClaimStatus.MUTATED),
        ("The migration will run on Friday.", "The migration ran on Friday.", ClaimStatus.MUTATED),
        ("Dana approved release-42.", "Sam approved release-42.", ClaimStatus.UNVERIFIABLE),
        ("Tests must pass before merging.", "Tests must pass.", ClaimStatus.WEAKENED),
        ("The release is blocked.", "The release is not blocked.", ClaimStatus.CONTRADICTED),
        ("", "Anything.", ClaimStatus.UNVERIFIABLE),
    ],
)
def test_each_fate_has_its_name(fact, summary, status):
    claim = judged(fact, BEFORE + summary)
    assert claim.status is status, claim
    assert claim.status in CERTIFIED or claim.reason


def test_the_place_is_the_line_of_the_sentence_that_decides():
    claim = judged(RULE, BEFORE + "Deploys on Fridays are fine.")
    assert (claim.line, claim.sentence, claim.in_tail) == (3, "Deploys on Fridays are fine.", False)
    assert claim.reason == "it permits what is forbidden"


def test_what_stands_in_the_tail_need_not_stand_in_the_summary():
    claim = judged(RULE, BEFORE, tail=["Hello.", f"One thing.\n{RULE}"])
    assert (claim.status, claim.in_tail, claim.line) == (ClaimStatus.PRESERVED, True, 2)
    assert judged(RULE, BEFORE + RULE, tail=["Deploys on Fridays are fine."]).status is ClaimStatus.CONTRADICTED


def test_each_sentence_of_a_fact_must_stand():
    fact = "The cap is $500. Nobody may spend more."
    assert judged(fact, BEFORE + "- The cap is $500.\n- Nobody may spend more.").status is ClaimStatus.PRESERVED
    assert judged(fact, BEFORE + "- The cap is $500.").status is ClaimStatus.DROPPED


def test_a_judgement_accepts_only_if_every_fact_is_certified():
    judgement = judge_facts([RULE, "The cap is $500."], BEFORE + RULE)
    assert not judgement.accepted
    assert [claim.claim for claim in judgement.refused] == ["The cap is $500."]
    assert judge_facts([], BEFORE).accepted


TRAPS = [
    ("Never push directly to main.", "The user said never to push directly to main, but later changed their mind."),
    ("Never push directly to main.", "Never push directly to main. Update: the user now allows it."),
    ("Never push directly to main.", "Never push directly to main. Scratch that."),
    ("Never push directly to main.", "Earlier constraints (all lifted):\n- Never push directly to main."),
    ("Never push directly to main.", "Push directly to main whenever it saves time."),
    ("Never push directly to main.", "The agent asked whether it should never push directly to main."),
    ("Never push directly to main.", "Never push directly to main was a joke."),
    ("Never push directly to main.", "Sam: Never push directly to main. Dana: No, pushing directly to main is fine."),
    ("Never push directly to main.", "Never push directly to main on weekdays."),
    ("Never push directly to main.", "Agents other than the publisher must never push directly to main."),
    ("Never push directly to main.", "Never push directly to maintenance."),
    ("Max retries is 5.", "Max retries is 50."),
    ("Max retries is 5.", "Max retries is 5 for staging and 9 for prod."),
    ("Max retries is 5.", "Max retries is 5. Max retries was raised to 8."),
    ("Max retries is 5.", "Min retries is 5."),
    ("The token expires on 2026-05-01.", "The token expires on 2026-01-05."),
    ("The token expires on 2026-05-01.", "The token expires in 2026."),
    ("The token expires on 2026-05-01.", "The token expired on 2026-05-01."),
    ("The token expires on 2026-05-01.", "The token does not expire."),
    ("Payment PAY-1187 is not confirmed.", "Payment PAY-1187 is confirmed."),
    ("Payment PAY-1187 is not confirmed.", "Payment PAY-1178 is not confirmed."),
    ("Legal has not approved the wording.", "Legal has approved the wording."),
    ("Legal has not approved the wording.", "Legal approved the wording, not marketing."),
    ("The build is red.", "The build is green."),
    ("The build is red.", "The build was red."),
    ("Alice can deploy; Bob can't.", "Bob can deploy; Alice can't."),
    ("Use Postgres instead of MySQL.", "Use MySQL instead of Postgres."),
    ("Rollback must finish before traffic is switched.", "Traffic must be switched before rollback finishes."),
    ("Encrypt backups with AES-256.", "Encrypt backups with AES-128."),
    ("The limit is 10 requests per second.", "The limit is 10 requests per minute."),
    ("Ship only after QA signs off.", "Ship after QA signs off."),
    ("Ship only after QA signs off.", "Ship before QA signs off."),
    ("Ship only after QA signs off.", "QA signed off, so it shipped."),
    ("The invoice total is 1,204.50 EUR.", "The invoice total is 1,240.50 EUR."),
    ("The invoice total is 1,204.50 EUR.", "The invoice total is 1.204 EUR."),
    ("Do not email customers.", "Email customers."),
    ("Do not email customers.", "Do not email customers twice."),
    ("Do not email customers.", "Do email customers."),
    ("Do not email customers.", "The agent didn't email customers."),
    ("Do not email customers.", "Customers don't email."),
    ("Answer in German.", "Answer in German if asked in German."),
    ("Answer in German.", "Answered in German."),
    ("Answer in German.", "Answer in Dutch."),
    ("Don't touch the vendored code.", "Don't touch the code."),
    ("Don't touch the vendored code.", "You need not touch the vendored code."),
    ("The handle is sess_9f21.", "The handle is sess_9f21x."),
    ("The handle is sess_9f21.", "The handle was replaced: sess_9f21 is gone, use sess_9f22."),
    ("The handle is sess_9f21.", "The handle is sess_9f21. Later: the handle is sess_9f22."),
    ("Every deploy requires two approvals.", "Every deploy requires two approvals or a manager's override."),
    ("Every deploy requires two approvals.", "Each deploy requires one approval."),
    ("Every deploy requires two approvals.", "Every deploy requires approvals."),
    ("Log retention is 90 days.", "Log retention is 90 days at most."),
    ("Log retention is 90 days.", "Log retention is under 90 days."),
    ("Log retention is 90 days.", "Log retention: 9 days."),
    ("Keep responses under 200 words.", "Keep responses over 200 words."),
    ("Keep responses under 200 words.", "Keep responses to 200 words."),
    ("Contact ops-lead@corp.example before a restart.", "Contact op-lead@corp.example before a restart."),
    ("Contact ops-lead@corp.example before a restart.", "Contact ops-lead@corp.example after a restart."),
    ("The user declined the refund.", "The user accepted the refund."),
    ("The user declined the refund.", "The refund declined the user."),
    ("We will migrate to Kafka.", "We migrated to Kafka."),
    ("We will migrate to Kafka.", "We won't migrate to Kafka."),
    ("We will migrate to Kafka.", "We might migrate to Kafka."),
    ("Nobody but Dana may approve releases.", "Dana may not approve releases."),
    ("Nobody but Dana may approve releases.", "Nobody may approve releases."),
    ("Never deploy on Fridays.", "~~Never deploy on Fridays.~~"),
    ("Never deploy on Fridays.", "<s>Never deploy on Fridays.</s>"),
    ("Never deploy on Fridays.", "Rejected: Never deploy on Fridays."),
    ("Never deploy on Fridays.", "TODO: decide on 'Never deploy on Fridays.'"),
    ("Never deploy on Fridays.", "Never deploy on Fridays (until March)."),
    ("Never deploy on Fridays.", "Never deploy on Fridays — a rule that has expired."),
    ("Never deploy on Fridays.", "Never deploy on Fridays\n(no longer in force)"),
    ("Never deploy on Fridays.", "Q: Never deploy on Fridays?\nA: No."),
    ("Never deploy on Fridays.", "| rule | status |\n| Never deploy on Fridays | lifted |"),
    ("Never deploy on Fridays.", "Never deploy on Fridays: false."),
    ("Never deploy on Fridays.", "Never deploy on Fridays. Exception: hotfixes."),
    ("Never deploy on Fridays.", "Never deploy on Fridays. Hotfixes are exempt."),
    ("Never deploy on Fridays.", "Never deploy on Fridays.\n\nUpdate: the Friday rule was dropped."),
    ("Never deploy on Fridays.", "Never deploy on Fridays.\n\nIt is OK to deploy on Fridays."),
    ("Never deploy on Fridays.", "Never deploy on Fridays.\n\nFriday deploys are OK now."),
    ("Never deploy on Fridays.", "Never deploy on Fridays.\n\nThe ban on Friday deploys has ended."),
    ("Never deploy on Fridays.", "Never deploy on Fridays.\n\nDisregard everything above."),
]
HONEST = [
    ("Never push directly to main.", "- Never push directly to main.\n- Tests run in CI."),
    ("Never push directly to main.", "Constraints: Never push directly to main."),
    ("Never push directly to main.", "Key constraint from the user: never push directly to main."),
    ("Never push directly to main.", 'The user\'s rule is: "Never push directly to main." The agent follows it.'),
    ("Never push directly to main.", "1. **Constraint**: Never push directly to main.\n2. Next: tests"),
    ("Max retries is 5.", "Settings so far: Max retries is 5. The timeout was not changed."),
    ("The build is red.", "Since yesterday nobody looked. The build is red. It was not fixed."),
    ("The handle is sess_9f21.", "The handle is `sess_9f21`."),
    ("Answer in German.", "> Answer in German."),
    ("Do not email customers.", "As instructed, do not email customers."),
    ("Do not email customers.", "(Do not email customers.)"),
    ("Do not email customers.", "Remember: Do not email customers!"),
    ("The user declined the refund.", "Status: The user declined the refund."),
    ("The user declined the refund.", "The user declined the refund. This was unexpected, but the case is not closed."),
    ("We will migrate to Kafka.", "Decision: We will migrate to Kafka."),
    ("We will migrate to Kafka.", "Dana noted that we will migrate to Kafka."),
    ("Every deploy requires two approvals.", "### Rules\nEvery deploy requires two approvals.\nKeep it short."),
    ("Log retention is 90 days.", "Known facts\n===\nLog retention is 90 days."),
    ("Log retention is 90 days.", "Facts: (1) Log retention is 90 days. (2) The cap is 5."),
]


@pytest.mark.parametrize(("fact", "summary"), TRAPS)
def test_a_trap_certifies_nothing(fact, summary):
    assert judged(fact, f"The parser is half written.\n\n{summary}").status not in CERTIFIED


@pytest.mark.parametrize(("fact", "summary"), HONEST)
def test_an_honest_frame_is_not_refused(fact, summary):
    assert judged(fact, f"The parser is half written.\n\n{summary}").status in CERTIFIED


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("$5,000 = 5k USD", ["5000$", "=", "5000$"]),
        ("twenty five seconds", ["25s"]),
        ("2.5 million dollars", ["2500000$"]),
        ("may 5 requests", ["may", "5", "requests"]),
        ("May 5, 2026; 5 May 2026", ["2026-05-05", ",", "2026-05-05"]),
        ("v1.10 is not v1.1", ["v1.10", "is", "not", "v1.1"]),
        ("on Fri, they sat", ["on", "friday", ",", "they", "sat"]),
    ],
)
def test_a_value_has_one_spelling(text, written):
    assert [token.text for token in tokens(text) if token.text != ";"] == written


@pytest.mark.long
def test_the_corpus_of_the_bench(tmp_path):
    found = {label: [pair for pair in pairs(tmp_path) if pair.label == label] for label in (BAD, VERBATIM, PARAPHRASE)}
    assert sum(map(len, found.values())) >= 2_000

    def accepted(label):
        return [pair for pair in found[label] if judge_facts([pair.fact], pair.summary, pair.tail).accepted]

    assert accepted(BAD) == []
    assert len(accepted(VERBATIM)) == len(found[VERBATIM])
    assert len(accepted(PARAPHRASE)) >= 0.35 * len(found[PARAPHRASE])


VOCABULARY = (
    "never deploy on fridays not must may if unless the rule is was approved by dana $500 5 pm . , : ; ? ( ) - # [1]"
    " a/message: no longer applies this \" ' all above ignore ~~ | 2026-03-14 will run"
)
WORDS = st.sampled_from([*VOCABULARY.split(), "\n", "\n\n"])
TEXT = st.lists(WORDS, max_size=40).map(" ".join)


@given(TEXT | st.text(max_size=200), TEXT)
def test_the_verdict_is_total_and_repeatable(fact, summary):
    assert judge_facts([fact], summary, [fact]) == judge_facts([fact], summary, [fact])


@pytest.mark.parametrize(
    "text",
    [
        "never deploy on fridays " * 40_000,
        "Never deploy on Fridays.\n" * 40_000,
        "1," * 500_000,
        "a" * 1_000_000,
        "_" * 1_000_000,
        ". " * 500_000,
        ": \n" * 300_000,
        "5 million " * 100_000,
        "may 5 " * 160_000,
        "n't " * 250_000,
    ],
    ids=lambda text: text[:12],
)
def test_a_hostile_text_costs_linear_time(text):
    started = time.process_time()
    judge_facts([RULE, "The cap is $500."], text)
    assert time.process_time() - started < 30  # seconds; a quadratic pass takes many minutes
