"""The page of a service: its files, their headers, and what it says of programs."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import seeds
import serve_world
from gateway_world import World, refused, running

import jali
from jali import nn
from jali.cli import serve as command
from jali.demo import drawn, network
from jali.serve import page as page_of
from jali.serve.auth import Client
from jali.serve.page import HEADERS, Page, described

FOLDER = Path(page_of.__file__).parent / "page"
SOURCES = sorted(path for path in FOLDER.iterdir() if path.is_file())
MODULES = [path for path in SOURCES if path.suffix == ".mjs"]
CLIENT = {"jali.mjs": b"export class Client {}\n", "jali.wasm": b"\0asm\1\0\0\0"}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with files of the names of the client's."""
    folder = tmp_path_factory.mktemp("client")
    for name, data in CLIENT.items():
        (folder / name).write_bytes(data)
    return folder


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, client: Path) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("page")
    page = Page(client, sentences={"network": "Give eight numbers."})
    with running(folder, kinds=("network", "integers", "trees"), page=page) as found:
        yield found


class Tags(HTMLParser):
    """What a document refers to, and code within it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: list[str] = []
        self.inline: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        self.links += [v for k, v in attributes if k in ("href", "src", "action") and v]
        self.ids += [v for k, v in attributes if k == "id" and v]
        self.inline += [f"{tag} {k}" for k in given if k == "style" or k.startswith("on")]
        if tag == "style" or (tag == "script" and not given.get("src")):
            self.inline.append(tag)


HTML = Tags((FOLDER / "index.html").read_text(encoding="utf-8"))


def test_files_and_their_headers(world: World) -> None:
    types = {
        "/": "text/html; charset=utf-8",
        "/page/page.css": "text/css; charset=utf-8",
        "/page/worker.mjs": "text/javascript; charset=utf-8",
        "/page/icon.svg": "image/svg+xml",
        "/page/client/jali.mjs": "text/javascript; charset=utf-8",
        "/page/client/jali.wasm": "application/wasm",
    }
    assert types.keys() <= world.gateway.page.files.keys()
    with world.client() as http:
        for path in world.gateway.page.files:
            answer = http.get(path)
            assert answer.status_code == 200, path
            assert {name: answer.headers[name] for name in HEADERS} == HEADERS
            assert answer.headers["Content-Type"] == types.get(path, answer.headers["Content-Type"])
            head = http.head(path)
            assert (head.status_code, head.content) == (200, b"")
            tag = answer.headers["ETag"]
            again = http.get(path, headers={"If-None-Match": tag})
            assert (again.status_code, again.content) == (304, b"")
            assert again.headers["Content-Security-Policy"] == HEADERS["Content-Security-Policy"]
        assert http.get("/page/client/jali.wasm").content == CLIENT["jali.wasm"]
        assert http.get("/").content == (FOLDER / "index.html").read_bytes()
        assert http.post("/").status_code == 405


def test_files_are_packed_for_who_takes_it(world: World) -> None:
    with world.client() as http:
        plain = http.get("/page/page.css", headers={"Accept-Encoding": "identity"})
        assert "Content-Encoding" not in plain.headers
        with http.stream(
            "GET", "/page/page.css", headers={"Accept-Encoding": "br, gzip"}
        ) as packed:
            assert packed.headers["Content-Encoding"] == "gzip"
            assert gzip.decompress(b"".join(packed.iter_raw())) == plain.content


def test_the_policy_allows_this_origin_alone() -> None:
    rules = dict(
        rule.strip().split(" ", 1) for rule in HEADERS["Content-Security-Policy"].split(";")
    )
    assert rules["default-src"] == "'none'"
    assert rules.pop("script-src") == "'self' 'wasm-unsafe-eval'"
    assert set(rules.values()) == {"'none'", "'self'"}
    assert {"frame-ancestors", "base-uri", "form-action"} <= {
        name for name, value in rules.items() if value == "'none'"
    }


def test_no_code_is_in_the_document_and_all_comes_from_here() -> None:
    assert HTML.inline == []
    assert Tags("<p onclick=x style=y><script>z</script>").inline == [
        "p onclick",
        "p style",
        "script",
    ]
    for link in HTML.links:
        assert link.startswith("#") or (FOLDER / link.removeprefix("/page/")).is_file(), link
    for path in SOURCES:
        text = path.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"(?i:https?|wss?|data|blob):/?/?\w|@import|\burl\(", text), path
    for path in MODULES:
        text = path.read_text(encoding="utf-8")
        for name in re.findall(r"""(?:from|import|import\()\s*"\./([^"]+)""", text):
            assert (FOLDER / name).is_file(), name
        never = r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|new Function|setAttribute\(.style"
        assert not re.search(never, text), path


def test_nothing_takes_the_secret_key_out_or_keeps_anything() -> None:
    never = r"writeSecret|readSecret|localStorage|sessionStorage|indexedDB|document\.cookie|caches\.|serviceWorker"
    for path in MODULES:
        assert not re.search(never, path.read_text(encoding="utf-8")), path
    with_client = {path.name for path in MODULES if "client/jali.mjs" in path.read_text("utf-8")}
    assert with_client == {"worker.mjs"}  # so that no other thread has it


def test_every_element_that_is_looked_for_is_there() -> None:
    assert len(HTML.ids) == len(set(HTML.ids))
    for path in MODULES:
        for name in re.findall(r"""\bfind\("([\w-]+)"\)""", path.read_text(encoding="utf-8")):
            assert name in HTML.ids, (path.name, name)


def test_what_the_page_knows_of_programs(world: World) -> None:
    with world.client() as http:
        answer = http.get("/page/programs")
    assert answer.headers["Cache-Control"] == "no-store"
    found = {one["name"]: one for one in answer.json()["programs"]}
    assert found["network"]["sentence"] == "Give eight numbers."
    assert found["network"]["refused"] is None
    (port,) = found["network"]["inputs"]
    manifest = serve_world.served("network").manifest
    assert port["shape"] == list(manifest.inputs[0].shape)
    low = np.broadcast_to(port["low"], manifest.inputs[0].low.shape)
    np.testing.assert_array_equal(low, manifest.inputs[0].low)
    assert found["network"]["fingerprint"] == manifest.fingerprint
    for name in ("integers", "trees"):
        assert "decision trees or exact integers. Use jali.Remote" in found[name]["refused"]
        assert found[name]["inputs"] == []


def test_ranges_of_several_numbers_and_names_of_columns() -> None:
    linear = pytest.importorskip("sklearn.linear_model")
    frame = pytest.importorskip("pandas").DataFrame
    with seeds.named("a program whose numbers have ranges of their own"):
        numbers = np.random.default_rng(0).uniform(-1, 1, (40, 2)) * [1, 5]
        table = frame(numbers, columns=["age", "height"])
        model = linear.LinearRegression().fit(table, table["age"])
        program = jali.compile(model, table[:1], calibration=table)
    (port,) = described(program.manifest.to_bytes())["inputs"]
    assert port["columns"] == ["age", "height"]
    np.testing.assert_array_equal(port["low"], program.manifest.inputs[0].low)
    assert port["high"][1] > 2 * port["high"][0] > 0


def test_a_service_that_asks_who_calls_gives_the_files_to_everyone(
    tmp_path: Path, client: Path
) -> None:
    async def identify(headers: Any, peer: Any) -> Client | None:
        return Client("alice") if headers.get("authorization") == "Bearer a" else None

    with running(tmp_path, page=Page(client), identify=identify) as world, world.client() as http:
        assert {http.get(path).status_code for path in world.gateway.page.files} == {200}
        refused(http.get("/page/programs"), 401, "unauthenticated")
        refused(http.get("/page/no-such-file"), 401, "unauthenticated")
        assert http.get("/page/programs", headers={"Authorization": "Bearer a"}).status_code == 200


def test_pages_of_other_sites_do_not_get_it(world: World) -> None:
    with world.client() as http:
        refused(http.get("/", headers={"Host": "example.org"}), 421, "host")
        refused(http.get("/", headers={"Origin": "http://example.org"}), 403, "origin")


def test_a_service_without_a_page(tmp_path: Path) -> None:
    with running(tmp_path) as world, world.client() as http:
        refused(http.get("/"), 404, "not-found")
        refused(http.get("/page/page.css"), 404, "not-found")


def test_without_the_client_the_page_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, client: Path
) -> None:
    monkeypatch.setattr(page_of, "_client_folder", lambda: tmp_path / "nothing")
    page = Page()
    assert "make wasm" in page.missing and "--web-client build/wasm/client" in page.missing
    with running(tmp_path, page=page) as world, world.client() as http:
        told = refused(http.get("/page/client/jali.mjs"), 404, "no-client")
        assert told["detail"] == page.missing
        assert http.get("/").status_code == 200
    with pytest.raises(jali.Unsupported, match="make wasm"):
        command.main(["--demo", "--store", str(tmp_path / "store")])
    with pytest.raises(
        jali.FileError, match=r"does not have jali\.mjs and jali\.wasm: give the folder"
    ):
        Page(tmp_path)
    assert Page(client).missing == ""


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "name the file of a program"),
        (["--demo", "--no-page"], "--no-page goes with neither"),
        (["p.jali", "--no-page", "--web-client", "x"], "--no-page goes with neither"),
        (["p.jali", "--web-client", "nothing"], "nothing does not have jali.mjs"),
        (["--demo", "drawn-digits=p.jali", "--web-client", "CLIENT"], "give another name"),
    ],
)
def test_options_that_do_not_go_together(
    words: list[str], told: str, client: Path, tmp_path: Path
) -> None:
    words = [str(client) if word == "CLIENT" else word for word in words]
    with pytest.raises(jali.Error, match=told):
        command.main([*words, "--store", str(tmp_path / "store")])
    assert not (tmp_path / "store").exists()


def test_no_drawing_leads_the_demo_out_of_a_range() -> None:
    """Blank and black paper and scribbles are answered, and as by the clear network."""
    program = drawn.program()
    assert program.manifest.params.security >= 128
    rng = np.random.default_rng(0)
    blocks = np.kron(rng.random((2, 7, 7)) < 0.6, np.ones((4, 4)))
    images = np.concatenate([np.zeros((1, 28, 28)), np.ones((1, 28, 28)), blocks])
    found = program.simulate(images[:, None])
    expected = network.load("mnist").logits(255 * images)
    assert np.abs(expected).max() > 40
    np.testing.assert_allclose(found, expected, atol=0.02)
    with seeds.named("a scribble that is encrypted"):
        client = program.client(threads=1)
        server = program.server(client.evaluation_keys(), threads=1)
        reply = server(client.encrypt(images[2:3, None]))
    np.testing.assert_allclose(client.decrypt(reply), expected[2:3], atol=0.02)
    assert isinstance(program, nn.Program)


def test_digits_are_enlarged_as_they_are() -> None:
    few = np.zeros((1, 8, 8))
    few[0, 2:6, 3:5] = 16
    many = drawn.enlarged(few)[0]
    assert many.shape == (28, 28) and many.max() == 255 and many.min() == 0
    assert not many[:4].any() and not many[:, -4:].any()
    np.testing.assert_allclose(many, many[::-1, ::-1])
    assert many.sum() == pytest.approx(255 * 8 * (20 / 8) ** 2)
