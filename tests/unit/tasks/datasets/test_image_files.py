"""Image files in folders and archives."""

import io
import re
import tarfile
import zipfile

import numpy as np
import pytest
from PIL import Image

import tasks.datasets.image_files as module
from fedfreeze.errors import StateError
from tasks.datasets.image_files import decode, files_in

ANY = re.compile(r".*\.png")


def picture(pixels) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(np.asarray(pixels, np.uint8)).save(buffer, "PNG")
    return buffer.getvalue()


RED_AND_BLUE = [[[255, 0, 0], [0, 0, 255]], [[0, 0, 0], [9, 8, 7]]]


def as_folder(tmp_path, files):
    for name, content in files.items():
        path = tmp_path / "set" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return tmp_path / "set"


def as_zip(tmp_path, files):
    with zipfile.ZipFile(tmp_path / "set.zip", "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return tmp_path / "set.zip"


def as_tar(tmp_path, files):
    with tarfile.open(tmp_path / "set.tar.xz", "w:xz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return tmp_path / "set.tar.xz"


@pytest.mark.parametrize("written", [as_folder, as_zip, as_tar])
def test_only_wanted_files_are_listed_in_the_order_of_their_names(tmp_path, written):
    files = {"b/2.png": b"two", "a/1.png": b"one", "a/notes.txt": b"none"}
    found = files_in(written(tmp_path, files), ANY)
    assert found.names == ("a/1.png", "b/2.png")
    assert [found.read(name) for name in found.names] == [b"one", b"two"]


@pytest.mark.parametrize("written", [as_folder, as_zip, as_tar])
def test_a_large_file_is_refused_before_it_is_read(tmp_path, written, monkeypatch):
    monkeypatch.setattr(module, "_MOST_BYTES", 10)
    path = written(tmp_path, {"a.png": b"x" * 11})
    with pytest.raises(StateError) as caught:
        files_in(path, ANY).read("a.png")
    assert str(caught.value) == (f"{path}: a.png: expected a small file, at most 10 bytes, got 11")


@pytest.mark.parametrize("written", [as_folder, as_zip, as_tar])
def test_too_many_files_are_refused(tmp_path, written, monkeypatch):
    monkeypatch.setattr(module, "_MOST_FILES", 1)
    path = written(tmp_path, {"a.png": b"", "b.png": b""})
    with pytest.raises(StateError) as caught:
        files_in(path, ANY)
    assert str(caught.value) == f"{path}: expected at most 1 images, got more"


def test_a_link_in_a_tar_archive_is_not_followed(tmp_path):
    (tmp_path / "secret.png").write_bytes(b"secret")
    path = tmp_path / "set.tar"
    with tarfile.open(path, "w") as archive:
        link = tarfile.TarInfo("a.png")
        link.type, link.linkname = tarfile.SYMTYPE, str(tmp_path / "secret.png")
        archive.addfile(link)
    assert files_in(path, ANY).names == ()


def test_an_archive_with_paths_to_elsewhere_writes_nothing(tmp_path):
    path = as_tar(tmp_path, {"../outside.png": b"x"})
    assert files_in(path, ANY).read("../outside.png") == b"x"
    assert not (tmp_path.parent / "outside.png").exists()


def test_images_become_planes_of_red_green_and_blue(tmp_path):
    files = files_in(as_folder(tmp_path, {"a.png": picture(RED_AND_BLUE)}), ANY)
    planes = np.empty((1, 3, 2, 2), np.uint8)
    decode(files, ["a.png"], planes)
    assert planes[0].tolist() == [[[255, 0], [0, 9]], [[0, 0], [0, 8]], [[0, 255], [0, 7]]]


def test_a_grey_image_has_three_equal_planes(tmp_path):
    files = files_in(as_folder(tmp_path, {"a.png": picture([[5, 6], [7, 8]])}), ANY)
    planes = np.empty((1, 3, 2, 2), np.uint8)
    decode(files, ["a.png"], planes)
    assert planes[0].tolist() == [[[5, 6], [7, 8]]] * 3


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", "expected a JPEG or PNG image"),
        (b"GIF89a", "expected a JPEG or PNG image"),
        (picture(RED_AND_BLUE)[:-30], "cannot be read: image file is truncated"),
    ],
)
def test_what_is_no_whole_image_is_refused(tmp_path, content, what):
    folder = as_folder(tmp_path, {"a.png": content})
    with pytest.raises(StateError) as caught:
        decode(files_in(folder, ANY), ["a.png"], np.empty((1, 3, 2, 2), np.uint8))
    assert str(caught.value) == f"{folder}: a.png: {what}; fetch the file again"


@pytest.mark.parametrize(
    ("at", "value", "what"),
    [
        (6, 1, "File 'a.png' is encrypted, password required for extraction"),
        (8, 97, "That compression method is not supported"),
    ],
)
def test_a_zip_archive_that_python_cannot_unpack_is_refused(tmp_path, at, value, what):
    path = as_zip(tmp_path, {"a.png": picture(RED_AND_BLUE)})
    raw = bytearray(path.read_bytes())
    raw[raw.index(b"PK\x01\x02") + at + 2] = value  # a member's flags, and its method
    raw[at] = value
    path.write_bytes(raw)
    with pytest.raises(StateError) as caught:
        files_in(path, ANY).read("a.png")
    assert str(caught.value) == f"{path}: a.png: cannot be read: {what}; fetch the file again"


def test_a_tar_archive_that_would_fill_the_memory_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_MOST_TAR_BYTES", 10)
    path = as_tar(tmp_path, {"a.png": b"123456", "b.png": b"12345"})
    with pytest.raises(StateError) as caught:
        files_in(path, ANY)
    assert str(caught.value) == (
        f"{path}: expected at most 10 bytes of images, got more; unpack it and name the folder"
    )
