"""One process over a state store and a sink, from its recovery to its end.

Rows are handed to it; it asks its source only for what identifies them. It has no thread and no
clock of its own.
"""

from __future__ import annotations

from collections.abc import Callable

from thund.batch import Delivery
from thund.checkpoint import Checkpoints
from thund.pipeline import Core
from thund.sink import Sink, publish
from thund.source import Source
from thund_contract.engine import Durable
from thund_contract.vocabulary import SOURCE_STEP, Config


class Engine:
    """Recover, take rows, commit epochs, publish them. Law: K1, K4, K5, R1, T3."""

    def __init__(
        self,
        config: Config,
        checkpoints: Checkpoints,
        sink: Sink,
        source: Source,
        *,
        now: Callable[[], int],
        durable: Durable,
    ) -> None:
        self.checkpoints, self.sink, self.source, self.durable = checkpoints, sink, source, durable
        recovered = checkpoints.recover()
        if recovered:
            source.verify(recovered.manifest.source)
        self.last = recovered.number if recovered else 0
        self.core = Core(config, source.schema, now=now, restored=recovered)
        publish(checkpoints, sink, durable=durable)

    # ---- what a source asks ------------------------------------------------------------------------

    @property
    def duplicates(self) -> int:
        """Rows that came again in this life. Law: S3, T6."""
        return self.core.duplicates

    def position(self, partition: str) -> int:
        """The last accepted offset, or NONE_BEFORE. Law: S3."""
        return self.core.position(partition)

    def assigned(self) -> tuple[str, ...]:
        """The partitions assigned now, sorted."""
        return self.core.assigned()

    def credit(self, partition: str) -> int:
        """c_p: how many more rows the source may send. Law: C1, C2."""
        return self.core.credits.available(partition)

    def send(self, partition: str, rows: int) -> None:
        """So many new rows go on the wire. Law: C1."""
        self.core.credits.send(partition, rows)

    # ---- what happens ------------------------------------------------------------------------------

    def add(self, partition: str) -> None:
        """Assign a partition. Law: W5."""
        self.core.add(partition)

    def remove(self, partition: str) -> None:
        """Take a partition away. Law: W5."""
        self.core.remove(partition)

    def resume(self) -> None:
        """What passed since the last reading was the engine's own work. Law: W4."""
        self.core.resume()

    def waited(self) -> None:
        """What passed since the last reading was spent waiting for rows. Law: W4."""
        self.core.waited()

    def tick(self) -> None:
        """Rows were waited for until now; read the clock, for the guard or for idleness. Law: A4, W4."""
        self.core.tick()

    def idle(self, partitions: tuple[str, ...]) -> None:
        """A reading that was recorded found these idle. Law: T7, W4."""
        self.core.idle(partitions)

    def read_idleness(self) -> None:
        """Where a partition was quiet for the timeout: cut, read, and publish what that moved.

        Idleness is read between two epochs only. Law: W4, K1.
        """
        if self.core.idle_now:
            self.commit()
            self.core.resume()
            self.core.tick()
            self.commit()

    def deliver(self, delivery: Delivery, *, max_rows: int | None = None) -> None:
        """Rows arrive. An epoch is cut when a window of credit is full, or at `max_rows` of one.

        Law: C2, C3.
        """
        self.core.deliver(delivery)
        while self.core.pending_rows:
            left = None if max_rows is None else max_rows - self.core.rows_in_epoch
            self.core.advance(left)
            cut = max_rows is not None and self.core.rows_in_epoch >= max_rows
            if cut or self.core.credits.full():
                self.commit()

    def drain(self) -> None:
        """W becomes END, once; the epoch is published. Law: W6."""
        self.core.drain()
        self.commit()

    def commit(self) -> None:
        """State and outbox, manifest, pointer; then source and credits, and the sink. Law: K1."""
        epoch = self.core.cut(self.last + 1)
        if epoch is None:
            return
        positions = {p.partition: p.last for p in epoch.partitions}
        self.checkpoints.commit(epoch, source=self.source.fingerprint(positions))
        self.last = epoch.number
        self.core.committed()
        self.source.commit(positions)
        self.durable(SOURCE_STEP, epoch.number)
        publish(self.checkpoints, self.sink, durable=self.durable)
