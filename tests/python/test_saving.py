"""Whatever the package writes to a path replaces it at once or leaves it as it was, beside threads,
planted links, FIFOs and Ctrl-C."""

from __future__ import annotations

import os
import resource
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tfhe_world
from conftest import World

import jali
from jali import ckks, nn, tfhe
from jali._core import files

Save = Callable[[Path], object]


@pytest.fixture(scope="module")
def program() -> nn.Program:
    w = np.linspace(-1, 1, 12).reshape(3, 4)
    return jali.compile(lambda x: w @ x, np.ones(4), calibration=np.ones((2, 4)))


@pytest.fixture
def savers(one: World, program: nn.Program) -> dict[str, tuple[Save, Callable[[Path], object]]]:
    """By name: what saves to a path, and what reads the path again."""
    w = tfhe_world.World(tfhe_world.make())
    graph = nn.trace(lambda x: x * 2 + 1, np.ones(4))
    return {
        "ckks": (one.keys.save, lambda f: ckks.EvaluationKeys.load(f, one.params)),
        "tfhe": (w.keys.save, lambda f: tfhe.EvaluationKeys.load(f, w.params)),
        "program": (program.save, nn.Program.load),
        "manifest": (program.manifest.save, nn.Manifest.load),
        "graph": (lambda f: nn.graph_file.save(graph, f), nn.graph_file.load),
        "bytes": (lambda f: files.replace(f, bytes(300_000)), Path.read_bytes),
    }


NAMES = ("ckks", "tfhe", "program", "manifest", "graph", "bytes")


@contextmanager
def largest_file(count: int) -> Iterator[None]:
    """No file of this process can have more than `count` bytes, as if the disk were full."""
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (count, hard))
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, ignored)


@pytest.mark.parametrize("name", NAMES)
def test_threads_that_save_to_one_path_leave_it_whole(
    name: str, savers: Any, tmp_path: Path
) -> None:
    save, load = savers[name]
    path, failed = tmp_path / "file", []
    save(path)

    def again() -> None:
        try:
            for _ in range(25):
                save(path)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=again) for _ in range(2)]
    for thread in threads:
        thread.start()
    loads = 0
    while any(thread.is_alive() for thread in threads) and loads < 200:
        load(path)
        loads += 1
    for thread in threads:
        thread.join()
    load(path)
    assert not failed and os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("name", NAMES)
def test_names_that_others_planted_are_neither_followed_nor_changed(
    name: str, savers: Any, tmp_path: Path
) -> None:
    """Whoever can write to the folder knows the process's number, but not the name that it takes."""
    save, load = savers[name]
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    folder = tmp_path / "folder"
    folder.mkdir()
    pid = os.getpid()
    planted = [f"file.{pid}.part", "file.part", "file.tmp", "file.new", f"file.{pid}", f"file.{pid}.new"]  # fmt: skip
    planted += [f"file.{pid}-{k}.new" for k in range(1100)]
    for leaf in planted:
        (folder / leaf).symlink_to(victim)
    save(folder / "file")
    load(folder / "file")
    assert victim.read_bytes() == b"precious"
    assert not (folder / "file").is_symlink()
    assert sorted(os.listdir(folder)) == sorted(["file", *planted])
    assert all((folder / leaf).is_symlink() for leaf in planted)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_no_file_is_refused_and_stays(name: str, savers: Any, tmp_path: Path) -> None:
    save, _ = savers[name]
    places = [tmp_path / "fifo", tmp_path / "folder"]
    os.mkfifo(places[0])
    places[1].mkdir()
    if os.geteuid() == 0:  # a node of its own, which is /dev/null by another name
        os.mknod(tmp_path / "null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
        places.append(tmp_path / "null")
    for place in list(places):
        link = place.with_name(f"link to {place.name}")
        link.symlink_to(place)
        places.append(link)
    before = [os.lstat(p).st_mode for p in places]
    for place in places:
        with pytest.raises(jali.FileError, match="cannot be written: it is a folder or a device"):
            save(place)
    assert [os.lstat(p).st_mode for p in places] == before
    with pytest.raises(jali.FileError, match="cannot be written"):
        save(tmp_path / "none" / "file")
    round_trip = tmp_path / "round"
    round_trip.symlink_to(round_trip)
    with pytest.raises(jali.FileError, match="cannot be written"):
        save(round_trip)
    assert len(os.listdir(tmp_path)) == len(places) + 1


@pytest.mark.parametrize("name", NAMES)
def test_a_full_disk_leaves_the_old_file(name: str, savers: Any, tmp_path: Path) -> None:
    save, _ = savers[name]
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with (
        largest_file(100),
        pytest.raises(jali.FileError, match="cannot be written: File too large"),
    ):
        save(path)
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("name", NAMES)
def test_permissions_and_links_are_kept(name: str, savers: Any, tmp_path: Path) -> None:
    save, load = savers[name]
    path = tmp_path / "file"
    for mode in (0o600, 0o640, 0o666, 0o400):
        path.unlink(missing_ok=True)
        path.write_bytes(b"old")
        path.chmod(mode)
        save(path)
        assert stat.S_IMODE(path.stat().st_mode) == mode
        load(path)
    if os.geteuid() == 0:
        os.chown(path, 12345, 12346)
        save(path)
        assert (path.stat().st_uid, path.stat().st_gid) == (12345, 12346)
    new = tmp_path / "new"
    old = os.umask(0o027)
    try:
        save(new)
    finally:
        os.umask(old)
    assert stat.S_IMODE(new.stat().st_mode) == 0o640
    for target in (path, tmp_path / "not there yet"):
        link = tmp_path / f"link to {target.name}"
        link.symlink_to(target.name)
        save(link)
        assert link.is_symlink() and target.is_file() and not target.is_symlink()
        load(target)
    long = tmp_path / ("x" * 255)
    save(long)
    load(long)


def test_ctrl_c_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    """The signal comes at many moments; a call that is heard too late has written the file whole.
    That an interruption between two pieces leaves the old file is tested with progress= in
    test_files.py."""
    script = f"""
import os, signal, time
from pathlib import Path
from jali._core import files
path = Path({str(tmp_path / "file")!r})
data = os.urandom(8 << 20)
start = time.perf_counter()
files.replace(path, data)
taken = time.perf_counter() - start
path.write_bytes(b"old")
heard = 0
for k in range(20):
    try:  # the signal may come at once
        signal.setitimer(signal.ITIMER_REAL, taken * (k + 1) / 22)
        files.replace(path, data)
        time.sleep(taken * 2)  # a late signal is heard here
    except KeyboardInterrupt:
        heard += 1
    signal.setitimer(signal.ITIMER_REAL, 0)
    assert os.listdir(path.parent) == ["file"], os.listdir(path.parent)
    assert path.read_bytes() in (b"old", data)
    path.write_bytes(b"old")
assert heard == 20, heard
"""
    handler = "import signal\nsignal.signal(signal.SIGALRM, signal.default_int_handler)\n"
    subprocess.run([sys.executable, "-c", handler + script], check=True)


def test_processes_that_save_to_one_path_leave_it_whole(
    program: nn.Program, tmp_path: Path
) -> None:
    path = tmp_path / "file"
    program.save(path)
    script = f"""
import sys
from jali import nn
program = nn.Program.load({str(path)!r})
for _ in range(30):
    program.save({str(path)!r})
"""
    running = [subprocess.Popen([sys.executable, "-c", script]) for _ in range(2)]
    while any(process.poll() is None for process in running):
        assert nn.Program.load(path).to_bytes() == program.to_bytes()
    assert [process.returncode for process in running] == [0, 0]
    assert os.listdir(tmp_path) == ["file"]


class Figure:
    """What matplotlib's figure does for save_figure."""

    class canvas:
        @staticmethod
        def get_supported_filetypes() -> dict[str, str]:
            return {"png": "", "svg": ""}

    @staticmethod
    def savefig(out: Any, format: str, **how: Any) -> None:
        out.write(f"{format} {how}".encode())


def test_pictures_go_the_same_way(tmp_path: Path) -> None:
    assert files.save_figure(Figure(), tmp_path / "a.SVG", dpi=9) == tmp_path / "a.SVG"
    assert (tmp_path / "a.SVG").read_text() == "svg {'dpi': 9}"
    assert files.save_figure(Figure(), str(tmp_path / "b")) == tmp_path / "b.png"
    with pytest.raises(jali.InvalidArgument, match=r"a name that ends in \.png, \.svg"):
        files.save_figure(Figure(), tmp_path / "c.xyz")
    os.mkfifo(tmp_path / "fifo.png")
    with pytest.raises(jali.FileError, match="a folder or a device"):
        files.save_figure(Figure(), tmp_path / "fifo.png")
    assert sorted(os.listdir(tmp_path)) == ["a.SVG", "b.png", "fifo.png"]


def test_commands_refuse_devices(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from jali import cli

    for name in ("fifo", "fifo.csv", "fifo.json"):
        os.mkfifo(tmp_path / name)
    commands = (
        ["trace", "tfhe", "-o", str(tmp_path / "fifo")],
        ["simulate", "strix:I", "--machine", "strix", "--sweep", "clp=4:8:4", "--csv", str(tmp_path / "fifo.csv")],
        ["simulate", "strix:I", "--machine", "strix", "--no-constants", "--gantt", str(tmp_path / "fifo.json")],
    )  # fmt: skip
    for command in commands:
        assert cli.main(command) == 1, command
        assert "a folder or a device" in capsys.readouterr().err
    assert all(stat.S_ISFIFO(p.stat().st_mode) for p in tmp_path.iterdir())


def test_measured_costs_go_the_same_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from jali.compiler.cost import measured

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = tmp_path / "jali"
    folder.mkdir()
    victim = tmp_path / "victim"
    victim.write_text("precious")
    for leaf in (f"costs.json.{os.getpid()}.part", f"costs.json.{os.getpid()}-0.new"):
        (folder / leaf).symlink_to(victim)
    assert measured.keep("cpu", "w52", 12, {}) == folder / "costs.json"
    assert victim.read_text() == "precious" and (folder / "costs.json").stat().st_size > 0
