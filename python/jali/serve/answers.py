"""What a service says to a client whose request has no result."""

from __future__ import annotations

import math

from jali.serve.holding import Answer
from jali.serve.policy import decisions
from jali.serve.refusal import Refusal

__all__ = [
    "cancelled",
    "failed",
    "no_room",
    "of_answer",
    "refused",
    "replaced",
    "retry_after",
    "stopped",
    "unknown",
]

_SOON = 1.0
#: Errors that say what is wrong with the bytes of a request.
_CLIENTS = {
    "corrupt_data",
    "invalid_argument",
    "key_mismatch",
    "limit_exceeded",
    "params_mismatch",
    "range_exceeded",
    "scale_mismatch",
    "version",
}

_REFUSED: dict[decisions.Refusal, tuple[int, str]] = {
    "too_large": (413, "the request is larger than what this service takes: send fewer examples"),
    "client": (429, "you have many requests that wait: send more once they are answered"),
    "full": (503, "the service has as many requests as it can answer: try again"),
    "deadline": (504, "the deadline cannot be met: give the request more time, or try again later"),
    "no_worker": (503, "no worker is ready that has this program: try again"),
    "keys": (428, "there are no such keys: send them first"),
    "poison": (500, "these keys ended workers of the service: make and send others"),
    "draining": (503, "the service is about to end: try again"),
}
_FAILED: dict[decisions.Failure, tuple[int, str]] = {
    "body": (408, "the request did not come in time: send it again"),
    "deadline": (504, "the deadline could not be met: give the request more time"),
    "patience": (503, "the request waited for too long: try again later"),
    "keys": (428, "the keys are not there any more: send them again"),
    "poison": (500, "the request ended workers of the service: do not send it again"),
    "attempts": (503, "workers of the service ended again and again: try again later"),
    "error": (500, "the run failed: tell the operator of this service"),
}


def retry_after(seconds: float) -> dict[str, str]:
    """The field of an answer that says in how many seconds to try again."""
    return {"Retry-After": str(max(1, math.ceil(seconds)))}


def refused(reason: decisions.Refusal, seconds: float | None) -> Refusal:
    """The answer to a request that is not admitted.

    reason: why.
    seconds: after which it may be; None: never by itself.

    >>> from jali.serve.answers import refused
    >>> refused("full", 2.5).status, refused("full", 2.5).headers
    (503, {'Retry-After': '3'})
    """
    status, sentence = _REFUSED[reason]
    if seconds is None and reason == "draining":
        seconds = _SOON
    headers = {} if seconds is None else retry_after(seconds)
    return Refusal(sentence, status, reason.replace("_", "-"), headers=headers)


def failed(reason: decisions.Failure, answer: Answer | None) -> Refusal:
    """The answer to an admitted request that has no result.

    reason: why.
    answer: what the worker said of it, or of its keys, if it did.
    """
    if answer is not None and reason == "error":
        return of_answer(answer)
    if answer is not None and reason == "keys":
        if answer.code == "out_of_memory":
            return of_answer(answer)
        return Refusal(
            "your keys in the store cannot be used: delete them, and send them again",
            428,
            "keys",
            members={"code": answer.code},
        )
    status, sentence = _FAILED[reason]
    headers = retry_after(_SOON) if status == 503 else {}
    return Refusal(sentence, status, reason, headers=headers)


def of_answer(answer: Answer) -> Refusal:
    """An error of a worker, as an answer."""
    members = {"code": answer.code}
    if answer.code in _CLIENTS:
        return Refusal(answer.text, 422, "request", members=members)
    if answer.code == "deadline":
        return failed("deadline", None)
    if answer.code == "out_of_memory":
        return Refusal(
            "the device has too little memory for this request: send fewer examples, or try again later",
            503,
            "memory",
            headers=retry_after(10.0),
            members=members,
        )
    return Refusal(answer.text, 500, "error", members=members)


def unknown() -> Refusal:
    """The answer to a request for a program that there is not."""
    return Refusal("this program is not served: list the programs again", 404, "no-program")


def replaced() -> Refusal:
    """The answer to a request for a program that was replaced."""
    return Refusal(
        "this program was replaced: fetch the manifest of the new one, and make keys of it",
        410,
        "replaced",
    )


def no_room() -> Refusal:
    """The answer to a request whose keys are larger than what any device has for keys."""
    return Refusal(
        "no device of this service can hold keys of this program: tell its operator", 503, "room"
    )


def cancelled() -> Refusal:
    """The answer to whoever waits for a request that was cancelled elsewhere."""
    return Refusal("the request was cancelled", 409, "cancelled")


def stopped() -> Refusal:
    """The answer to a request that waits when the service ends."""
    return refused("draining", _SOON)
