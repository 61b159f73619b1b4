"""Law: a secret is found by its form, its place or a user's pattern; placeholders, words and code are none (C12)."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import strandline
from strandline.rules.secrets import BUILT_IN, MARK, Secrets
from tests.unit.test_engine_stage import bounded

# Made up for these tests; each has the form of a real one and opens nothing.
GITHUB = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2"
OPENAI = "sk-proj-" + "abcDEF123456789abcDEF123456789"
AWS = "AKIA" + "Q3X7M2N8P5R1T6W9"
JWT = "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxMjM0In0" + ".SflKxwRJSMeKKF2QT4fw"
KEY = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow1abc\nxyz0/+==\n-----END RSA PRIVATE KEY-----"
HEX = "0123456789abcdef0123456789abcdef"

FOUND = [
    (f"the key is {OPENAI}.", OPENAI, "api-key"),
    (f"export GH={GITHUB}", GITHUB, "token"),
    (f"({AWS})", AWS, "api-key"),
    (f"t={JWT};", JWT, "jwt"),
    (f"before {KEY} after", KEY, "private-key"),
    ("xoxb-123456789012-abcdefABCDEF", "xoxb-123456789012-abcdefABCDEF", "token"),
    ("ya29.a0AfH6SMBx1234567890abcdefg", "ya29.a0AfH6SMBx1234567890abcdefg", "token"),
    ("GOCSPX-a1B2c3D4e5F6g7H8i9J0k1L2", "GOCSPX-a1B2c3D4e5F6g7H8i9J0k1L2", "token"),
    (f"dop_v1_{HEX}{HEX}", f"dop_v1_{HEX}{HEX}", "token"),
    (f"shpat_{HEX}", f"shpat_{HEX}", "token"),
    (f"whsec_{HEX}", f"whsec_{HEX}", "api-key"),
    (
        "to https://hooks.slack.com/services/T0123ABCD/B0123ABCD/abcdEFGHijklMNOPqrst1234 please",
        "hooks.slack.com/services/T0123ABCD/B0123ABCD/abcdEFGHijklMNOPqrst1234",
        "token",
    ),
    ("password=hunter2x", "hunter2x", "password"),
    ('DB_PASSWORD: "two w0rds"', "two w0rds", "password"),
    ("my password is hunter2x, thanks", "hunter2x", "password"),
    ("postgres://app:hunter2@db:5432/x", "hunter2", "password"),
    ("amqp://:p%40ss-1@mq/", "p%40ss-1", "password"),
    ("Authorization: Bearer abcdef0123456789ABCDEF", "abcdef0123456789ABCDEF", "token"),
    ("curl -H 'authorization: Basic dXNlcjpwYXNzdzByZA=='", "dXNlcjpwYXNzdzByZA==", "token"),
    ("Set-Cookie: sid=abcd1234efgh; Path=/", "abcd1234efgh", "cookie"),
    (f'{{"api_key": "{HEX}"}}', HEX, "api-key"),
    (f'{{\\"client_secret\\": \\"{HEX}\\"}}', HEX, "token"),
    (f"AWS_SECRET_ACCESS_KEY={HEX}", HEX, "token"),
    (f"https://x.example/b?sig={HEX}&v=1", HEX, "token"),
    (f"AccountKey={HEX}==;EndpointSuffix=core", f"{HEX}==", "api-key"),
    ("mysqldump --password hunter2x shop", "hunter2x", "password"),
    (f"deploy --api-token '{HEX}' --now", HEX, "token"),
    (f"VAULT_SECRET_ID={HEX}", HEX, "token"),
]
NONE = [
    "the token count is 1234567890123456",
    "input_tokens=1234567890123456, output_tokens=12",
    "token: str = field(default_factory=new_token)",
    "password = os.environ['DB_PASSWORD']",
    "password=$DB_PASSWORD token=${GITHUB_TOKEN} secret=<your-secret> api_key=xxxxxxxxxxxxxxxx1",
    'password: "REDACTED-password"',
    "next_token=abcdef0123456789abcdef&page_token=abcdef0123456789abcdef",
    "a task-abcDEF123456789012345678 in the risk-register-2024-01-01-ABC123DEF",
    "https://user@host.example/path and git@github.com:acme/app.git",
    "postgres://app:$PGPASSWORD@db:5432/x",
    "the cookie: a thing with = signs",
    "primary key: 0123456789abcdef0123456789abcdef",
    f"commit {HEX}, run 7f3a9c1e-0000-4000-8000-000000000000",
    "getSecret(name) -> Secret; token.value; credentials: boto3.Session",
    "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----",
    "PWD=/home/dev/shop-2 OLDPWD=/srv/app2 password_file=/run/secrets/db-1",
    f'{{"private_key_id": "{HEX}", "token_id": "{HEX}", "tokenIds": "{HEX}", "token_address": "0x{HEX}"}}',
    "secret_arn=arn:aws:secretsmanager:us-east-1:123456789012:secret:prod/db-AbC123",
    "tokenizer: cl100k_base_v2 token_endpoint=https://auth.example.com/oauth2/v1/token",
    "docker login --password-stdin registry-2.example.com && run --token --verbose-output2024",
]


@pytest.mark.parametrize(("text", "value", "kind"), FOUND, ids=[row[2] + str(i) for i, row in enumerate(FOUND)])
def test_what_is_a_secret(text: str, value: str, kind: str):
    (secret,) = BUILT_IN.find(text)
    assert (text[secret.start : secret.end], secret.kind) == (value, kind)
    assert BUILT_IN.redact(text) == text.replace(value, MARK + kind)


@pytest.mark.parametrize("text", NONE)
def test_what_is_none(text: str):
    assert BUILT_IN.find(text) == []
    assert BUILT_IN.redact(text) is text


pieces = st.lists(
    st.one_of(st.sampled_from([row[0] for row in FOUND] + NONE), st.text(max_size=20), st.sampled_from(" \n\"':=&@,")),
    max_size=6,
).map(" ".join)


@given(pieces)
@bounded(400)
def test_a_redacted_text_holds_no_secret_and_stays_as_it_is(text: str):
    """Idempotent, in order, apart, and every other character as it was."""
    found = BUILT_IN.find(text)
    assert all(a.end <= b.start for a, b in itertools.pairwise(found))
    shown = BUILT_IN.redact(text)
    ends, begins = [0, *(secret.end for secret in found)], [*(secret.start for secret in found), len(text)]
    at = 0
    for end, begin in zip(ends, begins, strict=True):
        kept = text[end:begin]
        at = shown.index(kept, at) + len(kept)
    assert BUILT_IN.redact(shown) == shown


@pytest.mark.parametrize(("text", "value", "kind"), FOUND[:6], ids=[row[2] for row in FOUND[:6]])
def test_json_is_judged_leaf_by_leaf_and_by_its_keys(text: str, value: str, kind: str):
    payload = {"a": [text, 1, None, {"password": "hunter2x", "note": "hello"}], "token": "short"}
    shown = BUILT_IN.redact_json(payload)
    assert value not in json.dumps(shown) or "\n" in value
    assert shown["a"][3] == {"password": MARK + "password", "note": "hello"}
    assert shown["token"] == "short"
    clean = {"a": [1, "x", {"b": "c"}]}
    assert BUILT_IN.redact_json(clean) is clean


def test_a_user_takes_kinds_away_and_adds_patterns():
    rules = strandline.ReferenceRules(off={"cookie"}, secrets={"badge": "B-[0-9]{6}"})
    references = strandline.client.patterns.references_with(rules)
    assert references.secrets.redact("Cookie: sid=abcd1234efgh; badge B-123456") == (
        "Cookie: sid=abcd1234efgh; badge REDACTED-badge"
    )
    assert "REDACTED-badge" in references.of_text("badge B-123456")
    assert strandline.ReferenceRules(secrets={"badge": "x"}).extractor != strandline.ReferenceRules().extractor
    with pytest.raises(strandline.InvalidInputError, match="no name"):
        strandline.ReferenceRules(secrets={"": "x"})
    with pytest.raises(strandline.InvalidInputError, match="no class"):
        strandline.ReferenceRules(off={"biscuit"})


def test_a_key_whose_end_is_cut_off_is_hidden_as_far_as_it_goes():
    text = "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEI1234567\nabcd+/=="
    assert BUILT_IN.redact(f"see {text}") == f"see {MARK}private-key"


@pytest.mark.parametrize(
    "hostile",
    [
        "a" * 200_000,
        "password=" * 20_000,
        "eyJ" * 60_000,
        "://a:" * 40_000,
        "-----BEGIN PRIVATE KEY-----" * 5_000,
        'token: \\\\"' * 20_000,
        "cookie:a=" * 20_000,
        "sk-" + "a-" * 90_000,
        "=" * 200_000,
    ],
)
def test_hostile_text_ends(hostile: str):
    """Every repetition is bounded: unbounded ones take minutes for these, which the run's own timeout ends."""
    assert BUILT_IN.redact(BUILT_IN.redact(hostile)) == BUILT_IN.redact(hostile)


def test_the_rules_of_a_store_are_its_own():
    assert Secrets(off={"password"}).find("password=hunter2x") == []
