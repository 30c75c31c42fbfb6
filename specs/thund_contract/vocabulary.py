"""The inert records of an event-time stream: what every face of thund calls the same thing.

It refuses to compute: no arithmetic, no loops. A helper shared by the reference and the
implementation would make both wrong together.
"""

from __future__ import annotations

from dataclasses import dataclass

# ---- event time and watermark: int64 milliseconds since the epoch ------------------------------

NEVER = -9223372036854775808
"""W before any candidate: minus infinity (law W)."""

END = 9223372036854775807
"""W after a drain: plus infinity (law W6)."""

MIN_EVENT_TIME = -4503599627370496
MAX_EVENT_TIME = 4503599627370496
"""The declared range, inclusive (law A4): 2^52 ms, about 142,000 years to either side of 1970.
The sum of size, |offset|, delay and grace may not exceed it either. So no law can overflow
int64, and a window's bounds fit a microsecond timestamp, which is what databases keep."""

NONE_BEFORE = -1
"""`prev` of the first row of a partition (law S3). Offsets are not negative."""

# ---- configuration: all that T7 reads (law K8) --------------------------------------------------

TUMBLING = "tumbling"
HOPPING = "hopping"
SESSION = "session"
CALENDAR = "calendar"
WINDOW_KINDS = (TUMBLING, HOPPING, SESSION, CALENDAR)

HOUR = "hour"
DAY = "day"
WEEK = "week"
MONTH = "month"
UNITS = (HOUR, DAY, WEEK, MONTH)
"""What a calendar window spans. A week begins on Monday (ISO 8601)."""

APPEND = "append"
UPDATE = "update"
COMPLETE = "complete"

ROW_RULE = "row"
"""Late iff before W: law A1, the default."""

WINDOW_RULE = "window"
"""Late iff its window is closed: law A2."""

PARTITION_RULE = "partition"
"""Late iff before W, or more than the delay behind its own partition: law A3."""

LATE_RULES = (ROW_RULE, WINDOW_RULE, PARTITION_RULE)

BY_ROW = "row"
"""W moves after each row: law W3, the default."""

BY_EPOCH = "epoch"
"""No row moves W before the epoch's end; there for comparison with other engines (law W3)."""

ACCUMULATING = "accumulating"
"""Each pane has the whole result so far (law E6)."""

DISCARDING = "discarding"
"""Each pane has the rows of its epoch only (law E6)."""

RETRACTING = "retracting"
"""Each pane but the first comes after the one it replaces, taken back (law E6)."""

PANES = (ACCUMULATING, DISCARDING, RETRACTING)

EARLY = "early"
ON_TIME = "on_time"
LATE = "late"
TIMINGS = (EARLY, ON_TIME, LATE)
"""A pane is early before W has passed its window's end, on_time the first time after, then late."""

COUNT = "count"
SUM = "sum"
MIN = "min"
MAX = "max"
MEAN = "mean"
VAR_POP = "var_pop"
VAR_SAMP = "var_samp"
STDDEV_POP = "stddev_pop"
STDDEV_SAMP = "stddev_samp"
FIRST = "first"
LAST = "last"
ANY = "any"
ALL = "all"
COUNT_DISTINCT = "count_distinct"
G_COUNTER = "g_counter"
PN_COUNTER = "pn_counter"
LWW = "lww"
OR_SET = "or_set"
OPERATIONS = (
    COUNT,
    SUM,
    MIN,
    MAX,
    MEAN,
    VAR_POP,
    VAR_SAMP,
    STDDEV_POP,
    STDDEV_SAMP,
    FIRST,
    LAST,
    ANY,
    ALL,
    COUNT_DISTINCT,
    G_COUNTER,
    PN_COUNTER,
    LWW,
    OR_SET,
)
"""Any other operation is the name of a monoid that its user has registered."""


@dataclass(frozen=True, slots=True)
class WindowSpec:
    """Windows [start_ms, end_ms). What a kind does not use stays at its default.

    tumbling: start = offset_ms modulo size_ms (law G1). hopping: a window of size_ms at each
    offset_ms modulo slide_ms, slide_ms <= size_ms (law G2). session: gap_ms (law G3), and size_ms
    is 0. calendar: one `unit` of the local time of `zone` (an IANA name), moved by offset_ms of
    local time, and size_ms is 0 (law G5).
    """

    size_ms: int
    offset_ms: int = 0
    kind: str = TUMBLING
    slide_ms: int = 0
    gap_ms: int = 0
    unit: str = ""
    zone: str = ""


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One output column. `column` is None for count(*): rows, nulls included (law G4).

    others: the further columns of an operation that reads several: g_counter(count, replica),
    pn_counter(increments, decrements, replica), lww(value, stamp), or_set(element, tag, added).
    """

    name: str
    operation: str
    column: str | None = None
    others: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Operator:
    """One more window over the admitted rows of a pipeline, with a table of its own (law E5)."""

    name: str
    key: tuple[str, ...]
    window: WindowSpec
    aggregates: tuple[Aggregate, ...]
    output: str = APPEND
    panes: str = ""


@dataclass(frozen=True, slots=True)
class Config:
    """The deterministic core's configuration.

    delay_ms is delta, grace_ms is Delta of the laws. `credits` is C_p, the same for each
    partition; it, and it alone, may differ between two runs on one state (law K8).
    idle_timeout_ms: 0 turns idleness off (law W4). rename (new name, old name), derive (name,
    expression) and filter (an expression) make the columns and choose the rows, in this order.
    deduplicate names the columns of a row's id, which is remembered while W <= event time +
    remember_ms (law A7). panes is one of PANES, or "" for none; it needs the update mode (law E6).
    more: further windows over the same admitted rows, under names other than `operator`; the window
    rule is not for several (law A2).
    """

    pipeline: str
    event_time: str
    key: tuple[str, ...]
    window: WindowSpec
    aggregates: tuple[Aggregate, ...]
    delay_ms: int = 0
    grace_ms: int = 0
    late_rule: str = ROW_RULE
    output: str = APPEND
    max_future_ms: int | None = None
    late_lane: bool = True
    watermark_update: str = BY_ROW
    operator: str = "window"
    credits: int = 1048576
    idle_timeout_ms: int = 0
    rename: tuple[tuple[str, str], ...] = ()
    derive: tuple[tuple[str, str], ...] = ()
    filter: str | None = None
    deduplicate: tuple[str, ...] = ()
    remember_ms: int = 0
    panes: str = ""
    more: tuple[Operator, ...] = ()


# ---- rows and items ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Row:
    """One row as the reference sees it.

    event_time: an int in milliseconds, or what stood there instead: None (null), NaN, or a text
    (undecodable). key: one value per Config.key. values: one per Config.aggregates, None for null
    and for count(*); a tuple of them where the operation reads several columns. A key or a value is
    None, bool, int, float, str or bytes; any other Arrow scalar is the pair (type name, int or
    str): a decimal's int is unscaled. passes: what Config.filter says of the row; None is null.
    id: one value per Config.deduplicate. more: (key, values) for each of Config.more.
    """

    partition: str
    offset: int
    event_time: object
    key: tuple[object, ...]
    values: tuple[object, ...]
    passes: bool | None = True
    id: tuple[object, ...] = ()
    more: tuple[tuple[tuple[object, ...], tuple[object, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class Rows:
    """Item: an unbroken run of accepted rows of one partition (law K3).

    first and last are offsets, inclusive; rows is how many there are (offsets may have holes).
    """

    partition: str
    first: int
    last: int
    rows: int


@dataclass(frozen=True, slots=True)
class Add:
    """Item: the partition is assigned, or assigned again (law W5)."""

    partition: str


@dataclass(frozen=True, slots=True)
class Remove:
    """Item: the partition is no longer assigned (law W5)."""

    partition: str


@dataclass(frozen=True, slots=True)
class Clock:
    """Item: a reading of the processing-time clock, taken only where the future guard is on."""

    now_ms: int


@dataclass(frozen=True, slots=True)
class Idle:
    """Item: a reading between two epochs found these partitions idle, sorted (law W4).

    Those that were idle before it are not named again.
    """

    partitions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Drain:
    """Item: the caller asked for W = END and every row was accepted (law W6)."""


Item = Rows | Add | Remove | Clock | Idle | Drain

# ---- why a row is invalid (law A4) -------------------------------------------------------------

NULL_TIME = "null"
NAN_TIME = "nan"
UNDECODABLE_TIME = "undecodable"
OUT_OF_RANGE = "out_of_range"
TOO_FAR_AHEAD = "too_far_ahead"

# ---- what one epoch shows, in a normal form that every engine can give ------------------------------


@dataclass(frozen=True, slots=True)
class PartitionState:
    """What the manifest keeps of a partition, removed ones too (laws W1, W5, A5, K3).

    last is NONE_BEFORE before the first accepted row; max_event_time is None before the first
    valid one. filtered: rows that the filter does not pass. repeated: rows whose id was remembered
    (law A7). late_window_drops: windows that admitted rows missed (law A2).
    """

    partition: str
    assigned: bool
    last: int
    max_event_time: int | None
    accepted: int
    admitted: int
    late: int
    invalid: int
    idle: bool = False
    filtered: int = 0
    repeated: int = 0
    late_window_drops: int = 0


@dataclass(frozen=True, slots=True)
class Put:
    """Outbox: the row of one (key, window); `values` one per aggregate (laws E1 to E3, E5)."""

    id: str
    version: int
    key: tuple[object, ...]
    start_ms: int
    end_ms: int
    values: tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Delete:
    """Outbox: a tombstone (laws E2, E3, M1)."""

    id: str
    version: int


@dataclass(frozen=True, slots=True)
class Pane:
    """Lane of panes: what an append-only sink is given of one result, each time it shows (law E6).

    number counts the panes of an id from 0. A retraction has the number, timing and values of the
    pane that it takes back.
    """

    id: str
    number: int
    timing: str
    retraction: bool
    key: tuple[object, ...]
    start_ms: int
    end_ms: int
    values: tuple[object, ...]


@dataclass(frozen=True, slots=True)
class LateRow:
    """Late lane: identity of the row, its event time, and W as it stood just before (law A6)."""

    partition: str
    offset: int
    event_time: int
    watermark: int


@dataclass(frozen=True, slots=True)
class InvalidRow:
    """Quarantine lane: identity, reason and W at the time (law A4)."""

    partition: str
    offset: int
    reason: str
    watermark: int


@dataclass(frozen=True, slots=True)
class Unfit:
    """Lane of values that do not fit their output type; the row shows null there (law G4)."""

    id: str
    aggregate: str
    value: str


@dataclass(frozen=True, slots=True)
class WindowState:
    """One open (key, window): its partial aggregates in exact normal form (laws F3, G4).

    partials, one per aggregate, over its non-null rows:
    - count, and count_distinct as a sorted tuple of the distinct values;
    - sum, mean -> (count, numerator, denominator, specials): the exact sum in lowest terms, for
      integers, decimals and floats alike; specials is a sorted tuple of those of "nan", "+inf",
      "-inf" that were seen: their rows count, but add nothing to the exact sum;
    - var_*, stddev_* -> (count, numerator, denominator, numerator and denominator of the exact sum
      of squares, specials);
    - min, max, any, all -> the value so far, None for no value;
    - first, last -> None or (event time, partition, offset, value);
    - lww -> None or (stamp, value);
    - g_counter -> sorted ((replica, count), ...); pn_counter -> sorted ((replica, increments,
      decrements), ...); or_set -> (sorted ((element, tag), ...) of adds, the same of removes);
    - a user's monoid -> the bytes that it encodes the partial to.

    end_ms: of a session, else None. panes, timing: how many panes were shown, and the last one's
    timing, where panes are on. operator: a name of Config.more, "" for the first window.
    """

    key: tuple[object, ...]
    start_ms: int
    partials: tuple[object, ...]
    end_ms: int | None = None
    panes: int = 0
    timing: str = ""
    operator: str = ""


@dataclass(frozen=True, slots=True)
class Seen:
    """One remembered id, with the event time of the row that brought it (law A7)."""

    id: tuple[object, ...]
    event_time: int


@dataclass(frozen=True, slots=True)
class EpochRecord:
    """All that can be compared of one committed epoch; lists sorted as their fields are."""

    epoch: int
    items: tuple[Item, ...]
    watermark: int
    partitions: tuple[PartitionState, ...]
    state: tuple[WindowState, ...]
    outbox: tuple[Put | Delete, ...]
    late: tuple[LateRow, ...]
    invalid: tuple[InvalidRow, ...]
    unfit: tuple[Unfit, ...]
    drained: bool
    seen: tuple[Seen, ...] = ()
    panes: tuple[Pane, ...] = ()


# ---- the durable steps of an epoch (law K1), in order --------------------------------------------

STATE_STEP = "state"
OUTBOX_STEP = "outbox"
MANIFEST_STEP = "manifest"
POINTER_STEP = "pointer"
SOURCE_STEP = "source"
SINK_STEP = "sink"
STEPS = (STATE_STEP, OUTBOX_STEP, MANIFEST_STEP, POINTER_STEP, SOURCE_STEP, SINK_STEP)
"""A step is announced as (name, epoch) just after it became durable."""
