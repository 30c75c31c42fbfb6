"""Compile every kernel once, so that the first real run finds them in numba's cache.

It runs a small pipeline of made-up rows, in memory, that takes every path of the kernels.
"""

from __future__ import annotations

import pyarrow as pa

from thund.builder import count, max_, mean, memory, min_, pipeline, stream, sum_
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
        }
    )
    total = 0
    for keys in (("word", "number"), ("number",), ("word",), ()):
        made = (
            pipeline("warm")
            .source(stream(partition_column="p"))
            .watermark("t", delay=1, grace=1)
            .key(*keys)
            .tumbling(10)
            .aggregate(
                rows=count(),
                values=count("x"),
                float_total=sum_("x"),
                float_mean=mean("x"),
                float_least=min_("x"),
                total=sum_("number"),
                usual=mean("number"),
                most=max_("number"),
            )
            .sink(memory())
            .output("update")
            .incremental("memory://")
            .trigger(rows=4, once=True, drain=True)
            .build()
        )
        total += run(made, stream=[batch]).progress.accepted
    return total
