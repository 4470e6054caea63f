"""The routes of uploads: what routes.py says, on FastAPI."""

# Annotations are evaluated here, because FastAPI reads them and is imported within functions.

from collections.abc import Callable
from typing import Any

from jali.serve.gateway import Gateway
from jali.serve.middleware import call_of
from jali.serve.receiving import pieces
from jali.serve.routes import Answer, Content

__all__ = ["add"]


def add(app: Any, gateway: Gateway) -> None:
    """Adds the routes.

    app: an application of FastAPI.
    gateway: the service that they are about.
    """
    from fastapi import Request, Response
    from fastapi.responses import JSONResponse

    routes = gateway.routes

    def sent(answer: Answer) -> Response:
        if answer.document is None:
            return Response(status_code=answer.status, headers=answer.headers)
        return JSONResponse(answer.document, answer.status, answer.headers)

    def named(request: Request, program: str) -> str:
        call = call_of(request.scope)
        gateway.program(program, call)
        return call.client.name

    async def appended(request: Request, begin: Callable[[dict[str, str]], Content]) -> Response:
        """Hands the body on to what takes it."""
        client = call_of(request.scope).client.name
        async with gateway.uploading(client):
            content = await gateway.thread(begin, dict(request.headers))
            try:
                async for piece in pieces(request.receive, gateway.settings.patience):
                    await gateway.thread(content.write, piece)
                answer = await gateway.thread(content.end)
            finally:
                await gateway.thread(content.__exit__, None, None, None)
        return sent(answer)

    async def options(request: Request, fingerprint: str) -> Response:
        """How many bytes the client may send."""
        client = named(request, fingerprint)
        return sent(await gateway.thread(routes.options, client, fingerprint))

    async def post(request: Request, fingerprint: str) -> Response:
        """Begins an upload."""
        client = named(request, fingerprint)
        return await appended(request, lambda fields: routes.post(client, fingerprint, fields))

    async def head(request: Request, name: str) -> Response:
        """How far an upload is."""
        client = call_of(request.scope).client.name
        return sent(await gateway.thread(routes.head, client, name))

    async def patch(request: Request, name: str) -> Response:
        """Goes on with an upload."""
        client = call_of(request.scope).client.name
        return await appended(request, lambda fields: routes.patch(client, name, fields))

    async def delete(request: Request, name: str) -> Response:
        """Removes an upload."""
        client = call_of(request.scope).client.name
        return sent(await gateway.thread(routes.delete, client, name))

    app.add_api_route(
        "/v1/programs/{fingerprint}/uploads", options, tags=["uploads"], methods=["OPTIONS"]
    )
    app.add_api_route(
        "/v1/programs/{fingerprint}/uploads",
        post,
        tags=["uploads"],
        status_code=201,
        methods=["POST"],
    )
    app.add_api_route(
        "/v1/uploads/{name}", head, tags=["uploads"], status_code=204, methods=["HEAD"]
    )
    app.add_api_route(
        "/v1/uploads/{name}", patch, tags=["uploads"], status_code=204, methods=["PATCH"]
    )
    app.add_api_route(
        "/v1/uploads/{name}", delete, tags=["uploads"], status_code=204, methods=["DELETE"]
    )
