"""The routes of keys that a client has in the store."""

# Annotations are evaluated here, because FastAPI reads them and is imported within functions.

from datetime import UTC, datetime
from typing import Any

from jali.serve import fields
from jali.serve.gateway import Gateway
from jali.serve.index import KeySet
from jali.serve.middleware import call_of
from jali.serve.refusal import Refusal

__all__ = ["add"]


def add(app: Any, gateway: Gateway) -> None:
    """Adds the routes.

    app: an application of FastAPI.
    gateway: the service that they are about.
    """
    from fastapi import Request, Response

    store = gateway.service.store

    async def listed(request: Request, key_id: str | None, program: str | None) -> dict[str, Any]:
        call = call_of(request.scope)
        call.key_id, client = _shown(key_id), call.client.name
        sets = [
            one
            for one in await gateway.thread(store.sets, client)
            if key_id in (None, one.key_id) and program in (None, one.program)
        ]
        if key_id is not None and not sets:
            raise _none()
        room = await gateway.thread(store.room, client)
        keys = [_described(one) for one in sets]
        return {"keys": keys, "bytes_left": room.nbytes, "sets_left": room.sets}

    async def deleted(request: Request, key_id: str | None, program: str | None) -> Response:
        call = call_of(request.scope)
        call.key_id = _shown(key_id)
        count = await gateway.service.delete_keys(call.client.name, key_id=key_id, program=program)
        if key_id is not None and not count:
            raise _none()
        return Response(status_code=204)

    async def all_keys(request: Request, program: str | None = None) -> dict[str, Any]:
        """The keys that the store has of this client."""
        return await listed(request, None, program)

    async def keys(request: Request, key_id: str, program: str | None = None) -> dict[str, Any]:
        """Those of one secret key."""
        return await listed(request, key_id, program)

    async def delete_all(request: Request, program: str | None = None) -> Response:
        """Deletes the keys of this client."""
        return await deleted(request, None, program)

    async def delete(request: Request, key_id: str, program: str | None = None) -> Response:
        """Deletes those of one secret key."""
        return await deleted(request, key_id, program)

    for method in ("GET", "HEAD"):
        more: dict[str, Any] = {"methods": [method], "include_in_schema": method == "GET"}
        app.add_api_route("/v1/keys", all_keys, tags=["keys"], **more)
        app.add_api_route("/v1/keys/{key_id}", keys, tags=["keys"], **more)
    app.add_api_route("/v1/keys", delete_all, tags=["keys"], status_code=204, methods=["DELETE"])
    app.add_api_route(
        "/v1/keys/{key_id}", delete, tags=["keys"], status_code=204, methods=["DELETE"]
    )


def _shown(key_id: str | None) -> str:
    """What the log may have of a name: nothing of what is none."""
    return key_id if key_id is not None and fields.is_key_id(key_id) else ""


def _none() -> Refusal:
    return Refusal("there are no such keys: send them first", 404, "no-keys")


def _described(one: KeySet) -> dict[str, Any]:
    return {
        "key_id": one.key_id,
        "program": one.program,
        "bytes": one.nbytes,
        "made": _time(one.made),
        "used": _time(one.used),
    }


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
