"""What an aggregate can be, as functions of columns; the builder gives each its name.

The laws of all of them: G4. Nulls are skipped by all but `count()`.
"""

from __future__ import annotations

from dataclasses import dataclass

from thund import calls
from thund_contract import vocabulary as v


@dataclass(frozen=True, slots=True)
class Call:
    """An operation over columns, not yet named."""

    operation: str
    columns: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """As TOML writes it."""
        return calls.write(self.operation, self.columns)


def count(column: str | None = None) -> Call:
    """Rows, or the values of a column that are not null. Law: G4."""
    return Call(v.COUNT, () if column is None else (column,))


def sum_(column: str) -> Call:
    """The exact sum: checked int64 of integers, rounded once to float64 of floats. Law: G4."""
    return Call(v.SUM, (column,))


def min_(column: str) -> Call:
    """The least value. Law: G4."""
    return Call(v.MIN, (column,))


def max_(column: str) -> Call:
    """The greatest value. Law: G4."""
    return Call(v.MAX, (column,))


def mean(column: str) -> Call:
    """The exact quotient of sum and count, rounded once. Law: G4."""
    return Call(v.MEAN, (column,))


def var_pop(column: str) -> Call:
    """The exact variance of all values, rounded once. Law: G4."""
    return Call(v.VAR_POP, (column,))


def var_samp(column: str) -> Call:
    """The exact variance estimated from a sample; null for one value. Law: G4."""
    return Call(v.VAR_SAMP, (column,))


def stddev_pop(column: str) -> Call:
    """The square root of `var_pop`, rounded once. Law: G4."""
    return Call(v.STDDEV_POP, (column,))


def stddev_samp(column: str) -> Call:
    """The square root of `var_samp`, rounded once. Law: G4."""
    return Call(v.STDDEV_SAMP, (column,))


def first(column: str) -> Call:
    """The value of the least (event time, partition, offset). Law: G4."""
    return Call(v.FIRST, (column,))


def last(column: str) -> Call:
    """The value of the greatest (event time, partition, offset). Law: G4."""
    return Call(v.LAST, (column,))


def any_(column: str) -> Call:
    """Whether a value is true. Law: G4."""
    return Call(v.ANY, (column,))


def all_(column: str) -> Call:
    """Whether every value is true. Law: G4."""
    return Call(v.ALL, (column,))


def count_distinct(column: str) -> Call:
    """How many different values there are, exactly. Law: G4."""
    return Call(v.COUNT_DISTINCT, (column,))


def g_counter(count: str, replica: str) -> Call:  # the columns' roles are their names
    """A counter that only grows: the largest count of each replica, added up. Law: G4."""
    return Call(v.G_COUNTER, (count, replica))


def pn_counter(increments: str, decrements: str, replica: str) -> Call:
    """Two growing counters per replica: all increments less all decrements. Law: G4."""
    return Call(v.PN_COUNTER, (increments, decrements, replica))


def lww(value: str, stamp: str) -> Call:
    """The value that was written last: that of the greatest (stamp, value). Law: G4."""
    return Call(v.LWW, (value, stamp))


def or_set(element: str, tag: str, added: str) -> Call:
    """The elements with an added tag that is not removed, as a sorted list. Law: G4."""
    return Call(v.OR_SET, (element, tag, added))


def monoid(name: str, *columns: str) -> Call:
    """A monoid that was registered under a name and a version, such as "peak@1". Law: G4."""
    return Call(name, columns)
