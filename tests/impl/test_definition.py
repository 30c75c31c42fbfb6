"""A pipeline is one value, whoever writes it, and a wrong one is refused with the key that is wrong."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thund.builder import (
    all_,
    any_,
    count,
    count_distinct,
    duckdb,
    files,
    first,
    g_counter,
    last,
    lww,
    max_,
    mean,
    memory,
    min_,
    or_set,
    parquet,
    pipeline,
    pn_counter,
    stddev_pop,
    stddev_samp,
    stream,
    sum_,
    var_pop,
    var_samp,
)
from thund.checks import ARROW_TYPES
from thund.definition import Pipeline
from thund.durations import format_duration, parse_duration
from thund.manifest import differences, plain
from thund.toml import section
from thund_contract.errors import CallerError
from thund_contract.vocabulary import Aggregate, Config, WindowSpec

TOML = """
name = "flights"
mode = "incremental"
state_root = "state"
key = ["carrier"]

[source]
kind = "files"
path = "data"
order_by = "sent_at"

[source.types]
delay = "int64"

[watermark]
column = "et"
allowed_lateness = "2h"

[window]
kind = "tumbling"
size = "1h"

[aggregates]
n = "count"
total = "sum(delay)"
lo = "min(delay)"
hi = "max(delay)"
avg = "mean(delay)"

[sink]
kind = "duckdb"
path = "out.duckdb"
table = "delays"

[trigger]
rows = 10000
once = true
drain = true
"""


def built():
    return (
        pipeline("flights")
        .source(files("data", partition_by="file", order_by="sent_at", types={"delay": "int64"}))
        .watermark("et", allowed_lateness="2h")
        .key("carrier")
        .tumbling("1h")
        .aggregate(
            n=count(), total=sum_("delay"), lo=min_("delay"), hi=max_("delay"), avg=mean("delay")
        )
        .sink(duckdb("out.duckdb", table="delays"))
        .incremental("state")
        .trigger(rows=10_000, once=True, drain=True)
    )


def test_required_builder_and_toml_give_the_same_value_and_fingerprint():
    value = Pipeline.from_toml(TOML)
    assert built().build() == value
    assert hash(value) == hash(built().build())
    assert built().build().fingerprint() == value.fingerprint()


def test_required_config_is_what_the_core_reads():
    assert Pipeline.from_toml(TOML).config() == Config(
        pipeline="flights",
        event_time="et",
        key=("carrier",),
        window=WindowSpec(3_600_000),
        aggregates=(
            Aggregate("n", "count"),
            Aggregate("total", "sum", "delay"),
            Aggregate("lo", "min", "delay"),
            Aggregate("hi", "max", "delay"),
            Aggregate("avg", "mean", "delay"),
        ),
        delay_ms=7_200_000,
        grace_ms=7_200_000,
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('path = "data"', 'path = "elsewhere"'),
        ('"state"', '"another"'),
        ('"out.duckdb"', '"o.duckdb"'),
        ("rows = 10000", "rows = 5"),
        ('"incremental"', '"recompute"'),
        ('key = ["carrier"]', 'key = ["carrier"]\ncredits = 7'),
    ],
)
def test_required_fingerprint_leaves_out_what_may_change(old, new):
    assert old in TOML
    assert (
        Pipeline.from_toml(TOML.replace(old, new)).fingerprint()
        == Pipeline.from_toml(TOML).fingerprint()
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('name = "flights"', 'name = "f"'),
        ('column = "et"', 'column = "t"'),
        ('"2h"', '"3h"'),
        ('"2h"', '"2h"\nmax_future = "1d"'),
        ('"2h"', '"2h"\nlate_lane = false'),
        ('size = "1h"', 'size = "2h"'),
        ('size = "1h"', 'size = "1h"\noffset = "1m"'),
        ('kind = "tumbling"\nsize = "1h"', 'kind = "session"\ngap = "1h"'),
        ('"2h"', '"2h"\nidle_timeout = "1m"'),
        ('key = ["carrier"]', 'key = ["carrier"]\nfilter = "delay > 0"'),
        ("[window]", '[rename]\ndelay = "lag"\n\n[window]'),
        ("[window]", '[derive]\nday = "day(et)"\n\n[window]'),
        ("[window]", '[deduplicate]\nby = ["n"]\n\n[window]'),
        ("sum(delay)", "sum(other)"),
        ('key = ["carrier"]', 'key = ["carrier"]\noutput = "update"'),
        ('["carrier"]', '["carrier", "tail"]'),
    ],
)
def test_required_fingerprint_covers_what_decides_a_result(old, new):
    assert old in TOML
    assert (
        Pipeline.from_toml(TOML.replace(old, new)).fingerprint()
        != Pipeline.from_toml(TOML).fingerprint()
    )


def test_required_a_fingerprint_is_the_same_in_every_version():
    """States are refused where it differs, so this constant may never change."""
    assert Pipeline.from_toml(TOML).fingerprint() == "217754dfb0a97941d94f22bb84f5a46e"


NEW = """
name = "clicks"
mode = "incremental"
state_root = "state"
output = "update"
panes = "retracting"
filter = "not robot and weight > 0"
key = ["user", "hour"]

[source]
kind = "stream"

[rename]
user = "user id"

[derive]
weight = "coalesce(weight, 1)"
hour = "hour(at)"

[watermark]
column = "at"
delay = "5s"
idle_timeout = "1m"

[deduplicate]
by = ["event_id"]
remember = "10m"

[window]
kind = "hopping"
size = "10m"
slide = "4m"
offset = "-1m"

[aggregates]
n = "count_distinct(page)"
worth = "pn_counter(up, down, \\"host, port\\")"
title = "lww(title, at)"

[sink]
kind = "parquet"
path = "panes"
"""


def test_required_all_that_is_new_is_the_same_from_both_writers():
    value = (
        pipeline("clicks")
        .source(stream())
        .rename({"user": "user id"})
        .derive(weight="coalesce(weight, 1)", hour="hour(at)")
        .filter("not robot and weight > 0")
        .watermark("at", delay="5s", idle_timeout="1m")
        .deduplicate("event_id", remember="10m")
        .key("user", "hour")
        .hopping("10m", slide="4m", offset="-1m")
        .aggregate(
            n=count_distinct("page"),
            worth=pn_counter("up", "down", "host, port"),
            title=lww("title", "at"),
        )
        .sink(parquet("panes"))
        .incremental("state")
        .output("update")
        .panes("retracting")
        .build()
    )
    assert value == Pipeline.from_toml(NEW)
    assert value.config() == Config(
        pipeline="clicks",
        event_time="at",
        key=("user", "hour"),
        window=WindowSpec(600_000, -60_000, "hopping", slide_ms=240_000),
        aggregates=(
            Aggregate("n", "count_distinct", "page"),
            Aggregate("worth", "pn_counter", "up", ("down", "host, port")),
            Aggregate("title", "lww", "title", ("at",)),
        ),
        delay_ms=5_000,
        output="update",
        idle_timeout_ms=60_000,
        rename=(("user", "user id"),),
        derive=(("weight", "coalesce(weight, 1)"), ("hour", "hour(at)")),
        filter="not robot and weight > 0",
        deduplicate=("event_id",),
        remember_ms=600_000,
        panes="retracting",
    )


@pytest.mark.parametrize(
    ("window", "spec"),
    [
        ('kind = "session"\ngap = "30m"', WindowSpec(0, kind="session", gap_ms=1_800_000)),
        (
            'kind = "calendar"\nunit = "day"\nzone = "Europe/Berlin"\noffset = "6h"',
            WindowSpec(0, 21_600_000, "calendar", unit="day", zone="Europe/Berlin"),
        ),
        (
            'kind = "hopping"\nsize = "1h"\nslide = "1h"',
            WindowSpec(3_600_000, 0, "hopping", slide_ms=3_600_000),
        ),
    ],
)
def test_required_each_kind_of_window_is_what_the_core_reads(window, spec):
    text = TOML.replace('kind = "tumbling"\nsize = "1h"', window)
    assert Pipeline.from_toml(text).config().window == spec


HOPPING = 'kind = "hopping"\nsize = "1h"\nslide = "5m"'
CALENDAR = 'kind = "calendar"\nunit = "day"\nzone = "Europe/Berlin"'
WRONG_WINDOWS = [
    (HOPPING.replace("5m", "2h"), 'window.slide: "2h"', "at most the size, 1h"),
    (HOPPING.replace("5m", "0s"), 'window.slide: "0s"', "above zero"),
    (HOPPING.replace('"1h"', '"0s"'), 'window.size: "0s"', "above zero"),
    (HOPPING.replace('slide = "5m"', ""), "window.slide: missing", "slide ="),
    (HOPPING.replace("slide", "slid"), "window.slid: no such key", "'slide'"),
    (HOPPING.replace("5m", "five"), 'window.slide: "five"', "1h30m"),
    (
        HOPPING.replace('"1h"', '"30000000d"').replace('"5m"', '"29999999d"'),
        "window.size + window.slide + ",
        "2^52",
    ),
    ('kind = "session"', "window.gap: missing", 'gap = "30m"'),
    ('kind = "session"\ngap = "0s"', 'window.gap: "0s"', "above zero"),
    ('kind = "session"\ngap = "1h"\noffset = "1h"', "window.offset: no such key", "gap"),
    ('kind = "session"\ngap = "53000000d"', "window.gap + watermark.delay", "2^52"),
    (CALENDAR.replace("day", "daily"), 'window.unit: "daily"', "day, hour, month, week"),
    (CALENDAR.replace("Berlin", "Berlim"), 'window.zone: "Europe/Berlim"', "'Europe/Berlin'"),
    (CALENDAR.replace("Europe/Berlin", "../etc"), 'window.zone: "../etc"', "IANA"),
    (CALENDAR.replace('zone = "Europe/Berlin"', ""), "window.zone: missing", "time zone"),
    (CALENDAR + '\noffset = "1d"', 'window.offset: "1d"', "less than 1d"),
    (CALENDAR.replace("day", "hour") + '\noffset = "-60m"', "window.offset", "less than 1h"),
    (CALENDAR.replace("day", "week") + '\noffset = "7d"', "window.offset", "less than 7d"),
    (CALENDAR.replace("day", "month") + '\noffset = "28d"', "window.offset", "less than 28d"),
]


@pytest.mark.parametrize(
    ("window", "found", "told"), WRONG_WINDOWS, ids=[w[1] for w in WRONG_WINDOWS]
)
def test_required_a_wrong_window_is_refused(window, found, told):
    with pytest.raises(CallerError) as caught:
        Pipeline.from_toml(TOML.replace('kind = "tumbling"\nsize = "1h"', window))
    error = caught.value
    assert found in error.found
    assert told in f"{error.found} {error.allowed} {error.action}"


WRONG_NEW = [
    ('remember = "10m"', 'remember = "-10m"', "deduplicate.remember", "negative"),
    ('by = ["event_id"]', "by = []", "deduplicate.by: []", "event_id"),
    ('by = ["event_id"]', "", "deduplicate.by: missing", "event_id"),
    ('by = ["event_id"]', 'by = ["a", "a"]', 'deduplicate.by: "a"', "once"),
    ('by = ["event_id"]', 'buy = ["event_id"]', "deduplicate.buy: no such key", "'by'"),
    ('idle_timeout = "1m"', 'idle_timeout = "-1m"', "watermark.idle_timeout", "negative"),
    ('panes = "retracting"', 'panes = "all"', 'panes: "all"', "discarding"),
    ('output = "update"', 'output = "append"', 'panes: "retracting"', 'output = "update"'),
    ('user = "user id"', "user = 3", "rename.user: 3", "a text"),
    ('user = "user id"', 'user = "a"\nx = "a"', 'rename: "a"', "once"),
    ('user = "user id"', '_gar_x = "a"', "rename._gar_x", "another name"),
    ('user = "user id"', 'user = ""', "rename.user", "blank"),
    ('user = "user id"', '" " = "a"', 'rename[0]: " "', "blank"),
    ('hour = "hour(at)"', 'hour = "our(at)"', "our: no such function", "hour"),
    ('hour = "hour(at)"', "hour = 3", "derive.hour: 3", "a text"),
    ('hour = "hour(at)"', 'window_end = "1"', "derive.window_end", "another name"),
    ("> 0", ">> 0", "nothing that an expression", "=="),
    (
        '"count_distinct(page)"',
        '"count_distinct(a, b)"',
        "names 2 columns",
        "count_distinct(COLUMN)",
    ),
    ('"count_distinct(page)"', '"lww(a)"', "names 1 columns", "lww(VALUE, STAMP)"),
    ('"count_distinct(page)"', '"or_set(a, b)"', "or_set(a, b)", "or_set(ELEMENT, TAG, ADDED)"),
    ('"count_distinct(page)"', '"g_counter"', "needs a column", "g_counter(COUNT, REPLICA)"),
    ('"count_distinct(page)"', '"sum(a,)"', "is no aggregate", "written in quotes"),
    ('"count_distinct(page)"', "'sum(a\"b)'", "is no aggregate", "written in quotes"),
    ('"count_distinct(page)"', '"peak@1(a)"', "peak@1(a)", "registered"),
    ('mode = "incremental"\n', "", 'sink.kind: "parquet"', "state_root"),
    ('state_root = "state"\n', "", 'sink.kind: "parquet"', "state_root"),
    ('hour = "hour(at)"', '_epoch = "1"', "derive._epoch", "another name"),
    ("title = ", "_timing = ", 'panes: "_timing"', "rename"),
    ('kind = "parquet"\npath = "panes"', 'kind = "parquet"', "sink.path: missing", "a text"),
]


@pytest.mark.parametrize(("old", "new", "found", "told"), WRONG_NEW, ids=[w[1] for w in WRONG_NEW])
def test_required_what_is_new_is_refused_where_it_is_wrong(old, new, found, told):
    assert old in NEW
    with pytest.raises(CallerError) as caught:
        Pipeline.from_toml(NEW.replace(old, new, 1))
    error = caught.value
    assert found in error.found
    assert told in f"{error.found} {error.allowed} {error.action}"


def test_required_discarding_panes_are_not_for_sessions():
    text = NEW.replace('"retracting"', '"discarding"')
    Pipeline.from_toml(text)
    start = text.index('kind = "hopping"')
    session = text[:start] + 'kind = "session"\ngap = "5m"\n\n' + text[text.index("[aggregates]") :]
    with pytest.raises(CallerError, match="does not go with sessions"):
        Pipeline.from_toml(session)


def test_required_a_log_of_files_is_not_for_sessions_that_are_taken_away():
    start = NEW.index('kind = "hopping"')
    session = NEW[:start] + 'kind = "session"\ngap = "5m"\n\n' + NEW[NEW.index("[aggregates]") :]
    Pipeline.from_toml(session)
    with pytest.raises(CallerError, match="cannot take away a session"):
        Pipeline.from_toml(session.replace('panes = "retracting"\n', ""))


def test_required_a_state_of_an_earlier_version_is_no_other_configuration():
    """Fields that came later stand at their defaults there."""
    new = plain(Pipeline.from_toml(TOML).config())
    old = {
        **{key: new[key] for key in ("pipeline", "event_time", "key", "delay_ms", "grace_ms")},
        "window": {"size_ms": 3_600_000, "offset_ms": 0, "kind": "tumbling"},
        "aggregates": [
            {key: each[key] for key in ("name", "operation", "column")}
            for each in new["aggregates"]
        ],
    }
    assert differences(old, new) == []
    assert differences(new, old) == []
    hopping = {**new, "window": {**new["window"], "kind": "hopping", "slide_ms": 5}}
    assert len(differences(old, hopping)) == 2
    assert differences(old, {**new, "deduplicate": ["id"]}) == [
        "deduplicate: [] in the state, ['id'] now"
    ]


WRONG = [
    # old, new, found, somewhere in the other three facts
    ('size = "1h"', 'size = "0s"', 'window.size: "0s"', "above zero"),
    ('size = "1h"', 'size = "-1h"', 'window.size: "-1h"', "above zero"),
    ('size = "1h"', 'size = "1 hour"', 'window.size: "1 hour"', '"1h30m"'),
    ('size = "1h"', "size = 1.5", "window.size: 1.5", "whole numbers"),
    ('size = "1h"', "size = true", "window.size: true", "whole numbers"),
    ('size = "1h"', 'siz = "1h"', "window.siz: no such key", "'size'"),
    ('size = "1h"\n', "", "window.size: missing", 'size = "1h"'),
    ('kind = "tumbling"', 'kind = "hoping"', 'window.kind: "hoping"', "tumbling"),
    ('"2h"', '"-2h"', "watermark.allowed_lateness", "not negative"),
    ('"2h"', '"2h"\ndelay = "1h"', 'watermark.allowed_lateness: "2h"', "one of the two"),
    ('allowed_lateness = "2h"', "delay = -1", 'watermark.delay: "-1ms"', "negative"),
    ('allowed_lateness = "2h"', 'grace = "99999999d"', "watermark.grace", "2^52"),
    ('"2h"', '"2h"\nmax_future = -5', "watermark.max_future", "negative"),
    ('size = "1h"', 'size = "52000000d"\noffset = "52000000d"', "window.size + ", "2^52"),
    ('"2h"', '"2h"\nlate_rule = "never"', 'watermark.late_rule: "never"', "row"),
    ("total =", "carrier =", 'aggregates: "carrier"', "rename"),
    ("total =", "window_start =", "aggregates.window_start", "name the aggregate"),
    ("total =", "_gar_total =", "aggregates._gar_total", "_gar_"),
    ("total =", "_epoch2 =", "aggregates._epoch2", "_epoch"),
    ("total =", "_deleted =", "aggregates._deleted", "_deleted"),
    ("total =", "N =", 'aggregates: "N"', "upper and lower"),
    ("total =", "n =", "this is not TOML", "each key once"),
    ("total =", '"" =', "aggregates.: ", "not blank"),
    ('"sum(delay)"', '"summ(delay)"', 'aggregates.total: "summ(delay)"', '"sum"'),
    ('"sum(delay)"', '"sum"', "aggregates.total", "sum(COLUMN)"),
    ('"sum(delay)"', '"sum()"', "aggregates.total", "operation(column)"),
    ('"sum(delay)"', "3", "aggregates.total: 3", "operation(column)"),
    ('["carrier"]', '["window_end"]', "key[0]", "rename"),
    ('["carrier"]', '["a", "a"]', 'key: "a"', "differ"),
    ('["carrier"]', '"carrier"', 'key: "carrier"', "a list"),
    ('["carrier"]', '["carrier", 3]', "key[1]: 3", "a text"),
    ('key = ["carrier"]\n', "", "key: missing", "[]"),
    ('name = "flights"', 'name = " "', "name", "blank"),
    ('"state"', '""', "state_root", "blank"),
    ('mode = "incremental"', 'mode = "increment"', 'mode: "increment"', "recompute"),
    ("[sink]", "[sinc]", "sinc: no such key", "'sink'"),
    ('kind = "duckdb"\n', "", "sink.kind: missing", '"memory"'),
    ('kind = "duckdb"', 'kind = "duck"', 'sink.kind: "duck"', "duckdb, parquet, memory"),
    ('table = "delays"\n', "", "sink.table: missing", "a text"),
    ("rows = 10000", "rows = 0", "trigger.rows: 0", "1 or more"),
    ("rows = 10000", 'interval = "0s"', "trigger.interval", "above zero"),
    ("rows = 10000", 'rows = "many"', 'trigger.rows: "many"', "whole number"),
    ("once = true", "once = false", "trigger.drain", "once = true"),
    ('"int64"', '"int65"', "source.types.delay", "int64"),
    ('path = "data"', 'path = "data"\npartition_by = "colum"', "source.partition_by", "column"),
    ('path = "data"', 'path = "data"\npartition_by = "column"', "partition_column", "both"),
    ('path = "data"', 'path = "data"\npartition_column = "o"', "partition_column", "both"),
    ('path = "data"', 'path = "data"\nchunk_rows = 0', "source.chunk_rows: 0", "4096"),
    ('path = "data"', 'path = "data"\ndelimiter = ";;"', "source.delimiter", "one ASCII"),
    ('["carrier"]', '["carrier"]\ncredits = 0', "credits: 0", "1048576"),
    ('name = "flights"', 'name = "flights', "this is not TOML", "line 2"),
]


@pytest.mark.parametrize(("old", "new", "found", "told"), WRONG, ids=[w[1] for w in WRONG])
def test_required_a_wrong_key_is_named_with_what_is_allowed(tmp_path, old, new, found, told):
    assert old in TOML
    path = tmp_path / "p.toml"
    path.write_text(TOML.replace(old, new, 1))
    with pytest.raises(CallerError) as caught:
        Pipeline.from_toml(path)
    error = caught.value
    assert found in error.found
    assert error.where == str(path)
    assert told in f"{error.found} {error.allowed} {error.action}"


def test_required_paths_count_from_the_folder_of_the_file(tmp_path, monkeypatch):
    (tmp_path / "sub").mkdir()
    path = tmp_path / "sub" / "p.toml"
    path.write_text(TOML.replace('path = "data"', 'path = "../data"'))
    monkeypatch.chdir(tmp_path)
    for name in (path, str(path), Path("sub/p.toml"), "sub/p.toml"):
        value = Pipeline.from_toml(name)
        assert value.source.path == str(tmp_path / "data")
        assert value.state_root == str(tmp_path / "sub" / "state")
        assert value.sink.path == str(tmp_path / "sub" / "out.duckdb")
        assert value.fingerprint() == Pipeline.from_toml(TOML).fingerprint()


def test_required_an_url_is_no_relative_path(tmp_path):
    path = tmp_path / "p.toml"
    path.write_text(TOML.replace('"state"', '"memory://"'))
    assert Pipeline.from_toml(path).state_root == "memory://"


def test_required_a_file_that_cannot_be_read_is_an_error_of_the_caller(tmp_path):
    with pytest.raises(CallerError, match="cannot be read"):
        Pipeline.from_toml(tmp_path / "none.toml")
    (tmp_path / "latin.toml").write_bytes(b'name = "\xe9"')
    with pytest.raises(CallerError, match="not UTF-8"):
        Pipeline.from_toml(tmp_path / "latin.toml")


def test_required_lateness_is_delay_and_grace_alike_or_both_apart():
    apart = Pipeline.from_toml(
        TOML.replace('allowed_lateness = "2h"', 'delay = "2h"\ngrace = "2h"')
    )
    assert apart == Pipeline.from_toml(TOML)
    one = Pipeline.from_toml(TOML.replace("allowed_lateness", "delay")).watermark
    assert (one.delay_ms, one.grace_ms) == (7_200_000, 0)


def test_required_incremental_without_a_state_root_recomputes_and_says_so():
    value = Pipeline.from_toml(TOML.replace('state_root = "state"\n', ""))
    mode, note = value.runs_as()
    assert mode == "recompute"
    assert note is not None
    assert "state_root" in note
    assert Pipeline.from_toml(TOML).runs_as() == ("incremental", None)


def test_required_a_trigger_runs_once_unless_it_says_when():
    def once(trigger):
        return Pipeline.from_toml(TOML[: TOML.index("[trigger]")] + trigger).trigger.once

    assert once("") is True
    assert once("[trigger]\nrows = 5") is False
    assert once('[trigger]\ninterval = "1s"') is False
    assert once("[trigger]\nbytes = 5\nonce = true") is True


def test_required_a_builder_step_changes_nothing_that_was_there():
    start = built()
    other = start.credits(5)
    assert start.build().credits == 1_048_576
    assert other.build().credits == 5


@pytest.mark.parametrize(
    ("builder", "found"),
    [
        (pipeline("p"), "source: missing"),
        (built().key("again"), "steps in the order"),
        (pipeline("p").watermark("et").source(stream()), "steps in the order watermark, source"),
        (pipeline("p").source(stream()).watermark("et").key().sink(memory()), "window: missing"),
        (built().trigger(rows=0), "trigger.rows: 0"),
        (built().credits(True), "credits: true"),
        (pipeline(3), "name: 3"),
    ],
)
def test_required_the_builder_says_what_is_missing_twice_or_out_of_order(builder, found):
    with pytest.raises(CallerError) as caught:
        builder.build()
    assert found in caught.value.found
    assert caught.value.where.startswith("pipeline ")


# ---- any value, there and back -----------------------------------------------------------------

TEXTS = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=6
).filter(lambda text: text.strip())
NAMES = TEXTS.filter(
    lambda t: (
        not t.casefold().startswith(("_gar_", "_epoch"))
        and t.casefold() not in {"window_start", "window_end", "_deleted"}
    )
)
LENGTHS = st.integers(0, 2**48)
CALLS = st.one_of(
    st.builds(count, st.none() | TEXTS),
    *[
        st.builds(f, TEXTS)
        for f in (
            *(sum_, min_, max_, mean, var_pop, var_samp, stddev_pop, stddev_samp),
            *(first, last, any_, all_, count_distinct),
        )
    ],
    *[st.builds(f, TEXTS, TEXTS) for f in (g_counter, lww)],
    *[st.builds(f, TEXTS, TEXTS, TEXTS) for f in (pn_counter, or_set)],
)
EXPRESSIONS = st.sampled_from(["a > 1", 'col("b c") in ("x", "\\\\")', "not  is_null( d )"])


@st.composite
def windows(draw, value):
    """One kind of window, drawn, as a step of a builder."""
    kind = draw(st.sampled_from(["tumbling", "hopping", "session", "calendar"]))
    if kind == "session":
        return value.session(draw(st.integers(1, 2**48)))
    if kind == "calendar":
        unit = draw(st.sampled_from(["hour", "day", "week", "month"]))
        zone = draw(st.sampled_from(["UTC", "Europe/Berlin", "America/St_Johns"]))
        return value.calendar(unit, zone=zone, offset=draw(st.integers(-3_599_999, 3_599_999)))
    size, offset = draw(st.integers(1, 2**48)), draw(st.integers(-(2**48), 2**48))
    if kind == "tumbling":
        return value.tumbling(size, offset=offset)
    return value.hopping(size, slide=draw(st.integers(1, size)), offset=offset)


@st.composite
def prepared(draw, value):
    """What may stand between source and watermark, drawn."""
    if draw(st.booleans()):
        names = st.dictionaries(NAMES, TEXTS, min_size=1, max_size=3)
        value = value.rename({new: f"{old}{i}" for i, (new, old) in enumerate(draw(names).items())})
    if draw(st.booleans()):
        value = value.derive(draw(st.dictionaries(NAMES, EXPRESSIONS, max_size=3)))
    return value.filter(draw(EXPRESSIONS)) if draw(st.booleans()) else value


@st.composite
def builders(draw):
    names = draw(st.lists(NAMES, min_size=1, max_size=5, unique_by=str.casefold))
    keys = draw(st.integers(0, len(names) - 1))
    by = draw(st.sampled_from(["file", "folder", "column"]))
    file_source = st.builds(
        files,
        TEXTS,
        partition_by=st.just(by),
        partition_column=TEXTS if by == "column" else st.none(),
        format=st.sampled_from([None, "csv", "parquet", "jsonl"]),
        order_by=st.none() | TEXTS,
        chunk_rows=st.integers(1, 10_000),
        delimiter=st.sampled_from(",;\t|"),
        types=st.none() | st.dictionaries(TEXTS, st.sampled_from(ARROW_TYPES), max_size=3),
    )
    lateness = draw(
        st.fixed_dictionaries({"allowed_lateness": LENGTHS})
        | st.fixed_dictionaries({}, optional={"delay": LENGTHS, "grace": LENGTHS})
    )
    options = st.fixed_dictionaries(
        {},
        optional={
            "max_future": LENGTHS,
            "idle_timeout": LENGTHS,
            "late_lane": st.booleans(),
            "late_rule": st.sampled_from(["row", "window", "partition"]),
            "watermark_update": st.sampled_from(["row", "epoch"]),
        },
    )
    source = draw(file_source | st.builds(stream, partition_column=st.none() | TEXTS))
    value = draw(prepared(pipeline(draw(TEXTS)).source(source)))
    value = value.watermark(draw(TEXTS), **lateness, **draw(options))
    if draw(st.booleans()):
        ids = draw(st.lists(TEXTS, min_size=1, max_size=3, unique=True))
        value = value.deduplicate(*ids, remember=draw(LENGTHS))
    value = draw(windows(value.key(*names[:keys])))
    value = (
        value.aggregate(**{name: draw(CALLS) for name in names[keys:]})
        .sink(draw(st.builds(memory) | st.builds(duckdb, TEXTS, table=TEXTS)))
        .credits(draw(st.integers(1, 2**40)))
        .output(draw(st.sampled_from(["append", "update", "complete"])))
        .trigger(
            rows=draw(st.none() | st.integers(1, 2**40)),
            interval=draw(st.none() | st.integers(1, 2**40)),
            once=True,
            drain=draw(st.booleans()),
        )
    )
    kinds = ["accumulating", "retracting"]
    if draw(st.booleans()):
        value = value.output("update").panes(draw(st.sampled_from(kinds)))
        if draw(st.booleans()):
            log = parquet(draw(TEXTS))
            return replace(value, raw={**value.raw, "sink": section(log)}).incremental("states")
    return draw(st.sampled_from([value, value.incremental(), value.incremental(draw(TEXTS))]))


@given(builders())
def test_required_what_is_written_is_read_back_to_an_equal_value(builder):
    value = builder.build()
    again = Pipeline.from_toml(value.to_toml())
    assert again == value
    assert again.fingerprint() == value.fingerprint()
    assert again.to_toml() == value.to_toml()


@given(st.integers(-(2**53), 2**53))
def test_required_a_duration_is_read_back(ms):
    assert parse_duration(format_duration(ms)) == ms


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("2h", 7_200_000),
        ("90s", 90_000),
        ("1h30m", 5_400_000),
        ("1500ms", 1500),
        ("1d", 86_400_000),
        ("-8h", -28_800_000),
        ("1d2h3m4s5ms", 93_784_005),
        (17, 17),
        ("0s", 0),
        ("5m", 300_000),
    ],
)
def test_required_durations_mean_what_they_say(text, ms):
    assert parse_duration(text) == ms


@pytest.mark.parametrize(
    "text", ["", "5", "h", "1.5h", "1h2d", "1h1h", "1 h", "--1h", "٣h", "1w", None]
)
def test_required_anything_else_is_no_duration(text):
    with pytest.raises(ValueError, match="whole numbers"):
        parse_duration(text)


def test_required_reading_a_definition_loads_no_arrow():
    """`thund --help` and errors in a definition are quick because of this."""
    code = "import sys, thund.builder, thund.toml; print({'pyarrow', 'numba', 'numpy'} & {*sys.modules})"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "set()"
