"""Fetching from a real HTTP server on this machine."""

import hashlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.error import URLError

import pytest
import torchvision

from fedfreeze.errors import ConfigError, StateError
from tasks.download import Download, downloads_of, fetch
from tasks.registry import TASKS

CONTENT = bytes(range(256)) * 5000  # more than one piece


class Server:
    """Serves one content; counts, can break off, and can ignore ranges."""

    def __init__(self):
        self.content, self.breaks_after, self.ranges, self.requests = CONTENT, None, True, []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                outer.answer(self)

            def log_message(self, *args):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(
            target=self.server.serve_forever, kwargs={"poll_interval": 0.01}
        )
        self.thread.start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server.server_port}/set.bin"

    def answer(self, request):
        wanted = request.headers.get("Range")
        self.requests.append(wanted)
        start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and self.ranges else 0
        if request.path == "/none.bin":
            request.send_error(404)
            return
        rest = self.content[start:]
        request.send_response(206 if start else 200)
        request.send_header("Content-Length", str(len(rest)))
        request.end_headers()
        request.wfile.write(rest if self.breaks_after is None else rest[: self.breaks_after])

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def server():
    server = Server()
    yield server
    server.close()


def wanted(server, **changes):
    good = {
        "url": server.url,
        "file": "folder/set.bin",
        "sha256": hashlib.sha256(CONTENT).hexdigest(),
        "bytes": len(CONTENT),
    }
    return Download(**{**good, **changes})


def test_a_file_arrives_whole_under_its_name(server, tmp_path):
    (path,) = fetch([wanted(server)], tmp_path)
    assert path == tmp_path / "folder/set.bin"
    assert path.read_bytes() == CONTENT
    assert [p.name for p in path.parent.iterdir()] == ["set.bin"]


def test_the_weaker_checksum_serves_where_no_other_is_published(server, tmp_path):
    md5 = hashlib.md5(CONTENT).hexdigest()
    (path,) = fetch([wanted(server, sha256="", md5=md5)], tmp_path)
    assert path.read_bytes() == CONTENT


def test_a_file_that_is_there_is_not_fetched_again(server, tmp_path):
    fetch([wanted(server)], tmp_path)
    fetch([wanted(server)], tmp_path)
    assert len(server.requests) == 1


def test_a_damaged_file_is_fetched_again(server, tmp_path):
    (path,) = fetch([wanted(server)], tmp_path)
    path.write_bytes(bytes(len(CONTENT)))
    fetch([wanted(server)], tmp_path)
    assert path.read_bytes() == CONTENT


def test_progress_is_told(server, tmp_path):
    told = []
    fetch([wanted(server)], tmp_path, progress=lambda download, done: told.append(done))
    assert told == sorted(told)
    assert told[-1] == len(CONTENT)


def test_what_broke_off_is_continued_where_it_ended(server, tmp_path):
    server.breaks_after = 1000
    with pytest.raises(ConfigError) as caught:
        fetch([wanted(server)], tmp_path)
    assert str(caught.value) == (
        f"{server.url}: expected 1280000 bytes, the connection ended after 1000; "
        "run the command again to go on from there"
    )
    assert not (tmp_path / "folder/set.bin").exists()
    server.breaks_after = None
    (path,) = fetch([wanted(server)], tmp_path)
    assert path.read_bytes() == CONTENT
    assert server.requests == [None, "bytes=1000-"]


def test_a_server_that_cannot_continue_begins_anew(server, tmp_path):
    server.breaks_after = 1000
    with pytest.raises(ConfigError):
        fetch([wanted(server)], tmp_path)
    server.breaks_after, server.ranges = None, False
    (path,) = fetch([wanted(server)], tmp_path)
    assert path.read_bytes() == CONTENT


def test_other_content_of_the_same_size_is_refused_and_leaves_nothing(server, tmp_path):
    server.content = bytes(len(CONTENT))
    with pytest.raises(StateError) as caught:
        fetch([wanted(server)], tmp_path)
    assert str(caught.value) == (
        f"{server.url}: what came has another checksum than the published file; run the command "
        "again; if it stays so, the file was changed on the way or at its publisher"
    )
    assert list((tmp_path / "folder").iterdir()) == []


def test_more_than_was_published_is_not_written(server, tmp_path):
    server.content = CONTENT + b"more"
    with pytest.raises(StateError) as caught:
        fetch([wanted(server)], tmp_path)
    assert str(caught.value) == (
        f"{server.url}: expected 1280000 bytes, got more; the publisher changed the file, or "
        "something answers in its place"
    )
    assert (tmp_path / "folder/set.bin.part").stat().st_size == 0


def test_an_address_without_a_file_says_so(server, tmp_path):
    download = wanted(server, url=server.url.replace("set", "none"))
    with pytest.raises(ConfigError) as caught:
        fetch([download], tmp_path)
    assert str(caught.value) == (
        f"{download.url}: cannot be fetched: 404 Not Found; run the command again, or fetch it by "
        f"other means and put it at {tmp_path}/folder/set.bin"
    )


def test_a_network_that_is_not_there_says_what_to_do(server, tmp_path):
    def unplugged(request):
        raise URLError("Name or service not known")

    with pytest.raises(ConfigError) as caught:
        fetch([wanted(server)], tmp_path, opener=unplugged)
    assert str(caught.value) == (
        f"{server.url}: cannot be fetched: Name or service not known; run the command again, or "
        f"fetch it by other means and put it at {tmp_path}/folder/set.bin"
    )


def test_a_folder_that_cannot_be_written_is_named(server, tmp_path):
    (tmp_path / "folder").touch()
    with pytest.raises(ConfigError) as caught:
        fetch([wanted(server)], tmp_path)
    assert str(caught.value) == (
        f"{tmp_path}/folder: expected to write there, got: File exists; "
        "make room, or name another folder"
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"file": "../set.bin"},
            "download: expected a path below a data folder, got '../set.bin'",
        ),
        (
            {"file": "/etc/passwd"},
            "download: expected a path below a data folder, got '/etc/passwd'",
        ),
        (
            {"url": "file:///etc/passwd"},
            "download: expected an http or https address, got 'file:///etc/passwd'",
        ),
        ({"sha256": ""}, "download: http://x/y needs a checksum and its size in bytes"),
        ({"bytes": 0}, "download: http://x/y needs a checksum and its size in bytes"),
    ],
)
def test_a_download_that_cannot_be_checked_is_refused(changes, message):
    good = {"url": "http://x/y", "file": "set.bin", "sha256": "0" * 64, "bytes": 1}
    with pytest.raises(ConfigError) as caught:
        Download(**{**good, **changes})
    assert str(caught.value) == message


def published(dataset):
    """File name and md5 of each of torchvision's resources."""
    resources = dataset.resources
    return dict(resources.values() if isinstance(resources, dict) else resources)


def test_checksums_are_those_that_torchvision_publishes():
    ours = {
        download.file.rpartition("/")[2]: (download.md5, download.file)
        for name in ("fashion-cnn", "mnist-writers")
        for download in downloads_of(name)
        if "FashionMNIST" in download.file
    }
    theirs = published(torchvision.datasets.FashionMNIST)
    assert {name: md5 for name, (md5, _) in ours.items()} == theirs
    digits = {d.file: d.md5 for d in downloads_of("mnist-writers")}
    mnist = {
        f"MNIST/raw/{name}": md5 for name, md5 in published(torchvision.datasets.MNIST).items()
    }
    qmnist = {
        f"QMNIST/raw/{url.rpartition('/')[2]}": md5
        for half in ("train", "test")
        for url, md5 in torchvision.datasets.QMNIST.resources[half]
        if "labels" in url
    }
    assert digits == mnist | qmnist


@pytest.mark.parametrize("name", sorted(TASKS))
def test_each_task_says_what_can_be_fetched(name):
    assert all(isinstance(download, Download) for download in downloads_of(name))


def test_a_task_of_the_users_own_has_nothing_to_fetch():
    assert downloads_of("my_package.my_task") == ()


def test_an_unknown_task_is_an_error():
    with pytest.raises(ConfigError, match=r'^unknown task "cifar11"; the tasks are '):
        downloads_of("cifar11")
