"""Record batches from Python into windows: a pipeline written in code, run on a generator."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

import thund
from thund.builder import count, max_, memory, pipeline, stream

CLICKS = [(0, "ann"), (400, "bob"), (900, "ann"), (1500, "ann"), (200, "bob"), (2600, "bob")]


def clicks() -> Iterator[pa.RecordBatch]:
    """Batches of two rows, as they might come from a socket."""
    for start in range(0, len(CLICKS), 2):
        at, user = zip(*CLICKS[start : start + 2], strict=True)
        yield pa.record_batch({"at": pa.array(at, pa.int64()), "user": list(user)})


PER_SECOND = (
    pipeline("clicks")
    .source(stream())
    .watermark("at", allowed_lateness="1s")
    .key("user")
    .tumbling("1s")
    .aggregate(clicks=count(), newest=max_("at"))
    .sink(memory())
    .trigger(once=True, drain=True)
    .build()
)

if __name__ == "__main__":
    print(PER_SECOND.to_toml())
    print(thund.run(PER_SECOND, stream=clicks).table)
