"""The routes of requests that are computed, and of jobs."""

# Annotations are evaluated here, because FastAPI reads them and is imported within functions.

import asyncio
from collections.abc import AsyncIterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Annotated, Any

from jali.serve import fields, seals
from jali.serve.bodies import Body
from jali.serve.gateway import Gateway
from jali.serve.middleware import Call, Gone, call_of
from jali.serve.receiving import disconnected, pieces
from jali.serve.refusal import Refusal
from jali.serve.runs import Run

__all__ = ["add"]

_LONGEST_WAIT = 60.0


def add(app: Any, gateway: Gateway) -> None:
    """Adds the routes.

    app: an application of FastAPI.
    gateway: the service that they are about.
    """
    from fastapi import Header, Request, Response
    from fastapi.responses import JSONResponse, StreamingResponse

    runs = gateway.runs

    async def fetched(request: Request, run: Run, replayed: bool, key: bytes | None) -> Response:
        """Waits for an answer, unless the client goes before. key: that seals it."""
        await _until_done(request.receive, run, None)
        run.fetched = True
        answered = await run.answer()
        headers = {"Server-Timing": answered.server_timing, "Cache-Control": "no-store"}
        if replayed:
            headers["Idempotent-Replayed"] = "?1"
        kept, media_type = answered.kept, "application/octet-stream"
        tag = b""
        if key is not None:
            tag = await seals.tag(kept, key, run.digest, run.key_id)
            headers["Jali-Seal"] = "1"
        if kept.data is not None:
            return Response(tag + kept.data, headers=headers, media_type=media_type)
        headers["Content-Length"] = str(len(tag) + kept.nbytes)
        return StreamingResponse(_after(tag, kept.pieces()), headers=headers, media_type=media_type)

    def accepted(run: Run) -> Response:
        document = _described(run)
        headers = {
            "Location": f"/v1/jobs/{run.job}",
            "Retry-After": str(max(1, round(document["seconds_left"] or 0))),
            "Cache-Control": "no-store",
        }
        return JSONResponse(document, 202, headers)

    async def run(
        request: Request,
        fingerprint: str,
        jali_key: Annotated[str, Header()] = "",
        jali_deadline_ms: Annotated[str, Header()] = "",
        idempotency_key: Annotated[str, Header()] = "",
        content_length: Annotated[str, Header()] = "",
        content_digest: Annotated[str, Header()] = "",
        jali_seal: Annotated[str, Header()] = "",
        prefer: Annotated[str, Header()] = "",
    ) -> Response:
        """Computes a request with the client's keys."""
        call = call_of(request.scope)
        gateway.program(fingerprint, call)
        call.key_id = fields.key_id(jali_key)
        key = gateway.seal_key(jali_seal, call)
        asked = _Asked(
            fingerprint,
            call.key_id,
            fields.length(content_length, gateway.settings.request_bytes),
            fields.digest(content_digest),
            fields.deadline(jali_deadline_ms),
            fields.idempotency(idempotency_key),
            "respond-async" in fields.preferences(prefer),
        )
        with ExitStack() as held:
            receive = request.receive
            started, replayed = await _found_or_started(gateway, receive, call, asked, held)
            if not asked.job:
                return await fetched(request, started, replayed, key)
            runs.make_job(started)
        answer = accepted(started)
        answer.headers["Preference-Applied"] = "respond-async"
        return answer

    async def job(
        request: Request,
        name: str,
        prefer: Annotated[str, Header()] = "",
        jali_seal: Annotated[str, Header()] = "",
    ) -> Response:
        """The answer of a job, or how far it is."""
        call = call_of(request.scope)
        found, key = runs.job(call.client.name, name), gateway.seal_key(jali_seal, call)
        wait = min(fields.seconds(fields.preferences(prefer).get("wait", "")), _LONGEST_WAIT)
        if wait and not found.done:
            await _until_done(request.receive, found, wait)
        return await fetched(request, found, False, key) if found.done else accepted(found)

    async def delete(request: Request, name: str) -> Response:
        """Cancels a job, and removes its answer."""
        runs.forget(runs.job(call_of(request.scope).client.name, name))
        return Response(status_code=204)

    app.add_api_route(
        "/v1/programs/{fingerprint}/run",
        run,
        tags=["requests"],
        response_class=Response,
        methods=["POST"],
    )
    app.add_api_route(
        "/v1/jobs/{name}", job, tags=["requests"], response_class=Response, methods=["GET"]
    )
    app.add_api_route(
        "/v1/jobs/{name}", delete, tags=["requests"], status_code=204, methods=["DELETE"]
    )


async def _after(first: bytes, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    if first:
        yield first
    async for piece in pieces:
        yield piece


@dataclass(frozen=True)
class _Asked:
    """What the head of a request says."""

    program: str
    key_id: str
    nbytes: int
    digest: str
    deadline: float | None
    name: str
    job: bool


async def _found_or_started(
    gateway: Gateway, receive: Any, call: Call, asked: _Asked, held: ExitStack
) -> tuple[Run, bool]:
    """The run of a request whose body was read, and whether an earlier request began it.

    held: for as long as it is open, the run is waited for.
    """
    client, runs = call.client, gateway.runs
    earlier = runs.named(client.name, asked.name)
    if earlier is not None:  # room for it was reserved before
        _check_same(earlier, asked, None)
        held.enter_context(earlier.waited())
        with Body(None) as body:
            await _read(gateway, receive, body, asked)
            _check_same(earlier, asked, body.sha256)
            return earlier, True
    ticket = await gateway.service.admit(
        client.name,
        asked.program,
        asked.key_id,
        asked.nbytes,
        deadline=asked.deadline,
        weight=client.weight,
    )
    body = Body(gateway.folder)
    try:
        content = await _read(gateway, receive, body, asked, ticket)
        earlier = runs.named(client.name, asked.name)
        if earlier is None:
            names = client.name, asked.program, asked.key_id
            run = runs.start(*names, ticket, body, content, idempotency=asked.name)
            held.enter_context(run.waited())
            return run, False
    except BaseException:
        ticket.cancel()
        body.close()
        raise
    ticket.cancel()  # another request of this name was faster
    body.close()
    _check_same(earlier, asked, body.sha256)
    held.enter_context(earlier.waited())
    return earlier, True


async def _read(
    gateway: Gateway, receive: Any, body: Body, asked: _Asked, ticket: Any = None
) -> Any:
    """Reads a body. It is not read to its end if its ticket is answered meanwhile.

    Raises Gone and Refusal.
    """
    async for piece in pieces(receive, gateway.settings.patience):
        await body.write(piece)
        if ticket is not None and ticket.state == "done":
            return b""
    content = await body.content()
    if asked.digest not in ("", body.sha256):
        raise Refusal(
            "the content has another digest than its header says: send it again", 400, "digest"
        )
    return content


async def _until_done(receive: Any, run: Run, seconds: float | None) -> None:
    """Returns when a run has ended, or after some seconds. Raises Gone if the client went."""
    gone = asyncio.create_task(disconnected(receive))
    try:
        await asyncio.wait(
            {gone, run.outcome}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED
        )
        if gone.done() and not run.done:
            raise Gone
    finally:
        gone.cancel()


def _check_same(earlier: Run, asked: _Asked, digest: str | None) -> None:
    if not earlier.same(asked.program, asked.key_id, digest):
        raise Refusal(
            "another request had this Idempotency-Key: give each request its own",
            422,
            "idempotency-key",
        )


def _described(run: Run) -> dict[str, Any]:
    ticket = run.ticket
    return {
        "job": run.job,
        "state": "running" if ticket.state == "running" else "waiting",
        "position": ticket.position,
        "seconds_left": ticket.seconds_left,
        "program": run.program,
        "key_id": run.key_id,
    }
