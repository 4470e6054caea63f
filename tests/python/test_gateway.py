"""The routes of a service, before a double of what computes."""

from __future__ import annotations

from pathlib import Path

from gateway_world import KEY, reply_to, running
from serve_world import served


def test_a_request_is_answered(tmp_path: Path) -> None:
    with running(tmp_path) as world, world.client() as client:
        fp = served("network").program
        answer = client.post(f"/v1/programs/{fp}/run", content=b"abc", headers={"Jali-Key": KEY})
        assert answer.status_code == 200, answer.text
        assert answer.content == reply_to(b"abc")
        assert answer.headers["Server-Timing"] == "queue;dur=1.0, load;dur=0.0, compute;dur=250.0"
        print(answer.headers)
