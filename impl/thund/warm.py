"""Compile every kernel once, so that the first real run finds them in numba's cache.

It runs a small pipeline of made-up rows, in memory, that takes every path of the kernels.
"""

from __future__ import annotations

import pyarrow as pa

from thund.builder import (
    count,
    max_,
    mean,
    memory,
    min_,
    pipeline,
    stddev_pop,
    stream,
    sum_,
    var_samp,
)
from thund.launch import run

TIMES = [0, 3, 1, 25, 4, None, 31, 30, 12, 44]
WORDS = ["short", "a text of more than twelve bytes", None, "short", "öl", "", "x", "y", "z", None]


def warm() -> int:
    """Run it; gives the number of rows, which is always the same. Cost: 10 to 20 s, once."""
    floats = [0.5, 1e300, None, float("inf"), -1e300, 2.5, 1e-300, -0.0, 3.0, 4.0]
    batch = pa.record_batch(
        {
            "t": pa.array(TIMES, pa.int64()),
            "p": pa.array(["a", "b"] * 5),
            "word": pa.array(WORDS),
            "number": pa.array([1, None, 2, 1, 2, 3, 4, 5, 6, 7], pa.int64()),
            "x": pa.array(floats, pa.float64()),
            "exact": pa.array(range(10), pa.decimal128(10, 2)),
        }
    )
    total = 0
    for keys in (("word", "number"), ("number",), ("word",), ()):
        made = (
            pipeline("warm")
            .source(stream(partition_column="p"))
            .watermark("t", delay=1, grace=1)
            .key(*keys)
            .hopping(10, slide=4)
            .aggregate(
                rows=count(),
                values=count("x"),
                float_total=sum_("x"),
                float_mean=mean("x"),
                float_least=min_("x"),
                total=sum_("number"),
                usual=mean("number"),
                most=max_("number"),
                spread=var_samp("number"),
                float_spread=stddev_pop("x"),
                exact_total=sum_("exact"),
                exact_mean=mean("exact"),
            )
            .sink(memory())
            .output("update")
            .incremental("memory://")
            .trigger(rows=4, once=True, drain=True)
            .build()
        )
        total += run(made, stream=[batch]).progress.accepted
    return total + _sessions()


def _sessions() -> int:
    """So many that closed ones are cleared away, and a row in the second epoch that joins two."""
    apart, half = range(0, 15_000, 10), 14_985
    batch = pa.record_batch({"t": pa.array([*apart, half, *apart], pa.int64())})
    made = (
        pipeline("warm")
        .source(stream())
        .watermark("t", delay=30, grace=0, late_rule="window")
        .key()
        .session(8)
        .aggregate(rows=count())
        .sink(memory())
        .output("update")
        .incremental("memory://")
        .trigger(rows=1500, once=True, drain=True)
        .build()
    )
    return run(made, stream=[batch]).progress.accepted
