"""The operations that keep a partial of their own beside the fixed words, by name."""

from __future__ import annotations

from typing import Any

from thund.decimals import decimal_kind
from thund.extra_distinct import distinct_kind
from thund.extra_extreme import extreme_kind
from thund.extra_first import first_kind
from thund.extra_monoid import monoid_kind
from thund.extras import ExtraKind, Factory
from thund.lattices import counter_kind, last_writer_kind, set_kind
from thund.moments import moment_kind
from thund_contract import vocabulary as v

FACTORIES: dict[str, Factory] = {
    v.FIRST: first_kind,
    v.LAST: first_kind,
    v.MIN: extreme_kind,
    v.MAX: extreme_kind,
    v.COUNT_DISTINCT: distinct_kind,
    v.SUM: decimal_kind,
    v.MEAN: decimal_kind,
    v.VAR_POP: moment_kind,
    v.VAR_SAMP: moment_kind,
    v.STDDEV_POP: moment_kind,
    v.STDDEV_SAMP: moment_kind,
    v.G_COUNTER: counter_kind,
    v.PN_COUNTER: counter_kind,
    v.LWW: last_writer_kind,
    v.OR_SET: set_kind,
}


def extra_kind(aggregate: v.Aggregate, schema: Any) -> ExtraKind | None:
    """How an aggregate keeps its partials, or None where the fixed words do.

    Raises: CallerError for a type that the operation does not have, and for an unknown operation.
    """
    own = None if aggregate.operation in v.OPERATIONS else monoid_kind
    factory = FACTORIES.get(aggregate.operation, own)
    return factory(aggregate, schema) if factory is not None else None
