"""The page of a service: its modules under Node, and people's use of it in Chromium, before the
command ``jali serve``. `make page-test` brings what the browser's tests need; without that they are
skipped."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drawings import DRAWINGS, Stroke
from wire_tap import Tap

import jali
from jali.demo import network

ROOT = Path(__file__).resolve().parents[2]
CLIENT = Path(os.environ.get("JALI_WASM", ROOT / "build/wasm/client"))
PATIENCE = 120_000  # milliseconds in which anything happens, also on a busy machine
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
# The client of the test also keeps its secret key where the test finds it.
KEEPING = """
const made = Client.prototype.makeSecret;
Client.prototype.makeSecret = function () {
  made.call(this);
  globalThis.secretOfTest = this.writeSecret();
};
"""


@pytest.mark.parametrize("name", ["numbers", "pixels", "service", "strokes"])
def test_under_node(name: str) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is missing: install Node 20 or later")
    file = ROOT / f"tests/page/{name}.test.mjs"
    done = subprocess.run(
        [node, "--test", "--test-reporter=spec", str(file)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_module_that_does_without_a_document_is_tested() -> None:
    assert {path.name for path in (ROOT / "tests/page").iterdir()} == {
        f"{name}.test.mjs" for name in ("numbers", "pixels", "service", "strokes")
    }


def test_the_tap_finds_a_window_at_any_place() -> None:
    with Tap(1) as tap:
        secret = np.random.default_rng(0).bytes(100)
        tap.sent += [bytearray(np.random.default_rng(1).bytes(5000)), bytearray(b"short")]
        assert not tap.holds(secret)
        tap.sent[0][1003:1011] = secret[41:49]
        assert tap.holds(secret)


def missing() -> list[str]:
    """What the tests in a browser need and is not here."""
    try:
        import playwright  # noqa: F401
    except ModuleNotFoundError:
        found = ["playwright"]
    else:
        found = []
    if BROWSER is None:
        found.append("chromium")
    needed = [CLIENT / name for name in ("jali.mjs", "jali.wasm")]
    return found + [str(path) for path in needed if not path.is_file()]


def vector(x: Any) -> Any:
    return 2 * x * x + 1


class Served:
    """``jali serve --demo`` with another program, as a process."""

    def __init__(self, folder: Path, *options: str, programs: tuple[str, ...]) -> None:
        words = [sys.executable, "-m", "jali", "serve", *programs, "--port", "0"]
        words += ["--store", str(folder / "store"), "--workers", "cpu"]
        words += ["--web-client", str(folder / "client"), *options]
        self.log = folder / "log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(words, stderr=log, stdout=log)
        try:
            self._said(r"^ready$")
            self.port = int(self._said(r"listening on http://127\.0\.0\.1:(\d+)")[1])
        except BaseException:
            self.end()
            raise

    def _said(self, pattern: str) -> re.Match[str]:
        end = time.monotonic() + PATIENCE / 1000
        while True:
            text = self.log.read_text(encoding="utf-8", errors="replace")
            if found := re.search(pattern, text, re.MULTILINE):
                return found
            assert self.process.poll() is None and time.monotonic() < end, text
            time.sleep(0.1)

    def end(self) -> None:
        self.process.terminate()
        self.process.wait(60)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With the client of the test, and a program that squares vectors."""
    if missing():
        if "JALI_WASM" in os.environ and str(CLIENT) in "".join(missing()):
            raise AssertionError(f"{', '.join(missing())} is missing")
        pytest.skip(f"`make page-test` was not run: {', '.join(missing())} is missing")
    place = tmp_path_factory.mktemp("page")
    (place / "client").mkdir()
    text = (CLIENT / "jali.mjs").read_text(encoding="utf-8")
    (place / "client/jali.mjs").write_text(text + KEEPING, encoding="utf-8")
    shutil.copy(CLIENT / "jali.wasm", place / "client")
    examples = np.linspace(-1, 1, 60).reshape(20, 3)
    program = jali.compile(vector, examples[0], calibration=examples, input_range=(-1, 1))
    program.save(place / "squares.jali")
    return place


@pytest.fixture(scope="module")
def served(folder: Path) -> Iterator[Served]:
    found = Served(folder, "--demo", programs=(str(folder / "squares.jali"),))
    yield found
    found.end()


@pytest.fixture(scope="module")
def chromium(folder: Path) -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield browser
        browser.close()


class Person:
    """Who uses the page in a window of a browser."""

    def __init__(self, browser: Any, tap: Tap, **options: Any) -> None:
        self.tap = tap
        self.context = browser.new_context(**options)
        self.page = self.context.new_page()
        self.page.set_default_timeout(PATIENCE)
        self.troubles: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.troubles.append(message.text))
        self.page.on("pageerror", lambda error: self.troubles.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(tap.url)

    def status(self, begin: str) -> None:
        """Waits until the page says something that begins so."""
        self.page.locator("#status").filter(has_text=re.compile(f"^{begin}")).wait_for()

    def draw(self, strokes: list[Stroke]) -> None:
        page = self.page
        page.click("#clear")
        pad = page.locator("#pad")
        pad.scroll_into_view_if_needed()
        box = pad.bounding_box()
        for stroke in strokes:
            for k, (x, y) in enumerate(stroke):
                page.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"])
                if k == 0:
                    page.mouse.down()
            page.mouse.up()

    def ask(self) -> None:
        self.page.click("#ask")
        self.answered()

    def answered(self) -> None:
        self.status("Answered")

    def numbers(self) -> np.ndarray[Any, Any]:
        """What the page says that it encrypts."""
        if self.page.locator("#values").get_attribute("open") is None:
            self.page.click("#values summary")
        self.page.locator("#values-text", has_text=re.compile(r"\d")).wait_for()
        return np.array(self.page.locator("#values-text").inner_text().split(), np.float64)

    def scores(self) -> np.ndarray[Any, Any]:
        lines = self.page.locator("#scores li").all()
        return np.array([float(line.get_attribute("data-score")) for line in lines])

    def secret(self) -> bytes:
        """The coefficients of the secret key, as they are written."""
        (worker,) = self.page.workers
        return bytes(worker.evaluate("() => Array.from(secretOfTest)"))[64:-16]

    def close(self) -> None:
        self.context.close()


def kept(served: Served) -> list[Any]:
    """The keys in the store of a service that asks nobody who they are."""
    with urllib.request.urlopen(f"http://127.0.0.1:{served.port}/v1/keys", timeout=60) as answer:
        found: list[Any] = json.load(answer)["keys"]
    return found


def until_deleted(served: Served) -> None:
    """Waits until the store has no keys."""
    end = time.monotonic() + PATIENCE / 1000
    while kept(served):
        assert time.monotonic() < end
        time.sleep(0.1)


@pytest.fixture
def person(chromium: Any, served: Served) -> Iterator[Callable[..., Person]]:
    people: list[Person] = []
    with Tap(served.port) as tap:

        def opened(**options: Any) -> Person:
            cut = options.pop("cut_at", 0)
            tap.cut_at = cut
            people.append(Person(chromium, tap, **options))
            return people[-1]

        yield opened
        for one in people:
            one.page.goto("about:blank")
        until_deleted(served)
        for one in people:
            one.close()


def clear(pixels: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """What the network says of pixels from 0 to 1."""
    return network.load("mnist").logits(255 * pixels.reshape(1, 28, 28))[0]


def test_twenty_drawings(person: Callable[..., Person]) -> None:
    """All are answered as by the clear model, and nothing of the secret key is sent."""
    one = person()
    one.status("Ready")
    right = 0
    for digit, strokes in DRAWINGS:
        one.draw(strokes)
        pixels = one.numbers()
        assert pixels.max() == 1
        one.ask()
        expected, scores = clear(pixels), one.scores()
        np.testing.assert_allclose(scores, expected, atol=0.02)
        answer = one.page.locator("#result .best").inner_text()
        assert answer == str(np.argmax(expected))
        right += answer == str(digit)
    assert right >= 19  # which says that drawings are brought to what the network is used to
    loaded = one.page.locator("#steps tr", has_text="Load the client")
    assert "kB" in loaded.locator("td").last.inner_text()
    assert one.troubles == []
    assert all(url.startswith(one.tap.url) for url in one.asked)
    assert one.page.evaluate("() => crossOriginIsolated")
    secret = one.secret()
    assert len(secret) == (1 << 14) // 4 and len(set(secret)) > 10
    assert one.tap.nbytes > 20 * 1_000_000
    assert not one.tap.holds(secret)
    (worker,) = one.page.workers
    worker.evaluate(
        """() => fetch("/planted", {method: "POST", body: Uint8Array.of(1, 2, 3, ...secretOfTest.slice(577, 585), 4)})"""
    )
    assert one.tap.holds(secret)


def test_an_upload_that_is_cut_goes_on(person: Callable[..., Person]) -> None:
    one = person(cut_at=3_000_000)
    one.status("Ready")
    assert one.tap.cut_at == 0
    assert one.tap.nbytes < 11.9e6 + 3e6  # it did not begin again
    one.draw(DRAWINGS[0][1])
    one.ask()
    np.testing.assert_allclose(one.scores(), clear(one.numbers()), atol=0.02)


def test_with_the_keyboard_alone(person: Callable[..., Person]) -> None:
    one = person()
    one.status("Ready")
    one.page.keyboard.press("Tab")
    one.page.keyboard.press("Enter")  # the link to the input
    for _ in range(20):
        one.page.keyboard.press("Tab")
        if one.page.evaluate("() => document.activeElement.id") == "pad":
            break
    keys = ["ArrowUp"] * 8 + ["Space"] + ["ArrowDown"] * 16 + ["Space", "Enter"]
    for key in keys:
        one.page.keyboard.press(key)
    one.answered()
    assert one.page.locator("#result .best").inner_text() == "1"
    np.testing.assert_allclose(one.scores(), clear(one.numbers()), atol=0.02)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_narrow_screen(person: Callable[..., Person], scheme: str) -> None:
    one = person(viewport={"width": 320, "height": 640}, color_scheme=scheme, has_touch=True)
    one.status("Ready")
    one.draw(DRAWINGS[4][1])
    one.ask()
    one.numbers()
    assert one.page.evaluate("() => document.documentElement.scrollWidth") <= 320
    for name in ("picture", "numbers"):
        one.page.check(f"input[name=way][value={name}]")
        assert one.page.evaluate("() => document.documentElement.scrollWidth") <= 320
    ground = one.page.evaluate("() => getComputedStyle(document.body).backgroundColor")
    light = sum(map(int, re.findall(r"\d+", ground))) > 380
    assert light == (scheme == "light")


def test_a_picture(person: Callable[..., Person]) -> None:
    image = pytest.importorskip("PIL.Image")
    paper = np.full((90, 120), 255, np.uint8)
    paper[15:25, 40:80] = 20
    paper[15:75, 70:80] = 20
    file = io.BytesIO()
    image.fromarray(paper).save(file, "PNG")
    one = person()
    one.status("Ready")
    one.page.check("input[name=way][value=picture]")
    one.page.set_input_files(
        "#file", {"name": "7.png", "mimeType": "image/png", "buffer": file.getvalue()}
    )
    one.page.locator("#drop", has_text="7.png, 120 × 90 pixels").wait_for()
    pixels = one.numbers()
    assert one.page.is_checked("#invert") and pixels.max() > 0.99 and pixels.min() == 0
    one.ask()
    np.testing.assert_allclose(one.scores(), clear(pixels), atol=0.02)
    one.page.set_input_files(
        "#file", {"name": "a.png", "mimeType": "image/png", "buffer": b"no picture"}
    )
    one.page.locator("#drop", has_text="no picture").wait_for()
    one.page.click("#ask")
    one.page.locator("#trouble", has_text="Choose a picture first.").wait_for()


def test_a_vector_and_numbers_that_are_refused(
    person: Callable[..., Person], served: Served
) -> None:
    one = person()
    one.status("Ready")
    one.page.select_option("#program", label="squares")
    one.page.locator("#numbers input").first.wait_for()
    one.status("Ready")
    assert len(kept(served)) == 1  # those of the other program are deleted
    boxes = one.page.locator("#numbers input").all()
    for box, text in zip(boxes, ["0.5", "-1", "0.25"], strict=True):
        box.fill(text)
    one.ask()
    np.testing.assert_allclose(one.scores(), [1.5, 3, 1.125], atol=0.01)
    before = one.tap.nbytes
    for text, words in [
        ("1.01", "outside of the range that the program takes, -1 to 1. Nothing was encrypted."),
        ("1,5", "x[1] is not a number"),
        ("", "x[1] is empty"),
    ]:
        boxes[1].fill(text)
        one.page.click("#ask")
        one.page.locator("#trouble", has_text=words).wait_for()
        one.status("Nothing was asked")
        assert len(one.scores()) == 0  # of the question before
    assert one.tap.nbytes == before
    boxes[1].fill("1")
    one.ask()
    np.testing.assert_allclose(one.scores(), [1.5, 3, 1.125], atol=0.01)
    assert one.page.locator("#trouble").is_hidden()
    assert one.troubles == []


def test_keys_are_deleted_and_sent_again(person: Callable[..., Person], served: Served) -> None:
    one = person()
    one.status("Ready")
    assert len(kept(served)) == 1
    one.page.click("#forget")
    one.status("The service has deleted the keys")
    assert kept(served) == []
    one.draw(DRAWINGS[2][1])
    one.ask()
    assert len(kept(served)) == 1
    urllib.request.urlopen(  # as if the store had needed the room
        urllib.request.Request(f"http://127.0.0.1:{served.port}/v1/keys", method="DELETE"),
        timeout=60,
    ).close()
    one.ask()
    np.testing.assert_allclose(one.scores(), clear(one.numbers()), atol=0.02)
    assert len(kept(served)) == 1  # until the page is left


def test_a_service_that_asks_who_calls(chromium: Any, folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder / "client", tmp_path / "client")
    (tmp_path / "tokens").write_text(f"{hashlib.sha256(b'a-token').hexdigest()} alice\n")
    program = str(folder / "squares.jali")
    found = Served(tmp_path, "--tokens", str(tmp_path / "tokens"), programs=(program,))
    try:
        with Tap(found.port) as tap:
            one = Person(chromium, tap)
            one.status("The service asks who you are")
            one.page.fill("#token", "wrong")
            one.page.keyboard.press("Enter")
            one.page.locator("#token:focus").wait_for()
            one.page.fill("#token", "a-token")
            one.page.keyboard.press("Enter")
            one.status("Ready")
            for box in one.page.locator("#numbers input").all():
                box.fill("0.5")
            one.ask()
            np.testing.assert_allclose(one.scores(), [1.5] * 3, atol=0.01)
            one.close()
    finally:
        found.end()
