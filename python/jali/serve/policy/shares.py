"""What a client may have in comparison with others: its turn, and its part of a bound."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Account", "excess"]


def excess(own: float, total: float, more: float, bound: float) -> float:
    """By how much a client would have too much of something bounded; 0 or less if it may have it.

    It may have more if it has no more yet than stays free then: own <= bound - (total + more). So n
    clients that ask without end get 1 / (n + 1) of the bound each, and the same is left for the
    next one that comes. A client that has nothing may have all that is free.

    own: what the client has.
    total: what all have, with this client.
    more: what it asks for.

    >>> excess(0, 0, 10, 10), excess(5, 5, 1, 10), excess(0, 5, 5, 10)
    (0, 1, 0)
    """
    return own + total + more - bound


@dataclass(slots=True)
class Account:
    """What a client has admitted and not answered, and how much it was served.

    weight: its share in comparison with those of others.
    tag: its virtual time: seconds on devices by weight, no earlier than that of the service when
        its last waiting began.
    waiting: how many of its requests may be computed and are not.
    requests, nbytes, seconds: of what is admitted and not answered.
    """

    name: str
    weight: float = 1.0
    tag: float = 0.0
    waiting: int = 0
    requests: int = 0
    nbytes: int = 0
    seconds: float = 0.0
