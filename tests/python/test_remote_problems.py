"""What servers say becomes errors of the library, and addresses that leak are refused."""

from __future__ import annotations

import copy
import email.utils
import pickle
import time
from typing import Any

import pytest

import jali
from jali.errors import Error
from jali.remote import AccessDenied, BadAnswer, ProgramReplaced, ServiceError, Unavailable
from jali.remote.address import address_of
from jali.remote.deadline import checked_seconds
from jali.remote.problems import Problem, error_of, problem_of, said
from jali.remote.repeats import is_repeated, pause

DOCUMENT = {"content-type": "application/problem+json; charset=utf-8"}


@pytest.mark.parametrize(
    ("status", "kind", "wanted"),
    [
        (400, "header", ServiceError),
        (401, "unauthenticated", AccessDenied),
        (403, "forbidden", AccessDenied),
        (404, "no-program", ServiceError),
        (410, "program-retired", ProgramReplaced),
        (413, "wrong-length", jali.LimitExceeded),
        (421, "host", AccessDenied),
        (422, "corrupt_data", jali.CorruptData),
        (422, "params_mismatch", jali.ParamsMismatch),
        (422, "internal", ServiceError),  # no report of a bug of this side
        (422, "idempotency-key", ServiceError),
        (428, "no-keys", jali.KeyMissing),
        (429, "client", Unavailable),
        (500, "poison", ServiceError),
        (502, "", Unavailable),
        (503, "full", Unavailable),
        (504, "deadline", jali.DeadlineExceeded),
        (507, "quota", jali.LimitExceeded),
        (302, "", BadAnswer),
    ],
)
def test_each_answer_is_an_error(status: int, kind: str, wanted: type[Error]) -> None:
    content = b'{"type": "tag:jali,2026:%b", "status": 1, "detail": "change it"}' % kind.encode()
    headers = DOCUMENT if kind else {"content-type": "text/html"}
    problem = problem_of(status, headers, content)
    assert (problem.status, problem.kind) == (status, kind)
    error = error_of(problem)
    assert type(error) is wanted
    said_there = 'The server said: "change it"' in str(error)
    assert said_there == (bool(kind) and status != 302)
    if isinstance(error, ServiceError):
        assert (error.status, error.kind) == (status, kind)
    for same in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert (type(same), str(same), vars(same)) == (wanted, str(error), vars(error))


def test_sentences_of_servers_are_cleaned_and_cut() -> None:
    hostile = 'a\x1b[31m\r\nb\u202e"c" \x00' + "x" * 10**6
    detail = problem_of(400, DOCUMENT, b'{"type": "", "detail": %b}' % _json(hostile)).detail
    assert detail.isprintable() and len(detail) == 300 and '"' not in detail
    assert said("short") == "short" and said("x" * 300) == "x" * 300
    error = str(error_of(Problem(500, "internal", detail)))
    assert error.isprintable() and len(error) < 500


def _json(text: str) -> bytes:
    import json

    return json.dumps(text).encode()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"type": 5, "detail": [1]}',
        b"[" * 60000,
        b"\xff",
        b'{"a": 1e999}',
    ],
)
def test_documents_that_are_none_say_nothing(content: bytes) -> None:
    problem = problem_of(500, DOCUMENT, content)
    assert problem.detail == "" and type(error_of(problem)) is ServiceError


def test_a_replaced_program_says_what_to_do() -> None:
    now = ["a" * 64, "b" * 64, "no fingerprint", 7]
    problem = Problem(410, "replaced", "get the manifest", {"replaced_by": now})
    error = error_of(problem, "digits")
    assert isinstance(error, ProgramReplaced) and error.replaced_by == ("a" * 64, "b" * 64)
    assert "digits is not served any more: make a new Remote" in str(error)
    assert "keys()" in str(error) and "nothing else" in str(error)
    assert error_of(Problem(410, "x", "", {"replaced_by": {}})).replaced_by == ()  # type: ignore[attr-defined]


def test_room_is_told() -> None:
    error = error_of(Problem(507, "quota", "no room", {"bytes-left": 3 << 20}))
    assert "3.0 MiB are left" in str(error) and "delete_keys()" in str(error)
    assert "try again later" in str(error_of(Problem(507, "store-full")))


def test_what_is_repeated() -> None:
    again = [s for s in range(200, 600) if is_repeated(Problem(s, "kind"))]
    assert again == [408, 429, 502, 503]
    assert is_repeated(Problem(504)) and not is_repeated(Problem(500))


def test_pauses_grow_and_obey() -> None:
    for count in range(1, 40):
        longest = min(5.0, 0.1 * 2 ** (count - 1))
        assert longest / 2 <= pause(count, {}) <= longest
    assert pause(1, {"retry-after": "30"}) == 30
    soon = email.utils.format_datetime(email.utils.localtime())
    assert pause(1, {"retry-after": soon}) <= 1
    later = email.utils.formatdate(time.time() + 100, usegmt=True)
    assert 90 < pause(1, {"retry-after": later}) <= 100
    for bad in ("-5", "nan", "1e9", "", "9" * 400, "Mon, 99 Foo", "\x00"):
        assert pause(1, {"retry-after": bad}) <= 0.1


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("fhe.example", "such as"),
        ("ftp://fhe.example", "such as"),
        ("https://", "such as"),
        ("https://fhe.example:port", "such as"),
        ("https://fhe\n.example", "such as"),
        ("https://[::1", "such as"),
        ("http://fhe.example", "insecure_http=True"),
        ("http://127.0.0.1.example", "insecure_http=True"),
        ("https://fhe.example?x=1", "path"),
        ("https://fhe.example/a/../b", "path"),
        ("https://fhe.example/%2e%2e", "path"),
        ("https://alice:hunter2@fhe.example", "token="),
        (7, "text"),
    ],
)
def test_addresses_that_are_refused(url: Any, why: str) -> None:
    with pytest.raises(jali.InvalidArgument, match=why) as caught:
        address_of(url, insecure_http=False)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "path", "local"),
    [
        ("https://fhe.example", "https://fhe.example/v1", False),
        ("https://fhe.example:8443/a/b/", "https://fhe.example:8443/a/b/v1", False),
        ("http://127.0.0.1:8473", "http://127.0.0.1:8473/v1", True),
        ("http://[::1]:8473/", "http://[::1]:8473/v1", True),
        ("http://localhost", "http://localhost/v1", True),
    ],
)
def test_addresses_that_are_taken(url: str, path: str, local: bool) -> None:
    address = address_of(url, insecure_http=False)
    assert (address.of("/v1"), address.is_local) == (path, local)


def test_http_can_be_asked_for() -> None:
    assert address_of("http://fhe.example", insecure_http=True).origin == "http://fhe.example"


@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf"), 86401, "1", None, True, 1j])
def test_times_that_are_refused(value: Any) -> None:
    with pytest.raises(jali.InvalidArgument, match="deadline must be a number of seconds"):
        checked_seconds(value, "deadline")
