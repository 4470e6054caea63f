"""The application: version 1 of the routes. docs/reference/http.md lists them."""

# Annotations are evaluated here, because FastAPI reads them and is imported within functions.

from typing import Any

from jali.serve import app_keys, app_runs, app_uploads, page
from jali.serve.gateway import Gateway
from jali.serve.middleware import Gone, Middleware, call_of, internal, problem
from jali.serve.refusal import Refusal

__all__ = ["application", "inner_application"]


def application(gateway: Gateway) -> Middleware:
    """An application of ASGI.

    gateway: the service that it is about.
    """
    return Middleware(inner_application(gateway), gateway)


def inner_application(gateway: Gateway) -> Any:
    """The same as an application of FastAPI, without what goes around its routes.

    gateway: the service that it is about.
    """
    from fastapi import FastAPI

    app = FastAPI(
        title="Jali",
        version="1",
        description="Computes on encrypted data. docs/reference/http.md explains it.",
        docs_url=None,  # their pages load scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,
    )
    _add_problems(app)
    _add_operators(app, gateway)
    _add_programs(app, gateway)
    app_uploads.add(app, gateway)
    app_keys.add(app, gateway)
    app_runs.add(app, gateway)
    page.add(app, gateway)
    return app


def _add_problems(app: Any) -> None:
    """Has every error answered as a document."""
    from fastapi import Request, Response
    from fastapi.exceptions import RequestValidationError
    from starlette.exceptions import HTTPException

    def answer(request: Request, refusal: Refusal) -> Response:
        call_of(request.scope).why = refusal.kind
        status, headers, data = problem(refusal)
        return Response(data, status, headers)

    async def refused(request: Request, error: Exception) -> Response:
        assert isinstance(error, Refusal)
        return answer(request, error)

    async def invalid(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        where = ", ".join(sorted({".".join(map(str, one["loc"])) for one in error.errors()}))
        return answer(
            request, Refusal(f"{where} is not as docs/reference/http.md says", 422, "invalid")
        )

    async def of_http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        kinds = {404: "not-found", 405: "method"}
        sentences = {
            404: "there is nothing of this path: /v1/programs lists the programs",
            405: "this path does not take this method: use one of those that Allow names",
        }
        sentence = sentences.get(error.status_code, "the request cannot be read: correct it")
        kind = kinds.get(error.status_code, "invalid")
        return answer(request, Refusal(sentence, error.status_code, kind, error.headers))

    async def gone(request: Request, error: Exception) -> Response:
        return Response(status_code=499)  # which nobody reads

    async def failed(request: Request, error: Exception) -> Response:
        return answer(request, internal(call_of(request.scope)))  # and it is raised again

    app.add_exception_handler(Exception, failed)
    app.add_exception_handler(Refusal, refused)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, of_http)
    app.add_exception_handler(Gone, gone)


def _add_operators(app: Any, gateway: Gateway) -> None:
    from fastapi import Request, Response

    async def healthz() -> dict[str, str]:
        """Whether the process answers."""
        return {"status": "ok"}

    async def readyz() -> Response:
        """Whether requests are computed."""
        if gateway.draining:
            raise Refusal("the service ends", 503, "draining")
        if not gateway.ready:
            raise Refusal("no worker is ready yet", 503, "no-worker", {"Retry-After": "5"})
        return Response('{"status": "ready"}', media_type="application/json")

    async def metrics(request: Request) -> Response:
        """For Prometheus."""
        name = call_of(request.scope).client.name
        if gateway.identify is not None and name not in gateway.settings.operators:
            raise Refusal(
                "only operators read metrics: ask for --operator with your name", 403, "forbidden"
            )
        data, media_type = gateway.metrics.text()
        return Response(data, headers={"Content-Type": media_type, "Cache-Control": "no-store"})

    app.add_api_route("/healthz", healthz, tags=["operators"], methods=["GET"])
    app.add_api_route("/readyz", readyz, tags=["operators"], methods=["GET"])
    app.add_api_route("/metrics", metrics, tags=["operators"], methods=["GET"])


def _add_programs(app: Any, gateway: Gateway) -> None:
    from fastapi import Request, Response

    def described(one: Any) -> dict[str, Any]:
        return {
            "name": one.name,
            "fingerprint": one.fingerprint,
            "key_bytes": one.key_bytes,
            "seconds": one.seconds or None,
            "max_batch": one.max_batch,
            "examples": one.examples,
            "inputs": one.inputs,
            "request_bytes": one.request_bytes,
            "answer_bytes": one.answer_bytes,
            "max_request_bytes": gateway.settings.request_bytes,
        }

    async def programs() -> dict[str, Any]:
        """What is served."""
        return {"programs": [described(one) for one in gateway.programs().values()]}

    async def program(fingerprint: str, request: Request) -> dict[str, Any]:
        """One program."""
        return described(gateway.program(fingerprint, call_of(request.scope)))

    async def manifest(fingerprint: str, request: Request) -> Response:
        """What clients are made of."""
        tag = f'"{fingerprint}"'
        headers = {"ETag": tag, "Cache-Control": "private, max-age=31536000, immutable"}
        found = gateway.program(fingerprint, call_of(request.scope))
        if tag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        return Response(found.manifest, headers=headers, media_type="application/octet-stream")

    app.add_api_route("/v1/programs", programs, tags=["programs"], methods=["GET"])
    app.add_api_route("/v1/programs/{fingerprint}", program, tags=["programs"], methods=["GET"])
    app.add_api_route(
        "/v1/programs/{fingerprint}/manifest",
        manifest,
        tags=["programs"],
        response_class=Response,
        methods=["GET"],
    )
