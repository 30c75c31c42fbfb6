"""Exact sums of groups: as words in a block, as columns of the state, and as what is shown."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from thund.columns import build, raw
from thund.kernel_round import round_sums
from thund.kernel_sum import (
    BASE_BIAS,
    MINUS_INF,
    NAN,
    PLUS_INF,
    SPECIAL_SHIFT,
    UNIT,
    WIDE_SHIFT,
)
from thund.table import Block
from thund_contract import vocabulary as v

_DIVISOR_MAX = 1 << 31
_PRECISION = 76


@dataclass(frozen=True, slots=True)
class Column:
    """A column that aggregates read, by words of its kind.

    kind: "integer", "unsigned" (uint64), "float", "time", "boolean" (any is max, all is min), "any".

    A uint64 is kept with its top bit turned, as the int64 of the same order; a sum of n of them is
    n * 2**63 too low until it is shown.
    """

    name: str
    type: Any
    kind: str
    sums: bool
    least: bool
    most: bool

    @property
    def valued(self) -> bool:
        """Whether its values are read, not only its nulls."""
        return self.sums or self.least or self.most

    @property
    def extremes(self) -> list[tuple[str, str]]:
        """Operations that show the least or the largest value, each with the label of its word."""
        least, most = (v.ALL, v.ANY) if self.kind == "boolean" else (v.MIN, v.MAX)
        wanted = [(least, f"min:{self.name}")] * self.least
        return wanted + [(most, f"max:{self.name}")] * self.most


def counts(block: Block, column: Column) -> NDArray[np.int64]:
    """How many values of the column are not null, per group."""
    rows = block.word("rows")
    label = f"nulls:{column.name}"
    return rows - block.word(label) if label in block.layout.at else rows.copy()


def integer_sums(block: Block, column: Column) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The low and the high word of the exact sum, per group."""
    low = block.word(f"sum0:{column.name}").view(np.uint64)
    high = block.word(f"sum1:{column.name}")
    if column.kind == "unsigned":
        low, high = shifted(low, high, counts(block, column))
    return low.view(np.int64), high


def float_sum(block: Block, name: str, group: int) -> int:
    """The exact sum of a group's finite values, in units of 2**UNIT."""
    head, *words = (int(block.word(f"sum{w}:{name}")[group]) for w in range(4))
    low = (words[0] & (1 << 64) - 1) | (words[1] & (1 << 64) - 1) << 64 | words[2] << 128
    total = low << max(0, (head & 0xFFFF) - BASE_BIAS)
    number = head >> WIDE_SHIFT
    if number:
        total += int.from_bytes(block.wide[number - 1].tobytes(), "little", signed=True)
    return total


def shifted(
    low: NDArray[np.uint64], high: NDArray[np.int64], times: NDArray[np.int64]
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """128-bit integers plus times * 2**63."""
    more = (times & 1).astype(np.uint64) << np.uint64(63)
    total = low + more
    return total, high + (times >> 1) + (total < more)


def show_integer_sums(
    block: Block, column: Column, count: NDArray[np.int64]
) -> tuple[NDArray[np.int64], dict[int, str]]:
    """The exact sums as int64, and those that do not fit, by group.

    Law: G4.
    """
    low, high = integer_sums(block, column)
    lost = np.flatnonzero((high != low >> np.int64(63)) & (count > 0))
    return low, {i: str(_whole(low, high, i)) for i in lost.tolist()}


def _whole(low: NDArray[np.int64], high: NDArray[np.int64], i: int) -> int:
    return int(high[i]) << 64 | int(low[i]) & (1 << 64) - 1


def show_integer_means(
    block: Block, column: Column, count: NDArray[np.int64]
) -> NDArray[np.float64]:
    """The exact quotients, rounded once.

    Law: G4.
    """
    low, high = integer_sums(block, column)
    out = np.empty(len(low), np.float64)
    base = np.zeros(len(low), np.int64)
    round_sums(low, high, high >> np.int64(63), base, np.clip(count, 1, _DIVISOR_MAX), out)
    for i in np.flatnonzero(count > _DIVISOR_MAX).tolist():
        out[i] = _whole(low, high, i) / int(count[i])
    return out


def show_float_quotients(
    block: Block, column: Column, count: NDArray[np.int64], *, mean: bool
) -> tuple[NDArray[np.float64], dict[int, str]]:
    """The exact sums, or means, rounded once; and the sums too large for a double."""
    name = column.name
    head = block.word(f"sum0:{name}")
    words = [block.word(f"sum{w}:{name}") for w in (1, 2, 3)]
    divisor = np.clip(count, 1, _DIVISOR_MAX) if mean else np.ones(len(head), np.int64)
    out = np.empty(len(head), np.float64)
    round_sums(*words, (head & 0xFFFF) - BASE_BIAS + UNIT, divisor, out)
    far = (head >> np.int64(WIDE_SHIFT) != 0) | ((count > _DIVISOR_MAX) & mean)
    for i in np.flatnonzero(far).tolist():
        out[i] = _divide(float_sum(block, name, i), int(count[i]) if mean else 1)
    specials = (head >> np.int64(SPECIAL_SHIFT)) & 0xFFFF
    lost = np.flatnonzero(np.isinf(out) & (specials == 0))
    out[specials == PLUS_INF] = np.inf
    out[specials == MINUS_INF] = -np.inf
    out[(specials & NAN != 0) | (specials & (PLUS_INF | MINUS_INF) == PLUS_INF | MINUS_INF)] = (
        np.nan
    )
    return out, {i: _fraction(float_sum(block, name, i)) for i in lost.tolist()}


def _divide(total: int, divisor: int) -> float:
    try:
        return total / (divisor << -UNIT) if total else 0.0
    except OverflowError:
        return float("inf")


def _fraction(total: int) -> str:
    exact = Fraction(total, 1 << -UNIT)
    return f"{exact.numerator}/{exact.denominator}"


def float_partials(block: Block, name: str) -> dict[str, Any]:
    """The exact sums as columns of the state; windows.py says what they mean."""
    head = block.word(f"sum0:{name}")
    low, mid, high = (block.word(f"sum{w}:{name}") for w in (1, 2, 3))
    sums = np.stack([low, mid, high, high >> np.int64(63)], axis=1)
    numbers = head >> np.int64(WIDE_SHIFT)
    wide = pa.nulls(len(head), pa.binary())
    if numbers.any():
        far = [block.wide[i - 1].tobytes() if i else None for i in numbers.tolist()]
        wide = pa.array(far, pa.binary())
    return {
        f"sum({name})": build(pa.decimal256(_PRECISION, 0), sums),
        f"sum({name}).exponent": build(pa.int64(), (head & 0xFFFF) - BASE_BIAS + UNIT),
        f"sum({name}).specials": pa.array((head >> np.int64(SPECIAL_SHIFT)) & 0xFFFF, pa.int8()),
        f"sum({name}).wide": wide,
    }


def restore_float_sums(
    table: Any, name: str, words: dict[str, NDArray[np.int64]], wide: list[bytes]
) -> None:
    """Set the words of the sums, by label, and add their wide sums to a list."""
    sums = raw(table.column(f"sum({name})"))
    base = raw(table.column(f"sum({name}).exponent")) - UNIT + BASE_BIAS
    specials = raw(table.column(f"sum({name}).specials")).astype(np.int64)
    head = base | specials << np.int64(SPECIAL_SHIFT)
    far = table.column(f"sum({name}).wide")
    for i in np.flatnonzero(far.is_valid().to_numpy(zero_copy_only=False)):
        wide.append(far[int(i)].as_py())
        head[i] |= len(wide) << WIDE_SHIFT
    words[f"sum0:{name}"] = head
    for w in range(3):
        words[f"sum{w + 1}:{name}"] = sums[:, w]
