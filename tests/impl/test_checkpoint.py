"""Epochs are committed at once or not at all, found again, and never read when damaged."""

from __future__ import annotations

import dataclasses
import json
import resource

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thund import manifest as manifests
from thund import parquet
from thund.checkpoint import Checkpoints
from thund.definition import MemorySpec, Pipeline, StreamSpec, TumblingSpec, WatermarkSpec
from thund.epoch import INVALID_SCHEMA, LATE_SCHEMA, UNFIT_SCHEMA, Epoch, Outbox
from thund.history import History
from thund.manifest import Damaged
from thund.stores import open_store
from thund_contract.errors import CallerError, Fenced, LawBroken, StoreError
from thund_contract.vocabulary import (
    END,
    NEVER,
    NONE_BEFORE,
    Add,
    Aggregate,
    Clock,
    Config,
    Drain,
    Idle,
    PartitionState,
    Remove,
    Rows,
    WindowSpec,
)

CONFIG = Config("flights", "et", ("k",), WindowSpec(1000), (Aggregate("n", "count"),))
STATE = pa.schema({"k": pa.string(), "n": pa.int64()})
ROWS = pa.schema(
    {"_gar_id": pa.binary(16), "_epoch": pa.int64(), "_deleted": pa.bool_(), "n": pa.int64()}
)


def epoch(number, *, rows=1, late=1, last=None, drained=False):
    shown = {"_gar_id": [b"%016d" % i for i in range(rows)], "_epoch": [number] * rows}
    lane = {"partition": ["a"], "offset": [number], "event_time": [0], "watermark": [NEVER]}
    return Epoch(
        number=number,
        items=(Add("a"), Rows("a", number, number, 1)),
        watermark=END if drained else number,
        partitions=(
            PartitionState("a", True, number if last is None else last, number, number, 0, 0, 0),
            PartitionState("b", False, NONE_BEFORE, None, 0, 0, 0, 0),
        ),
        state={"operator-windows": pa.table({"k": ["x"], "n": [number]}, STATE)},
        outbox=Outbox(
            number,
            pa.table({**shown, "_deleted": [False] * rows, "n": [7] * rows}, ROWS),
            pa.table(lane, LATE_SCHEMA) if late else LATE_SCHEMA.empty_table(),
            INVALID_SCHEMA.empty_table(),
            UNFIT_SCHEMA.empty_table(),
        ),
        drained=drained,
    )


def engine(store, nonce="n1", *, config=CONFIG, durable=lambda name, number: None, recover=True):
    made = Checkpoints(store, config=config, definition={"name": "x"}, nonce=nonce, durable=durable)
    if recover:
        made.recover()
    return made


def committed(store, epochs, nonce="n1"):
    made = engine(store, nonce)
    for number in range(made.last + 1, epochs + 1):
        made.commit(epoch(number), source={"files": [number]})
    return made


@pytest.fixture(params=["memory", "disk"])
def store(request, tmp_path):
    return open_store("memory://" if request.param == "memory" else str(tmp_path))


# ---- what comes back -------------------------------------------------------------------------------


def test_required_an_epoch_comes_back_whole(store):
    made = engine(store)
    assert made.last == 0
    wanted = epoch(1, rows=3)
    made.commit(wanted, source={"files": ["a.csv", 12]})
    found = engine(store, "n2").recover()
    assert found is not None
    for name in ("number", "items", "watermark", "partitions", "state", "outbox", "drained"):
        assert getattr(found, name) == getattr(wanted, name), name
    assert found.manifest.source == {"files": ["a.csv", 12]}
    assert found.manifest.definition == {"name": "x"}
    assert found.manifest.positions == {"a": 1, "b": NONE_BEFORE}
    assert found.manifest.generation == found.manifest.nonce == "n1"


def test_required_empty_tables_keep_their_schemas(store):
    engine(store).commit(epoch(1, rows=0, late=0), source={})
    assert [name for name in store.list("epoch=1") if "outbox" in name] == [
        "epoch=1/outbox-rows-n1.parquet"
    ]
    outbox = History(store).outbox(1)
    assert outbox.rows.equals(ROWS.empty_table())
    assert outbox.rows.schema.equals(ROWS)
    assert outbox.late.schema.equals(LATE_SCHEMA)


def test_required_the_generation_is_born_with_the_first_manifest(store):
    assert committed(store, 1).generation == "n1"
    assert committed(store, 2, "n2").generation == "n1"
    assert [each.nonce for each in History(store).manifests()] == ["n1", "n2"]


def test_required_a_drain_is_marked(store):
    engine(store).commit(epoch(1, drained=True), source={})
    found = engine(store, "n2").recover()
    assert found is not None
    assert found.drained
    assert found.watermark == END


def test_required_another_start_goes_on_from_the_highest_number(store):
    """Compared as text, epoch 9 would come after epochs 10 and 11."""
    committed(store, 11)
    found = engine(store, "n2").recover()
    assert found is not None
    assert found.number == 11


@pytest.mark.parametrize("pointer", [None, b"", b"{", b'{"epoch":1,"nonce":"n1"}'])
def test_required_the_pointer_is_only_a_hint(store, pointer):
    committed(store, 3)
    store.delete("_thund_latest.json")
    if pointer is not None:
        store.put("_thund_latest.json", pointer)
    assert engine(store, "n2").last == 3


def test_required_folders_without_a_manifest_are_ignored(store):
    committed(store, 2)
    store.put("epoch=3/operator-windows-zz.parquet", b"half")
    store.put("epoch=4/_thund_checkpoint.json.00ff.tmp", b"half")
    store.put("epoch=x/_thund_checkpoint.json", b"not ours")
    made = committed(store, 3, "n2")
    assert made.last == 3
    assert History(store).manifest(3).nonce == "n2"


# ---- the order of a commit -------------------------------------------------------------------------


def test_required_steps_are_announced_when_their_files_are_there(store):
    seen = []

    def durable(name, number):
        files = {each.rpartition("/")[2] for each in store.list("epoch=1")}
        seen.append((name, number, files, store.exists("_thund_latest.json")))

    engine(store, durable=durable).commit(epoch(1), source={})
    state = {"operator-windows-n1.parquet"}
    outbox = state | {"outbox-rows-n1.parquet", "outbox-late-n1.parquet"}
    every = outbox | {"_thund_checkpoint.json"}
    assert seen == [
        ("state", 1, state, False),
        ("outbox", 1, outbox, False),
        ("manifest", 1, every, False),
        ("pointer", 1, every, True),
    ]


@pytest.mark.parametrize("step", ["state", "outbox", "manifest", "pointer"])
@pytest.mark.parametrize("at", [1, 2])
def test_required_a_death_leaves_the_epoch_whole_or_not_there(store, step, at):
    class Death(Exception):
        pass

    def durable(name, number):
        if (name, number) == (step, at):
            raise Death

    made = engine(store, durable=durable)
    if at == 2:
        made.commit(epoch(1), source={})
    with pytest.raises(Death):
        made.commit(epoch(at), source={})
    last = at if step in ("manifest", "pointer") else at - 1
    again = engine(store, "n2")
    assert again.last == last
    again.commit(epoch(last + 1), source={})
    found = engine(store, "n3").recover()
    assert found is not None
    assert found.state == epoch(last + 1).state
    assert found.manifest.generation == ("n2" if last == 0 else "n1")


def test_required_epochs_are_committed_in_order(store):
    made = committed(store, 1)
    for number in (1, 3):
        with pytest.raises(LawBroken, match=f"epoch {number} was to be committed after epoch 1"):
            made.commit(epoch(number), source={})
    with pytest.raises(LawBroken, match="before recovery"):
        engine(store, "n2", recover=False).commit(epoch(2), source={})


def test_required_a_disk_that_refuses_leaves_what_was_committed(tmp_path):
    store = open_store(str(tmp_path))
    made = committed(store, 1)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        with pytest.raises(StoreError, match="File too large"):
            made.commit(epoch(2, rows=5000), source={})
        assert engine(open_store(str(tmp_path)), "n2").last == 1
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    made.commit(epoch(2, rows=5000), source={})
    assert engine(store, "n3").last == 2


# ---- two engines -----------------------------------------------------------------------------------


def test_required_the_loser_names_the_winner_and_harms_nothing(store):
    committed(store, 1)
    slow, quick = engine(store, "slow"), engine(store, "quick")
    quick.commit(epoch(2, rows=2), source={})
    with pytest.raises(Fenced, match="another engine, quick") as caught:
        slow.commit(epoch(2, rows=9), source={})
    assert caught.value.code == "fenced"
    assert slow.last == 1
    found = engine(store, "n4").recover()
    assert found is not None
    assert found.outbox.rows.num_rows == 2


def test_required_a_zombie_is_fenced_after_collection(store):
    zombie = engine(store, "zombie")
    made = committed(store, 4, "heir")
    made.collect(1, {"sink": 4})
    with pytest.raises(Fenced, match="heir"):
        zombie.commit(epoch(1), source={})


def test_required_a_create_that_happened_unseen_counts(tmp_path):
    """The answer to the create is lost; the manifest that is found carries one's own nonce."""
    store = open_store(str(tmp_path))
    create = store.put_if_absent

    def lost(name, data):
        create(name, data)
        raise StoreError("time-out", allowed="an answer", where=name, action="try again")

    made = committed(store, 1)
    store.put_if_absent = lost
    with pytest.raises(StoreError, match="time-out"):
        made.commit(epoch(2), source={})
    store.put_if_absent = create
    with pytest.raises(StoreError, match=r"other (content|bytes)"):
        made.commit(epoch(2, last=99), source={})
    assert made.commit(epoch(2), source={}).epoch == made.last == 2


def test_required_recovery_lists_again_when_another_engine_collects(tmp_path):
    """Between the listing and the reading another engine goes on and removes what it needs."""
    store = open_store(str(tmp_path))
    committed(store, 1)
    read = store.get

    def meanwhile(name):
        if name.startswith("epoch=1/operator"):
            store.get = read
            committed(store, 3, "other").collect(1, {"sink": 3})
        return read(name)

    store.get = meanwhile
    found = engine(store, "n2", recover=False).recover()
    assert found is not None
    assert found.number == 3


# ---- damage ----------------------------------------------------------------------------------------


def flip(data):
    return data[:20] + bytes([data[20] ^ 1]) + data[21:]


DATA_KINDS = ["operator", "outbox-rows", "outbox-late"]


def refused(store, name):
    with pytest.raises(StoreError, match="committed epoch 2 cannot be read") as caught:
        engine(store, "n2")
    assert caught.value.code == "damaged"
    assert caught.value.where.endswith(name)
    assert "backup" in caught.value.action


def name_of(store, kind):
    (name,) = [each for each in store.list("epoch=2") if f"/{kind}" in each]
    return name


@pytest.mark.parametrize("kind", [*DATA_KINDS, "_thund_checkpoint"])
@pytest.mark.parametrize(
    "harm", [flip, lambda data: data[:-9], lambda data: b"", lambda data: data + b" "]
)
def test_required_damage_is_named_and_never_stepped_over(store, kind, harm):
    committed(store, 2)
    name = name_of(store, kind)
    store.put(name, harm(bytes(store.get(name))))
    refused(store, name)


@pytest.mark.parametrize("kind", DATA_KINDS)
def test_required_a_missing_file_is_named_and_never_stepped_over(store, kind):
    committed(store, 2)
    name = name_of(store, kind)
    store.delete(name)
    refused(store, name)


def test_required_every_flipped_byte_of_a_manifest_is_found():
    store = open_store("memory://")
    committed(store, 1)
    data = bytes(store.get("epoch=1/_thund_checkpoint.json"))
    assert manifests.decode(data, where="x").epoch == 1
    for place in range(len(data)):
        for bit in (1, 4, 32, 128):
            harmed = data[:place] + bytes([data[place] ^ bit]) + data[place + 1 :]
            with pytest.raises((Damaged, StoreError)):
                manifests.decode(harmed, where="x")


def test_required_a_manifest_in_the_wrong_folder_is_found(store):
    committed(store, 2)
    store.put("epoch=3/_thund_checkpoint.json", bytes(store.get("epoch=2/_thund_checkpoint.json")))
    with pytest.raises(StoreError, match="it is the manifest of epoch 2"):
        engine(store, "n2")


def test_required_a_removed_older_manifest_is_found(store):
    committed(store, 3)
    store.delete("epoch=2/_thund_checkpoint.json")
    with pytest.raises(StoreError, match="epoch 2 cannot be read: it is not there"):
        list(History(store).manifests())


# ---- whose state it is -----------------------------------------------------------------------------


def test_required_another_configuration_is_refused_field_by_field(store):
    committed(store, 1)
    other = dataclasses.replace(
        CONFIG, delay_ms=5, window=WindowSpec(2000), aggregates=(Aggregate("m", "count"),)
    )
    with pytest.raises(CallerError) as caught:
        engine(store, "n2", config=other)
    assert caught.value.code == "other_config"
    for part in (
        "delay_ms: 0 in the state, 5 now",
        "window.size_ms: 1000 in the state, 2000 now",
        "aggregates[0].name: 'n' in the state, 'm' now",
    ):
        assert part in caught.value.found
    assert "offset_ms" not in caught.value.found


def test_required_credits_may_change(store):
    committed(store, 1)
    assert engine(store, "n2", config=dataclasses.replace(CONFIG, credits=3)).last == 1


def test_required_another_pipeline_is_refused_by_name(store):
    committed(store, 1)
    with pytest.raises(CallerError, match="'flights'") as caught:
        engine(store, "n2", config=dataclasses.replace(CONFIG, pipeline="trains"))
    assert caught.value.code == "other_pipeline"


def test_required_another_format_version_is_refused(store):
    committed(store, 1)
    name = "epoch=1/_thund_checkpoint.json"
    body = json.loads(bytes(store.get(name)))
    store.put(name, json.dumps({**body, "format": 2, "news": 1}).encode())
    with pytest.raises(StoreError, match="format version 2") as caught:
        engine(store, "n2")
    assert caught.value.code == "other_format"


def test_required_the_fingerprint_is_that_of_the_pipeline():
    pipeline = Pipeline(
        name="x",
        source=StreamSpec(),
        watermark=WatermarkSpec(column="et", grace_ms=5),
        key=("k",),
        window=TumblingSpec(size_ms=1000),
        aggregates=(Aggregate("n", "count"),),
        sink=MemorySpec(),
    )
    assert manifests.fingerprint(pipeline.config()) == pipeline.fingerprint()
    changed = dataclasses.replace(pipeline.config(), credits=1)
    assert manifests.fingerprint(changed) == pipeline.fingerprint()
    changed = dataclasses.replace(pipeline.config(), delay_ms=1)
    assert manifests.fingerprint(changed) != pipeline.fingerprint()


@pytest.mark.parametrize("nonce", ["", "a/b", "a.b", "a#1", "x" * 65])
def test_required_a_nonce_is_part_of_a_file_name(nonce):
    with pytest.raises(CallerError, match="nonce"):
        engine(open_store("memory://"), nonce)


# ---- garbage ---------------------------------------------------------------------------------------


def names(store, number):
    return {each.rpartition("/")[2].split("-n")[0] for each in store.list(f"epoch={number}")}


def test_required_collection_keeps_manifests_and_what_is_needed(store):
    made = committed(store, 5)
    store.put("epoch=2/outbox-rows-loser.parquet", b"orphan")
    store.put("epoch=6/outbox-rows-nloser.parquet", b"above")
    made.collect(2, {"fast": 5, "slow": 2})
    assert names(store, 1) == names(store, 2) == {"_thund_checkpoint.json"}
    assert names(store, 3) == {"_thund_checkpoint.json", "outbox-rows", "outbox-late"}
    whole = {"_thund_checkpoint.json", "operator-windows", "outbox-rows", "outbox-late"}
    assert names(store, 4) == names(store, 5) == whole
    assert names(store, 6) == {"outbox-rows"}
    made.collect(1, {"fast": 5, "slow": 5})
    assert names(store, 3) == names(store, 4) == {"_thund_checkpoint.json"}
    assert engine(store, "n2").last == 5
    assert len(list(History(store).manifests())) == 5


def test_required_without_a_sink_outboxes_stay(store):
    made = committed(store, 3)
    made.collect(1, {})
    assert names(store, 1) == {"_thund_checkpoint.json", "outbox-rows", "outbox-late"}


def test_required_a_later_collection_finds_what_the_first_one_kept(store):
    made = committed(store, 3)
    assert made.collect(1, {"sink": 0}) == [
        f"epoch={number}/operator-windows-n1.parquet" for number in (1, 2)
    ]
    assert len(made.collect(1, {"sink": 3})) == 4
    assert made.collect(1, {"sink": 3}) == []


# ---- tables and items ------------------------------------------------------------------------------

items = st.lists(
    st.one_of(
        st.builds(Add, st.sampled_from("ab")),
        st.builds(Remove, st.sampled_from("ab")),
        st.builds(Clock, st.integers(-(2**63), 2**63 - 1)),
        st.just(Drain()),
        st.builds(Idle, st.lists(st.text(max_size=3), min_size=1).map(tuple)),
        st.builds(
            Rows,
            st.text(max_size=3),
            st.integers(0, 2**63 - 1),
            st.integers(0, 2**63 - 1),
            st.integers(1, 2**40),
        ),
    )
)


@given(items)
def test_required_items_come_back_in_their_order(wanted):
    assert manifests.unpack(manifests.pack(wanted)) == tuple(wanted)


@pytest.mark.parametrize(
    "column",
    [
        pa.array([0, 2**42, None], pa.timestamp("ms", "UTC")),
        pa.array([0, 2**32, None], pa.timestamp("s", "Europe/Paris")),
        pa.array([1000, 2000, None], pa.timestamp("ns")),
        pa.array([0, 86400000, None], pa.date64()),
        pa.array([1, 2, None], pa.time32("s")),
        pa.array([1000, 2000, None], pa.duration("ns")),
        pa.array([0, 2**64 - 1, None], pa.uint64()),
        pa.array([0.0, -0.0, float("inf"), None], pa.float16()),
        pa.array(["", "ä", None], pa.large_string()),
        pa.array(["", "ä", None], pa.string_view()),
        pa.array([b"", b"\x00", None], pa.binary()),
        pa.array([b"a" * 16, b"b" * 16, None], pa.binary(16)),
        pa.array(["a", "b", "a", None]).dictionary_encode(),
        pa.array([7, 8, None], pa.int8())
        .dictionary_encode()
        .cast(pa.dictionary(pa.int8(), pa.int8())),
        pa.array([1, -2, None], pa.decimal256(60, 3)),
        pa.array([[1], [], None], pa.list_(pa.int32())),
        pa.nulls(3),
        pa.array([True, False, None]),
    ],
    ids=lambda column: str(column.type),
)
def test_required_tables_come_back_with_their_exact_schema(column):
    schema = pa.schema([pa.field("x", column.type, metadata={"a": "b"})], metadata={"c": "d"})
    table = pa.table([column], schema=schema)
    for wanted in (table, table.slice(0, 0), table.slice(1)):
        found = parquet.decode(parquet.encode(wanted))
        assert found.schema.equals(wanted.schema, check_metadata=True)
        assert found.column(0).to_pylist() == wanted.column(0).to_pylist()
