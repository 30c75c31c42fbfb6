"""Stores keep their word on a real disk and in memory: whole files, one creator, durable order."""

from __future__ import annotations

import os
import resource
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from thund.stores import MISSING, Disk, DiskStore, ObjectStore, Store, open_store, probe
from thund_contract.errors import CallerError, StoreError


@pytest.fixture(params=["memory", "disk", "file"])
def store(request, tmp_path) -> Store:
    if request.param == "memory":
        return open_store("memory://")
    prefix = "file://" if request.param == "file" else ""
    return open_store(f"{prefix}{tmp_path}/root")


class Recorder(Disk):
    """A disk that also writes down each step."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.steps: list[str] = []

    def write_new(self, name, data):
        self.steps.append(f"write {name}")
        super().write_new(name, data)

    def write(self, name, data):
        self.steps.append(f"write {name}")
        super().write(name, data)

    def sync_file(self, name):
        self.steps.append(f"sync {name}")
        super().sync_file(name)

    def sync_folder(self, name):
        self.steps.append(f"sync {name}/")
        super().sync_folder(name)

    def rename_new(self, old, new):
        self.steps.append(f"rename {old} {new}")
        super().rename_new(old, new)


def test_required_put_if_absent_keeps_the_first(store):
    assert store.put_if_absent("epoch=1/m.json", b"first")
    assert not store.put_if_absent("epoch=1/m.json", b"second")
    assert bytes(store.get("epoch=1/m.json")) == b"first"
    assert store.list("epoch=1") == ["epoch=1/m.json"]


def test_required_files_can_be_listed_read_and_removed(store):
    store.put_files({"epoch=2/a.parquet": b"a", "epoch=10/b.parquet": memoryview(b"bb")})
    store.put("_thund_latest.json", b"1")
    store.put("_thund_latest.json", b"2")
    assert bytes(store.get("_thund_latest.json")) == b"2"
    assert sorted(store.folders()) == ["epoch=10", "epoch=2"]
    assert store.exists("epoch=10/b.parquet")
    store.delete("epoch=10/b.parquet")
    store.delete("epoch=10/b.parquet")
    assert not store.exists("epoch=10/b.parquet")
    assert store.list("epoch=10") == store.list("epoch=3") == []


def test_required_a_missing_file_has_its_own_code(store):
    with pytest.raises(StoreError, match="not there") as caught:
        store.get("epoch=1/none")
    assert caught.value.code == MISSING


def test_required_a_data_file_is_never_changed(store):
    store.put_files({"epoch=1/a": b"same"})
    store.put_files({"epoch=1/a": b"same"})
    with pytest.raises(StoreError, match="other bytes") as caught:
        store.put_files({"epoch=1/a": b"else"})
    assert caught.value.code == "name_taken"
    assert bytes(store.get("epoch=1/a")) == b"same"


def test_required_one_of_many_creators_wins(tmp_path):
    stores = [open_store(str(tmp_path)) for _ in range(8)]
    for key in range(20):
        with ThreadPoolExecutor(8) as pool:
            made = list(
                pool.map(
                    lambda i, key=key: stores[i].put_if_absent(f"epoch={key}/m", b"%d" % i),
                    range(8),
                )
            )
        assert made.count(True) == 1
        assert bytes(stores[0].get(f"epoch={key}/m")) == b"%d" % made.index(True)
        assert stores[0].list(f"epoch={key}") == [f"epoch={key}/m"]


def test_required_a_file_appears_after_its_bytes_are_durable(tmp_path):
    disk = Recorder(tmp_path)
    assert DiskStore(str(tmp_path), disk).put_if_absent("epoch=1/m", b"x")
    write, sync, rename, *folders = disk.steps
    temporary = write.removeprefix("write ")
    assert temporary.startswith("epoch=1/m.")
    assert sync == f"sync {temporary}"
    assert rename == f"rename {temporary} epoch=1/m"
    assert folders == ["sync epoch=1/", "sync /"]


def test_required_data_files_are_durable_before_the_call_ends(tmp_path):
    disk = Recorder(tmp_path)
    DiskStore(str(tmp_path), disk).put_files({"epoch=1/a": b"a", "epoch=1/b": b"b"})
    files = ["write epoch=1/a", "sync epoch=1/a", "write epoch=1/b", "sync epoch=1/b"]
    assert disk.steps == [*files, "sync epoch=1/", "sync /"]


def test_required_the_system_is_asked_to_sync(tmp_path, monkeypatch):
    """What reaches the kernel, and whether the file had its name by then."""
    seen = []
    real = os.fsync

    def watched(descriptor):
        path = Path(f"/proc/self/fd/{descriptor}").readlink().relative_to(tmp_path)
        seen.append((str(path)[:9], (tmp_path / "epoch=1/m").exists()))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", watched)
    store = open_store(str(tmp_path))
    store.put_if_absent("epoch=1/m", b"x")
    assert seen == [("epoch=1/m", False), ("epoch=1", True), (".", True)]
    seen.clear()
    store.confirm("epoch=1/m")
    assert seen == [("epoch=1/m", True), ("epoch=1", True)]
    seen.clear()
    store.put_files({"epoch=1/n": b"x"})
    assert seen == [("epoch=1/n", True), ("epoch=1", True)]


def test_required_a_file_that_could_not_be_synced_is_written_anew(tmp_path):
    class Failing(Recorder):
        fail = True

        def sync_file(self, name):
            super().sync_file(name)
            if self.fail:
                self.fail = False
                raise OSError(5, "Input/output error")

    disk = Failing(tmp_path)
    store = DiskStore(str(tmp_path), disk)
    with pytest.raises(StoreError, match="Input/output error"):
        store.put_files({"epoch=1/a": b"a"})
    store.put_files({"epoch=1/a": b"a"})
    assert disk.steps.count("write epoch=1/a") == 2
    assert bytes(store.get("epoch=1/a")) == b"a"


def test_required_probe_leaves_nothing_behind(store):
    probe(store, "abc")
    assert store.list("") == []


def test_required_a_store_that_overwrites_is_refused():
    class Overwriting(ObjectStore):
        """As a server that ignores If-None-Match."""

        def put_if_absent(self, name, data):
            self.put(name, data)
            return True

    whole = open_store("memory://")
    assert isinstance(whole, ObjectStore)
    with pytest.raises(StoreError, match="created one key twice") as caught:
        probe(Overwriting("s3://shared", whole._backend), "abc")
    assert caught.value.code == "no_put_if_absent"
    assert "s3://shared" in caught.value.where


@pytest.mark.parametrize(
    "root", ["", " ", "s3://bucket/x", "memory://x", "file://host/x", "ftp://x"]
)
def test_required_other_addresses_are_refused(root):
    with pytest.raises(CallerError, match="no address of a store"):
        open_store(root)


def test_required_a_root_is_made_only_in_a_folder_that_exists(tmp_path):
    open_store(str(tmp_path / "new"))
    assert (tmp_path / "new").is_dir()
    with pytest.raises(StoreError) as caught:
        open_store(str(tmp_path / "none" / "new"))
    assert caught.value.code == MISSING
    assert "create the parent folder" in caught.value.action


def test_required_a_file_in_place_of_the_folder_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    for root in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(StoreError, match="could not open"):
            open_store(str(root))


def test_required_a_folder_that_cannot_be_written_is_an_error():
    """The kernel's own folder refuses new files to every user, root too."""
    with pytest.raises(StoreError) as caught:
        probe(open_store("/sys/kernel"), "abc")
    assert caught.value.code in ("eacces", "eperm", "erofs")
    assert "/sys/kernel" in caught.value.where


def test_required_a_refused_write_leaves_no_part_of_a_file(tmp_path):
    """The system's own limit on a file's size stands for a disk that is full."""
    store = open_store(str(tmp_path))
    store.put_if_absent("epoch=1/m", b"small")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        for write in (store.put_if_absent, store.put):
            with pytest.raises(StoreError, match="File too large") as caught:
                write("epoch=2/m", bytes(10000))
            assert caught.value.code == "efbig"
        with pytest.raises(StoreError, match="File too large"):
            store.put_files({"epoch=2/m": bytes(10000)})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert list((tmp_path / "epoch=2").iterdir()) == []
    assert store.put_if_absent("epoch=2/m", bytes(10000))
    assert bytes(store.get("epoch=1/m")) == b"small"
