"""Columns before the window: some renamed, some derived, and rows that a filter does not pass.

In this order: all renamings at once; each derived column, which may use those before it and takes
the place of a column of its name; then the filter.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from thund.calls import columns_of
from thund.evaluation import evaluate, result_type
from thund.expressions import Expression, parse
from thund_contract.errors import CallerError
from thund_contract.vocabulary import Config


@dataclass(frozen=True, slots=True)
class Prepared:
    """The rows of a batch under their new columns. passes: which the filter passes, None for all."""

    columns: pa.RecordBatch
    passes: NDArray[np.bool_] | None


class Preparation:
    """What a configuration makes of a source's columns. schema: what comes of it.

    Law: A8.
    Raises: CallerError for a column that is missing or twice, or an expression that does not fit.
    """

    def __init__(self, config: Config, source: pa.Schema) -> None:
        self._source = source
        self._renamed = config.rename
        self._derived = [
            (name, parse(text, where=f"derive.{name}")) for name, text in config.derive
        ]
        self._filter = None if config.filter is None else parse(config.filter, where="filter")
        schema = _rename(config.rename, source)
        for name, expression in self._derived:
            schema = _with_field(schema, pa.field(name, result_type(expression, schema)))
        if self._filter:
            _check_filter(self._filter, schema)
        self.schema = schema

    def apply(self, columns: pa.RecordBatch) -> Prepared:
        """The columns of a batch of the source.

        Cost: nothing where nothing is asked for; no copy of a column that is only renamed.
        """
        if self._renamed:
            new = {old: new for new, old in self._renamed}
            names = [new.get(name, name) for name in columns.schema.names]
            columns = pa.RecordBatch.from_arrays(columns.columns, names)
        for name, expression in self._derived:
            columns = _with_column(columns, name, _value(expression, columns))
        passes = None
        if self._filter:
            passed = _value(self._filter, columns).fill_null(False)
            passes = np.asarray(passed.to_numpy(zero_copy_only=False), np.bool_)
        return Prepared(columns, None if passes is None or bool(passes.all()) else passes)


def prepared_schema(config: Config, source: pa.Schema) -> pa.Schema:
    """The columns that the window operator sees of a source.

    Raises: CallerError, see Preparation.
    """
    return Preparation(config, source).schema


def source_columns(config: Config) -> tuple[str, ...]:
    """The columns that a source has to have, each once."""
    wanted: dict[str, None] = dict.fromkeys([config.event_time, *config.key, *config.deduplicate])
    wanted |= dict.fromkeys(name for each in config.aggregates for name in columns_of(each))
    for operator in config.more:
        wanted |= dict.fromkeys(operator.key)
        wanted |= dict.fromkeys(n for each in operator.aggregates for n in columns_of(each))
    if config.filter is not None:
        wanted |= dict.fromkeys(parse(config.filter, where="filter").columns())
    for name, text in reversed(config.derive):
        wanted.pop(name, None)
        wanted |= dict.fromkeys(parse(text, where=f"derive.{name}").columns())
    old = dict(config.rename)
    return tuple(dict.fromkeys([*(old.get(name, name) for name in wanted), *old.values()]))


def source_time(config: Config) -> str | None:
    """The source's own column of event times; None where an expression makes them.

    Law: A4.
    """
    if config.event_time in dict(config.derive):
        return None
    return dict(config.rename).get(config.event_time, config.event_time)


def _value(expression: Expression, columns: pa.RecordBatch) -> pa.Array:
    found = {name: columns.column(name) for name in expression.columns()}
    return evaluate(expression, found, columns.num_rows)


def _with_column(columns: pa.RecordBatch, name: str, values: pa.Array) -> pa.RecordBatch:
    place = columns.schema.get_field_index(name)
    if place >= 0:
        return columns.set_column(place, name, values)
    return columns.append_column(name, values)


def _with_field(schema: pa.Schema, field: pa.Field) -> pa.Schema:
    place = schema.get_field_index(field.name)
    return schema.set(place, field) if place >= 0 else schema.append(field)


def _rename(pairs: tuple[tuple[str, str], ...], source: pa.Schema) -> pa.Schema:
    for new, old in pairs:
        if source.get_field_index(old) < 0:
            raise CallerError(
                f"no column {old!r}" if old not in source.names else f"several columns {old!r}",
                allowed=", ".join(source.names),
                where=f"rename.{new}",
                action="name one of the source's columns",
            )
    by_old = {old: new for new, old in pairs}
    names = [by_old.get(name, name) for name in source.names]
    twice = next((new for new, _ in pairs if names.count(new) > 1), None)
    if twice is not None:
        raise CallerError(
            f"a column {twice!r} is there already",
            allowed="a name that no column has",
            where=f"rename.{twice}",
            action="choose another name, or rename the other column too",
        )
    return pa.schema([field.with_name(name) for field, name in zip(source, names, strict=True)])


def _check_filter(expression: Expression, schema: pa.Schema) -> None:
    kind = result_type(expression, schema)
    if not pa.types.is_boolean(kind):
        raise CallerError(
            f"the filter {expression.text!r} is of type {kind}",
            allowed="an expression that is true or false",
            where=expression.where,
            action="compare with something, as in: delay > 0",
        )
