"""Files as logs: the order of partitions, what a later read sees, and each way a file can be wrong."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thund.batch import UNREADABLE_TIME
from thund.builder import count, files, max_, memory, pipeline
from thund.connectors import text
from thund.connectors.files import FileSource, open_files
from thund.definition import Pipeline
from thund_contract.errors import CallerError, InputError, ThundError

EXAMPLES = Path(__file__).parents[2] / "examples"
PLENTY = 1 << 40


def source(path, *, event_time="et", columns=None, bounded=True, **options):
    return FileSource(
        files(path, **options), event_time=event_time, columns=columns, bounded=bounded
    )


def start(s):
    return dict.fromkeys(s.partitions(), -1)


def read_all(s, after=None, *, max_rows=1000, credit=None):
    """All rows from `after` on as (partition, offset, prev, columns), which moves with them."""
    after = start(s) if after is None else after
    rows = []
    while True:
        d = s.read(after, credit or dict.fromkeys(after, PLENTY), max_rows)
        if d is None or d.num_rows == 0:
            return rows
        assert d.columns.schema.equals(s.schema)
        assert d.num_rows <= max_rows
        places = [d.partitions[p] for p in d.partition]
        rows += zip(places, d.offset.tolist(), d.prev.tolist(), d.columns.to_pylist(), strict=True)
        after.update({name: last for name, (_, last) in d.by_partition().items()})


def identity(rows):
    return [f"{p}{o}" for p, o, _, _ in rows]


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of a few lines, so that a small file has many."""
    opened = FileSource._open

    def open_small(self, held):
        opened(self, held)
        for log in self._files.values():
            for file in log.files:
                file._block_bytes = 40

    monkeypatch.setattr(FileSource, "_open", open_small)


@pytest.fixture
def three(tmp_path):
    """Three partitions whose rows say when they were sent."""
    for name, sent in (("a", [1, 1, 9, 2]), ("b", [0, 3]), ("c", [1, 1, 1])):
        rows = "".join(f"{10 * i},{s},{name}{i}\n" for i, s in enumerate(sent))
        write(tmp_path / "in" / f"{name}.csv", "et,sent,id\n" + rows)
    return tmp_path / "in"


# ---- order -------------------------------------------------------------------------------------


def test_required_rows_come_by_chunk_partition_and_offset(three):
    rows = read_all(source(three, chunk_rows=2))
    assert identity(rows) == ["a0", "a1", "b0", "b1", "c0", "c1", "a2", "a3", "c2"]
    assert [r["id"] for *_, r in rows] == identity(rows)


def test_required_heads_are_merged_by_the_order_column_and_never_sorted(three):
    rows = read_all(source(three, order_by="sent"))
    assert identity(rows) == ["b0", "a0", "a1", "c0", "c1", "c2", "b1", "a2", "a3"]


def test_required_a_null_in_the_order_column_goes_out_at_once(tmp_path):
    write(tmp_path / "a.csv", "et,sent\n0,5\n1,\n2,7\n")
    write(tmp_path / "b.csv", "et,sent\n0,4\n1,5\n2,6\n")
    assert identity(read_all(source(tmp_path, order_by="sent"))) == [
        "b0",
        "a0",
        "a1",
        "b1",
        "b2",
        "a2",
    ]


def log_rows(draw, column):
    """Rows of up to four partitions with an order column that is not sorted and has nulls."""
    values = st.lists(st.none() | column, max_size=9)
    return {name: draw(values) for name in "abcd"[: draw(st.integers(1, 4))]}


def merged(logs, chunk, order):
    """S5 as it is written, row by row."""
    if order is None:
        return sorted(
            ((o // chunk, p, o) for p, log in logs.items() for o in range(len(log)))
        ), lambda row: f"{row[1]}{row[2]}"
    at, out = dict.fromkeys(logs, 0), []
    while heads := [
        ((log[at[p]] is not None, log[at[p]] or 0), p)
        for p, log in logs.items()
        if at[p] < len(log)
    ]:
        _, p = min(heads)
        out.append(f"{p}{at[p]}")
        at[p] += 1
    return out, str


@settings(max_examples=40)
@given(st.data())
def test_required_order_credit_and_cuts_against_the_plain_rule(tmp_path_factory, data):
    """From any point that a prefix reaches, with any credit, in any pieces: the same rows."""
    logs = log_rows(data.draw, data.draw(st.sampled_from([st.integers(-2, 2), st.floats(-1, 1)])))
    order = data.draw(st.sampled_from([None, "sent"]))
    chunk = data.draw(st.integers(1, 4))
    folder = tmp_path_factory.mktemp("logs")
    kind = (
        pa.float64()
        if any(isinstance(v, float) for log in logs.values() for v in log)
        else pa.int64()
    )
    for name, log in logs.items():
        table = pa.table({"et": pa.array(range(len(log)), pa.int64()), "sent": pa.array(log, kind)})
        pq.write_table(
            table, folder / f"{name}.parquet", row_group_size=data.draw(st.integers(1, 4))
        )
    s = source(folder, chunk_rows=chunk, order_by=order)
    whole, shown = merged(logs, chunk, order)
    whole = [shown(row) for row in whole]
    after = start(s)
    credit = {p: data.draw(st.integers(0, 9)) for p in logs}
    got, left, pieces = [], dict(credit), data.draw(st.integers(1, 5))
    while (d := s.read(after, left, pieces)) is not None and d.num_rows:
        for name, (rows, last) in d.by_partition().items():
            assert d.prev[d.partition == d.partitions.index(name)][0] == after[name]
            after[name], left[name] = last, left[name] - rows
        got += [f"{d.partitions[p]}{o}" for p, o in zip(d.partition, d.offset, strict=True)]
    assert got == whole[: len(got)]
    if len(got) < len(whole):
        assert d is not None, "rows that wait for credit are not the end"
        assert left[whole[len(got)][0]] == 0
    assert (
        got + identity(read_all(source(folder, chunk_rows=chunk, order_by=order), after)) == whole
    )
    shutil.rmtree(folder)


def test_required_reading_again_from_anywhere_gives_the_same_rows(three):
    s = source(three, order_by="sent")
    rows = read_all(s, max_rows=2)
    assert read_all(s) == rows
    assert read_all(s, {"a": 1, "b": -1, "c": 2}) == [
        r for r in rows if r[1] > {"a": 1, "b": -1, "c": 2}[r[0]]
    ]


def test_required_a_partition_that_is_not_asked_for_is_not_read(three):
    assert identity(read_all(source(three), {"b": 0})) == ["b1"]


def test_required_columns_of_a_row_stay_together_across_many_buffers(tmp_path):
    """Long runs are joined and short ones taken: both, with buffers that end in between."""
    rng = np.random.default_rng(5)
    sent = np.sort(rng.integers(0, 50_000, 150_000))
    owner = np.where(sent % 20_000 < 10_000, 0, rng.integers(0, 3, len(sent)))
    for place, name in enumerate("abc"):
        mine = sent[owner == place]
        ids = [f"{name}{i}" for i in range(len(mine))]
        pq.write_table(
            pa.table({"et": mine, "sent": mine, "id": ids}),
            tmp_path / f"{name}.parquet",
            row_group_size=30_000,
        )
    s = source(tmp_path, order_by="sent")
    after, got = start(s), []
    while (d := s.read(after, dict.fromkeys(after, PLENTY), 70_000)) is not None:
        after.update({name: last for name, (_, last) in d.by_partition().items()})
        names = np.array(d.partitions)[d.partition]
        want = np.char.add(names, d.offset.astype(str))
        assert d.columns.column("id").to_pylist() == want.tolist()
        assert (d.prev == d.offset - 1).all()
        got.append(d.columns.column("sent").to_numpy())
    assert (np.concatenate(got) == sent).all()


# ---- partitions --------------------------------------------------------------------------------


def test_required_a_folder_is_one_log_of_its_files_in_name_order(tmp_path):
    write(tmp_path / "x" / "2.csv", "et\n30\n")
    write(tmp_path / "x" / "1.csv", "et\n10\n20\n")
    write(tmp_path / "y" / "1.csv", "et\n5\n")
    (tmp_path / "empty").mkdir()
    s = source(tmp_path, partition_by="folder")
    assert [(p, o, r["et"]) for p, o, _, r in read_all(s)] == [
        ("x", 0, 10),
        ("x", 1, 20),
        ("x", 2, 30),
        ("y", 0, 5),
    ]
    assert s.read_rows("x", 1, 2).column("et").to_pylist() == [20, 30]


@pytest.mark.parametrize("order_by", [None, "et"])
def test_required_a_column_divides_a_log_and_offsets_stay_row_numbers(
    tmp_path, small_blocks, order_by
):
    origins = "bbabcbbbbbbbbbbbbbbbbbbba"
    write(tmp_path / "in.csv", "et,o\n" + "".join(f"{i},{o}\n" for i, o in enumerate(origins)))
    s = source(
        tmp_path, partition_by="column", partition_column="o", order_by=order_by, chunk_rows=4
    )
    assert s.partitions() == ("a", "b", "c")
    rows = read_all(s)
    want = sorted(
        (0 if order_by else i // 4, "" if order_by else o, i) for i, o in enumerate(origins)
    )
    assert [r["et"] for *_, r in rows] == [i for *_, i in want]
    for name in "abc":
        mine = [(o, before) for p, o, before, _ in rows if p == name]
        offsets = [i for i, o in enumerate(origins) if o == name]
        assert mine == list(zip(offsets, [-1, *offsets], strict=False))
    assert s.read_rows("a", 2, 24).column("et").to_pylist() == [2, 24]
    assert read_all(s, {"a": 2, "b": 23, "c": 4})[0][:3] == ("a", 24, 2)


def test_required_a_row_without_a_partition_is_named(tmp_path):
    write(tmp_path / "in.jsonl", '{"et":1,"o":"a"}\n{"et":2}\n')
    with pytest.raises(InputError) as caught:
        source(tmp_path, partition_by="column", partition_column="o").partitions()
    assert caught.value.where.endswith("offset 1")


# ---- formats -----------------------------------------------------------------------------------

ROWS = [
    {"et": 1, "k": "x,\u00e9", "v": 1.5},
    {"et": None, "k": "y", "v": None},
    {"et": -7, "k": "z", "v": 2.0},
]
CSV = 'et,k,v\r\n1,"x,\u00e9",1.5\r\n\r\n,y,\r\n-7,z,2.0\r\n'


def compressed(path, data):
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(data))
    elif path.suffix == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("inner.txt", data)
    elif path.suffix in {".zst", ".bz2"}:
        kind = {".zst": "zstd", ".bz2": "bz2"}[path.suffix]
        with pa.output_stream(str(path), compression=kind) as out:
            out.write(data)
    else:
        path.write_bytes(data)


@pytest.mark.parametrize("suffix", ["", ".gz", ".zip", ".zst", ".bz2"])
@pytest.mark.parametrize("kind", ["csv", "jsonl", "ndjson"])
def test_required_every_text_format_gives_the_same_rows(tmp_path, small_blocks, kind, suffix):
    data = CSV if kind == "csv" else "\n".join(map(json.dumps, ROWS)) + "\n \n"
    compressed(tmp_path / f"p.{kind}{suffix}", data.encode())
    s = source(tmp_path)
    got = read_all(s)
    assert identity(got) == ["p0", "p1", "p2"]
    assert [{**r, UNREADABLE_TIME: False} for r in ROWS] == [r for *_, r in got]
    s.fingerprint({"p": 1})
    mark = json.loads(json.dumps(s.fingerprint({"p": 2})))
    again = source(tmp_path)
    again.verify(mark)
    assert read_all(again, {"p": 0}) == got[1:]
    assert again.read_rows("p", 1, 2).to_pylist() == [r for *_, r in got[1:]]


def test_required_a_byte_order_mark_is_no_part_of_a_name(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"\xef\xbb\xbfet\n5\n")
    assert read_all(source(tmp_path))[0][3]["et"] == 5


def test_required_a_parquet_dictionary_and_narrow_integers_widen(tmp_path):
    pq.write_table(
        pa.table({"et": pa.array([1], pa.int32()), "k": pa.array(["x"]).dictionary_encode()}),
        tmp_path / "a.parquet",
    )
    pq.write_table(pa.table({"k": ["y"], "et": pa.array([2], pa.int64())}), tmp_path / "b.parquet")
    s = source(tmp_path, columns=("et", "k"))
    assert s.schema == pa.schema({"et": pa.int64(), "k": pa.string()})
    assert [r for *_, r in read_all(s)] == [{"et": 1, "k": "x"}, {"et": 2, "k": "y"}]


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_required_a_pattern_and_a_format_choose_files(tmp_path, kind):
    data = {"csv": "et\n1\n", "jsonl": '{"et":1}\n'}.get(kind)
    for name in ("a.log", "b.log"):
        if data is None:
            pq.write_table(pa.table({"et": [1]}), tmp_path / name)
        else:
            write(tmp_path / name, data)
    write(tmp_path / "readme.txt", "no data")
    s = source(tmp_path / "*.log", format=kind)
    assert s.partitions() == ("a.log", "b.log")
    assert len(read_all(s)) == 2


def test_required_only_the_columns_of_the_pipeline_are_read(tmp_path):
    write(tmp_path / "in.csv", "junk,et,k,v\nx,1,a,2\n")
    value = (
        pipeline("p")
        .source(files(tmp_path))
        .watermark("et")
        .key("k")
        .tumbling("1s")
        .aggregate(n=count(), top=max_("v"))
        .sink(memory())
    )
    s = open_files(value.build())
    assert s.schema.names == ["et", "k", "v", UNREADABLE_TIME]
    assert s.bounded
    assert not open_files(value.trigger(interval="1s").build()).bounded


# ---- event times that cannot be read ---------------------------------------------------------------


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
@pytest.mark.parametrize("at", [0, 5, 37])
def test_required_one_unreadable_event_time_is_marked_wherever_it_stands(
    tmp_path, small_blocks, kind, at
):
    cells = [str(1000 + i) for i in range(40)]
    cells[at], cells[20] = "soon", ""
    if kind == "csv":
        body = "et,v\n" + "".join(f"{cell},{i}\n" for i, cell in enumerate(cells))
    else:
        values = [None if c == "" else c if c == "soon" else int(c) for c in cells]
        body = "".join(json.dumps({"et": e, "v": i}) + "\n" for i, e in enumerate(values))
    write(tmp_path / f"p.{kind}", body)
    s = source(tmp_path)
    rows = [r for *_, r in read_all(s)]
    assert s.schema.field("et").type == pa.int64()
    assert [r["v"] for r in rows] == list(range(40))
    assert [i for i, r in enumerate(rows) if r[UNREADABLE_TIME]] == [at]
    assert [i for i, r in enumerate(rows) if r["et"] is None] == sorted([at, 20])


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_required_event_times_in_words_stay_text_for_the_watermark_to_decode(tmp_path, kind):
    cells = ["2024-01-01T00:00:00Z", "soon", "2024-01-01 00:00:01.5"]
    body = "et\n" + "\n".join(cells) + "\n"
    if kind == "jsonl":
        body = "".join(json.dumps({"et": cell}) + "\n" for cell in cells) + '{"et":17}\n'
    write(tmp_path / f"p.{kind}", body)
    s = source(tmp_path)
    assert s.schema == pa.schema({"et": pa.string()})
    assert [r["et"] for *_, r in read_all(s)] == cells + ["17"] * (kind == "jsonl")


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_required_a_declared_event_time_is_read_cell_by_cell_too(tmp_path, kind):
    cells = ["2024-01-01T00:00:00Z", "soon", "2024-01-01 00:00:01.5"]
    body = "et\n" + "\n".join(cells) + "\n"
    if kind == "jsonl":
        body = "".join(json.dumps({"et": cell}) + "\n" for cell in cells)
    write(tmp_path / f"p.{kind}", body)
    rows = [r for *_, r in read_all(source(tmp_path, types={"et": "timestamp[ms, UTC]"}))]
    assert [r[UNREADABLE_TIME] for r in rows] == [False, True, False]
    assert [r["et"] and r["et"].timestamp() for r in rows] == [1704067200, None, 1704067201.5]


# ---- files that grow ---------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_required_a_later_read_sees_appended_rows(tmp_path, kind):
    head, line = ("et\n", "{}\n") if kind == "csv" else ("", '{{"et":{}}}\n')
    path = write(tmp_path / f"p.{kind}", head + line.format(1))
    s = source(tmp_path)
    after = start(s)
    assert [r["et"] for *_, r in read_all(s, after)] == [1]
    with path.open("a") as file:
        file.write(line.format(2) + line.format(3))
    assert [r["et"] for *_, r in read_all(s, after)] == [2, 3]


def test_required_an_unfinished_line_waits_where_the_source_is_watched(tmp_path):
    path = write(tmp_path / "p.csv", "et\n1\n2")
    s = source(tmp_path, bounded=False)
    after = start(s)
    assert [r["et"] for *_, r in read_all(s, after)] == [1]
    path.write_text("et\n1\n23\n")
    assert [r["et"] for *_, r in read_all(s, after)] == [23]


def test_required_a_last_line_without_a_break_is_a_row_and_must_have_been_finished(tmp_path):
    path = write(tmp_path / "p.csv", "et\n1\n2")
    s = source(tmp_path)
    after = start(s)
    assert [r["et"] for *_, r in read_all(s, after)] == [1, 2]
    mark = s.fingerprint(after)
    path.write_text("et\n1\n2\n3\n")
    source(tmp_path).verify(mark)
    assert [r["et"] for *_, r in read_all(s, dict(after))] == [3]
    path.write_text("et\n1\n23\n")
    for attempt in (lambda: source(tmp_path).verify(mark),):
        with pytest.raises(InputError, match="no line break"):
            attempt()


def test_required_new_files_of_a_folder_and_new_partitions_are_seen(tmp_path):
    write(tmp_path / "x" / "1.csv", "et\n1\n")
    s = source(tmp_path, partition_by="folder")
    after = start(s)
    assert len(read_all(s, after)) == 1
    write(tmp_path / "x" / "2.csv", "et\n2\n")
    assert [(o, r["et"]) for _, o, _, r in read_all(s, after)] == [(1, 2)]
    write(tmp_path / "y" / "1.csv", "et\n3\n")
    assert s.partitions() == ("x", "y")
    assert [r["et"] for *_, r in read_all(s, {**after, "y": -1})] == [3]


def test_required_a_new_file_must_sort_last(tmp_path):
    write(tmp_path / "x" / "2.csv", "et\n1\n")
    s = source(tmp_path, partition_by="folder")
    read_all(s)
    mark = s.fingerprint({"x": 0})
    write(tmp_path / "x" / "1.csv", "et\n0\n")
    with pytest.raises(InputError, match=r"1\.csv is new and comes before"):
        s.partitions()
    with pytest.raises(InputError, match=r"1\.csv is new and comes before"):
        source(tmp_path, partition_by="folder").verify(mark)


def test_required_a_new_file_must_have_the_types_of_the_others(tmp_path):
    write(tmp_path / "x" / "1.csv", "et,v\n1,1\n")
    s = source(tmp_path, partition_by="folder")
    read_all(s)
    write(tmp_path / "x" / "2.csv", "et,v\n2,two\n")
    with pytest.raises(InputError, match="'v' is string"):
        s.partitions()


def test_required_only_the_last_file_of_a_log_grows(tmp_path):
    first = write(tmp_path / "x" / "1.csv", "et\n1\n")
    write(tmp_path / "x" / "2.csv", "et\n2\n")
    s = source(tmp_path, partition_by="folder")
    read_all(s)
    mark = s.fingerprint({"x": 1})
    first.write_text("et\n1\n5\n")
    with pytest.raises(InputError, match="after the file behind it"):
        s.fingerprint({"x": 1})
    with pytest.raises(InputError, match="after the file behind it"):
        source(tmp_path, partition_by="folder").verify(mark)


# ---- what was read is there, or it is said ----------------------------------------------------------


def stamped(path, text):
    """Write it again with another time of change."""
    path.write_text(text)
    os.utime(path, ns=(1, path.stat().st_mtime_ns + 1_000_000))


@pytest.mark.parametrize("position", [0, 1, 2, 3])
def test_required_a_change_is_found_in_rows_that_were_read_and_only_there(
    tmp_path, small_blocks, position
):
    lines = [f"{1000 + i},some words\n" for i in range(4)]
    path = write(tmp_path / "p.csv", "et,v\n" + "".join(lines))
    s = source(tmp_path)
    read_all(s)
    mark = json.loads(json.dumps(s.fingerprint({"p": position})))
    for changed in range(4):
        other = [line if i != changed else line.upper() for i, line in enumerate(lines)]
        stamped(path, "et,v\n" + "".join(other))
        if changed <= position:
            with pytest.raises(InputError) as caught:
                source(tmp_path).verify(mark)
            assert str(path) in caught.value.where
            assert "partition p" in caught.value.where
            assert "state_root" in caught.value.action
        else:
            again = source(tmp_path)
            again.verify(mark)
            assert len(read_all(again, {"p": position})) == 3 - position


@pytest.mark.parametrize("kind", ["csv", "jsonl", "csv.gz", "parquet"])
@pytest.mark.parametrize("harm", ["truncated", "removed", "rewritten"])
def test_required_files_that_lost_rows_are_an_error(tmp_path, kind, harm):
    path = tmp_path / f"p.{kind}"

    def make(rows):
        if kind == "parquet":
            pq.write_table(pa.table({"et": rows}), path)
        else:
            form = '{{"et":{}}}\n' if kind == "jsonl" else "{}\n"
            body = ("" if kind == "jsonl" else "et\n") + "".join(form.format(r) for r in rows)
            compressed(path, body.encode())
        os.utime(path, ns=(1, len(rows) + rows[0]))

    make([1, 2, 3])
    write(tmp_path / f"q.{kind}", "") if kind == "none" else shutil.copy(
        path, tmp_path / f"q.{kind}"
    )
    s = source(tmp_path)
    read_all(s)
    mark = json.loads(json.dumps(s.fingerprint({"p": 2, "q": 0})))
    source(tmp_path).verify(mark)
    if harm == "removed":
        path.unlink()
    else:
        make([1] if harm == "truncated" else [7, 8, 9])
    with pytest.raises(InputError) as caught:
        source(tmp_path).verify(mark)
    assert caught.value.code == "lost_rows"
    assert "p" in f"{caught.value.found} {caught.value.where}"


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_required_a_position_beyond_the_end_is_an_error_of_its_own(tmp_path, kind):
    write(tmp_path / "p.csv", "et\n1\n2\n") if kind == "csv" else pq.write_table(
        pa.table({"et": [1, 2]}), tmp_path / "p.parquet"
    )
    s = source(tmp_path)
    assert s.read({"p": 1}, {"p": 5}, 10) is None
    for lost in (2, 50):
        with pytest.raises(InputError, match="the log ends at offset 1"):
            s.read({"p": lost}, {"p": 5}, 10)
    with pytest.raises(InputError, match="no partition 'q'"):
        s.read({"q": 0}, {"q": 5}, 10)
    with pytest.raises(InputError, match="offset 2 is no row"):
        s.read_rows("p", 0, 2)


def test_required_a_sparse_position_must_still_be_a_row_of_its_partition(tmp_path):
    write(tmp_path / "p.csv", "et,o\n1,a\n2,b\n")
    s = source(tmp_path, partition_by="column", partition_column="o")
    with pytest.raises(InputError, match="offset 0 is no row of the partition"):
        s.read({"b": 0}, {"b": 5}, 10)


def test_required_a_file_truncated_under_a_running_source_is_found(tmp_path):
    path = write(tmp_path / "p.csv", "et\n1\n2\n")
    s = source(tmp_path)
    after = start(s)
    read_all(s, after)
    path.write_text("et\n")
    with pytest.raises(InputError, match="3 bytes, and 7 were read"):
        s.read(after, {"p": 5}, 10)


def test_required_an_unchanged_file_is_not_read_again(tmp_path, monkeypatch):
    write(tmp_path / "p.csv", "et\n1\n")
    s = source(tmp_path)
    read_all(s)
    mark = s.fingerprint({"p": 0})
    monkeypatch.setattr(text, "crc_of", None)
    source(tmp_path).verify(mark)


def test_required_types_are_held_over_a_restart(tmp_path):
    """What the first rows looked like then decides, also where they look otherwise now."""
    path = write(tmp_path / "p.csv", "et,v\n1,1\n")
    s = source(tmp_path)
    read_all(s)
    mark = json.loads(json.dumps(s.fingerprint({"p": 0})))
    path.write_text("et,v\n1,1\nsoon,2\nlater,3\nnever,4\n")
    again = source(tmp_path)
    assert again.schema.field("et").type == pa.string()
    again.verify(mark)
    assert again.schema == s.schema
    assert [r[UNREADABLE_TIME] for *_, r in read_all(again, {"p": 0})] == [True] * 3


def test_required_after_a_restart_reading_starts_where_it_ended(
    tmp_path, small_blocks, monkeypatch
):
    write(tmp_path / "p.csv", "et\n" + "".join(f"{i}\n" for i in range(100)))
    s = source(tmp_path)
    rows = read_all(s)
    mark = s.fingerprint({"p": 57})
    again = source(tmp_path)
    again.verify(mark)
    starts = []
    read = text._Bytes.read
    monkeypatch.setattr(
        text._Bytes,
        "read",
        lambda self, start, size: starts.append(start) or read(self, start, size),
    )
    assert read_all(again, {"p": 57}) == rows[58:]
    assert min(starts) >= 100
    assert read_all(again) == rows


def test_required_the_sum_of_an_epoch_without_rows_is_empty(three):
    s = source(three)
    assert s.fingerprint(start(s))["logs"] == {"a": [], "b": [], "c": []}
    source(three).verify(s.fingerprint(start(s)))


# ---- one clear error each ----------------------------------------------------------------------


@pytest.mark.parametrize(("name", "rows"), [("ferries", 15), ("sensors", 10)])
def test_required_the_examples_are_read_to_their_ends(name, rows):
    value = Pipeline.from_toml(EXAMPLES / f"{name}.toml")
    assert Pipeline.from_toml(value.to_toml()) == value
    found = read_all(open_files(value))
    assert len(found) == rows
    times = value.watermark.column
    bad = [r for *_, r in found if r.get(UNREADABLE_TIME) or r[times] == "no idea"]
    assert len(bad) == 1, "each example shows what becomes of a row without an event time"


def refuse(tmp_path, **options):
    """The one error of a source from its making to its last row; no other kind may come out."""
    with pytest.raises(ThundError) as caught:
        read_all(source(tmp_path, columns=("et", "v"), **options))
    return caught.value


def test_required_a_missing_path_says_where_it_counts_from(tmp_path):
    error = refuse(tmp_path / "none")
    assert isinstance(error, InputError)
    assert (error.code, error.where) == ("missing_source", str(tmp_path / "none"))


def test_required_a_folder_without_data_says_what_data_is(tmp_path):
    write(tmp_path / "readme.txt", "x")
    assert ".parquet" in refuse(tmp_path).allowed
    assert "folder" in refuse(tmp_path, partition_by="folder").found


def test_required_a_file_without_bytes_is_an_error_unless_another_gives_the_columns(tmp_path):
    write(tmp_path / "x" / "2.csv", "")
    error = refuse(tmp_path, partition_by="folder")
    assert (error.code, error.where) == ("empty_file", str(tmp_path / "x" / "2.csv"))
    write(tmp_path / "x" / "1.csv", "et,v\n1,2\n")
    assert len(read_all(source(tmp_path, partition_by="folder"))) == 1


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_required_a_file_with_a_header_only_has_no_rows(tmp_path, kind):
    if kind == "csv":
        write(tmp_path / "p.csv", "et,v")
    else:
        pq.write_table(pa.table({"et": pa.array([], pa.int64()), "v": [0][:0]}), tmp_path / "p.pq")
    s = source(tmp_path)
    assert s.partitions() == ("p",)
    assert read_all(s) == []


@pytest.mark.parametrize("keep", [0, 3, 200, -5])
def test_required_a_truncated_parquet_file_is_named(tmp_path, keep):
    pq.write_table(pa.table({"et": range(1000), "v": range(1000)}), tmp_path / "p.parquet")
    data = (tmp_path / "p.parquet").read_bytes()
    (tmp_path / "p.parquet").write_bytes(data[:keep])
    error = refuse(tmp_path)
    assert "no complete parquet file" in error.found
    assert error.where == str(tmp_path / "p.parquet")


def test_required_damaged_parquet_pages_are_named_with_their_offset(tmp_path):
    pq.write_table(
        pa.table({"et": range(1000), "v": range(1000)}), tmp_path / "p.parquet", compression="zstd"
    )
    data = bytearray((tmp_path / "p.parquet").read_bytes())
    data[4:600] = b"\xff" * 596
    (tmp_path / "p.parquet").write_bytes(data)
    assert "offset 0" in refuse(tmp_path).where


def test_required_a_truncated_archive_is_named(tmp_path):
    data = gzip.compress(b"et,v\n" + b"".join(b"%d,%d\n" % (i, i * i) for i in range(5000)))
    (tmp_path / "p.csv.gz").write_bytes(data[: len(data) // 2])
    assert refuse(tmp_path).where.startswith(str(tmp_path / "p.csv.gz"))
    (tmp_path / "p.csv.gz").unlink()
    (tmp_path / "p.csv.zip").write_bytes(b"PK\x03\x04 no archive")
    assert refuse(tmp_path).where.startswith(str(tmp_path / "p.csv.zip"))


@pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl"])
def test_required_a_missing_column_is_named_with_its_file_and_a_guess(tmp_path, kind):
    tables = {"a": {"et": [1], "v": [1]}, "b": {"et": [1], "vv": [1]}}
    for name, table in tables.items():
        if kind == "parquet":
            pq.write_table(pa.table(table), tmp_path / f"{name}.parquet")
        elif kind == "csv":
            pa.csv.write_csv(pa.table(table), tmp_path / f"{name}.csv")
        else:
            write(tmp_path / f"{name}.jsonl", json.dumps({k: v[0] for k, v in table.items()}))
    if kind == "jsonl":
        rows = read_all(source(tmp_path, columns=("et", "v")))
        assert [r["v"] for *_, r in rows] == [1, None], "an object may leave a key out"
        return
    error = refuse(tmp_path)
    assert (error.code, "'vv'" in error.action) == ("missing_column", True)
    assert error.where.endswith(f"b.{kind}")


@pytest.mark.parametrize(
    ("kinds", "fits"),
    [
        ((pa.int32(), pa.int64()), pa.int64()),
        ((pa.uint32(), pa.int32()), pa.int64()),
        ((pa.float32(), pa.float64()), pa.float64()),
        ((pa.uint64(), pa.int64()), None),
        ((pa.int64(), pa.float64()), None),
        ((pa.int64(), pa.string()), None),
        ((pa.null(), pa.string()), pa.string()),
    ],
)
def test_required_types_of_parquet_files_widen_without_loss_or_not_at_all(tmp_path, kinds, fits):
    for name, kind in zip("ab", kinds, strict=True):
        table = pa.table({"et": [1], "v": pa.array([None], kind)})
        pq.write_table(table, tmp_path / f"{name}.parquet")
    if fits is not None:
        assert source(tmp_path).schema.field("v").type == fits
        assert len(read_all(source(tmp_path))) == 2
    else:
        error = refuse(tmp_path)
        assert error.code == "type_differs"
        assert error.where.endswith("b.parquet")


BAD_LINES = [
    # format, lines, offset of the bad one, found
    ("csv", ["1,1", "2,2", "3"], 2, "Expected 2 columns, got 1"),
    ("csv", ["1,1", "", "2,2", "3,4,5"], 2, "Expected 2 columns, got 3"),
    ("csv", ["1,1"] * 30 + ["2,x"], 30, "'v'"),
    ("csv", ["1,1"] * 30 + ["2,\xff"], 30, "invalid value"),
    ("csv", ["1,a"] * 30 + ["2,\xff"], 30, "UTF8"),
    ("csv", ["\xff,a"], 0, "UTF8"),
    ("jsonl", ['{"et":1}', '{"et":2'], 1, "not JSON"),
    ("jsonl", ['{"et":1}', "[1]"], 1, "list, not an object"),
    ("jsonl", ['{"et":1,"v":2}'] * 20 + ['{"et":1,"v":"x"}'], 20, '"x" is no int64'),
    ("jsonl", ['{"et":1,"v":2}'] * 20 + ['{"et":1,"v":true}'], 20, "true is no int64"),
    ("jsonl", ['{"et":1}{"et":2}'], 0, "not JSON"),
    ("jsonl", ['{"et":1}', '{"et":1,"k":"\xff"}'], 1, "UTF-8"),
]


@pytest.mark.parametrize("case", BAD_LINES)
def test_required_a_line_that_cannot_be_read_is_named_by_its_offset(tmp_path, small_blocks, case):
    kind, lines, offset, found = case
    body = ("et,v\n" if kind == "csv" else "") + "\n".join(lines) + "\n"
    (tmp_path / f"p.{kind}").write_bytes(body.encode("latin-1"))
    error = refuse(tmp_path, types={"v": "utf8" if "1,a" in lines else "int64"})
    assert found in error.found
    assert error.where == f"{tmp_path / f'p.{kind}'}, offset {offset}"


def test_required_a_header_that_cannot_be_right_is_refused(tmp_path):
    (tmp_path / "p.csv").write_bytes(b"et,\xff\n")
    assert "not UTF-8" in refuse(tmp_path).found
    write(tmp_path / "p.csv", "et,v,v\n1,2,3\n")
    assert "'v' twice" in refuse(tmp_path).found


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({"types": {"w": "int64"}}, "source.types.w"),
        ({"order_by": "v"}, "source.order_by"),
        ({"order_by": "nope"}, "'nope'"),
        ({"partition_by": "column", "partition_column": "nope"}, "'nope'"),
        ({"partition_by": "folder"}, "no folder with data files"),
    ],
)
def test_required_options_that_do_not_fit_the_files_are_refused(tmp_path, options, found):
    write(tmp_path / "p.csv", "et,v\n1,word\n")
    assert found in refuse(tmp_path, **options).found


def test_required_names_and_formats_that_collide_are_refused(tmp_path):
    write(tmp_path / "p.csv", "et,v\n1,1\n")
    write(tmp_path / "p.tsv", "et,v\n1,1\n")
    error = refuse(tmp_path)
    assert isinstance(error, CallerError)
    assert "partition 'p'" in error.found
    (tmp_path / "p.tsv").rename(tmp_path / "q.jsonl")
    assert "several formats" in refuse(tmp_path).found
    pq.write_table(pa.table({"et": [1], "v": [1]}), tmp_path / "r.parquet")
    assert "their own types" in refuse(tmp_path, format="parquet", types={"v": "int8"}).found
    write(tmp_path / "data.bin", "x")
    assert "does not say its format" in refuse(tmp_path / "data.bin").found


def test_required_event_time_as_a_column_that_is_not_there_is_refused(tmp_path):
    write(tmp_path / "p.csv", "time,v\n1,1\n")
    with pytest.raises(InputError, match="no column 'et'"):
        source(tmp_path)
