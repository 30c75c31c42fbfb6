"""The catalogue: at least one seeded bug for each law. A law without one fails the build."""

from __future__ import annotations

from thund_conformance.mutants import aggregates, durable, flow, results, windows
from thund_conformance.mutants.patches import Mutant

MUTANTS = (
    # ---- source and credits
    Mutant(
        name="reread-late", law="S1", patch=flow.reread_one_row_late,
        why="Reading a range a second time starts one row late.",
    ),
    Mutant(
        name="arrival-order", law="S2", patch=flow.order_of_arrival,
        why="Rows are taken as the link brings them, doubled and turned round.",
    ),
    Mutant(
        name="held-twice-uncounted", law="S3", patch=flow.held_again_uncounted,
        why="A row that is held and comes again is not counted as a duplicate.",
    ),
    Mutant(
        name="lost-rows-skipped", law="S4", patch=flow.lost_rows_skipped,
        why="A file that changed since it was read is read on as if it had not.",
    ),
    Mutant(
        name="no-turns", law="S5", patch=flow.partitions_one_after_the_other,
        why="A bounded source reads one partition to its end before the next.",
    ),
    Mutant(
        name="duplicate-takes-credit", law="C1", patch=flow.duplicate_takes_a_credit,
        why="A duplicate takes a second credit, which never comes back.",
    ),
    Mutant(
        name="full-window-unseen", law="C2", patch=flow.full_window_unseen,
        why="Nothing cuts an epoch when a credit window is full: FLINK-16641's deadlock.",
    ),
    Mutant(
        name="credits-back-once", law="C3", patch=flow.credits_come_back_once,
        why="Only the first epoch of a life gives its credits back.",
    ),
    Mutant(
        name="credit-not-asked", law="C4", patch=flow.credit_not_asked,
        why="The source hands rows over whether or not there is credit for them.",
    ),
    # ---- watermark and admission
    Mutant(
        name="maximum-not-restored", law="W1", patch=flow.maximum_not_restored,
        why="FLINK-4616: the largest event time of a partition is lost on restore.",
    ),
    Mutant(
        name="delay-forgotten", law="W2", patch=flow.delay_forgotten,
        why="The delay is not taken off the candidate.",
    ),
    Mutant(
        name="silent-partition-ignored", law="W2", patch=flow.partition_without_rows_ignored,
        why="A partition without a valid row does not hold W.",
    ),
    Mutant(
        name="watermark-falls", law="W3", patch=flow.watermark_falls,
        why="W follows the candidate downwards too.",
    ),
    Mutant(
        name="rows-move-w-always", law="W3", patch=flow.rows_always_move_the_watermark,
        why="Rows move W inside an epoch also where its end should.",
    ),
    Mutant(
        name="epochs-end-moves-nothing", law="W3", patch=flow.epochs_end_moves_nothing,
        why="Where the end of an epoch should move W, nothing does.",
    ),
    Mutant(
        name="epochs-end-closes-nothing", law="F1", patch=flow.epochs_end_closes_nothing,
        why="W moves at the end of an epoch, but its windows close in the next one.",
    ),
    Mutant(
        name="idle-clock-at-work", law="W4", patch=flow.idle_clock_runs_at_work,
        why="The time that the engine works counts as time without rows.",
    ),
    Mutant(
        name="idleness-inside-epoch", law="W4", patch=flow.idleness_read_inside_an_epoch,
        why="A reading inside an epoch finds partitions idle.",
    ),
    Mutant(
        name="idle-one-by-one", law="W4", patch=flow.idle_one_after_the_other,
        why="Partitions of one reading go idle one after the other, and W runs on between them.",
    ),
    Mutant(
        name="idleness-not-recorded", law="W4", patch=flow.reading_not_recorded,
        why="Partitions go idle, and the manifest does not say when.",
    ),
    Mutant(
        name="wake-seen-later", law="W4", patch=flow.wake_seen_by_the_next_move,
        why="W moves with a row as if the row's partition were still idle.",
    ),
    Mutant(
        name="waking-batch-whole", law="W4", patch=flow.waking_batch_taken_whole,
        why="A batch that wakes a partition is judged by W as it stands at its end.",
    ),
    Mutant(
        name="restart-wakes", law="W4", patch=flow.restart_wakes,
        why="A restart makes idle partitions active.",
    ),
    Mutant(
        name="removed-wakes", law="W4", patch=flow.removed_partition_wakes,
        why="A removed partition loses its flag.",
    ),
    Mutant(
        name="invalid-row-is-quiet", law="W4", patch=flow.invalid_row_does_not_end_the_quiet,
        why="A partition that gives invalid rows only goes idle.",
    ),
    Mutant(
        name="held-row-is-quiet", law="W4", patch=flow.held_row_does_not_stop_the_clock,
        why="A partition whose rows wait for a lost one goes idle.",
    ),
    Mutant(
        name="resumed-lowers-w", law="W5", patch=flow.resumed_partition_lowers_the_watermark,
        why="A partition that comes back pulls W down to its own time.",
    ),
    Mutant(
        name="status-counts-idle", law="W7", patch=flow.status_counts_idle_partitions,
        why="Status names an idle partition, for which W does not wait.",
    ),
    Mutant(
        name="status-keeps-holder", law="W7", patch=flow.status_keeps_the_holder_in_the_bound,
        why="What W would be without its holder counts the holder.",
    ),
    Mutant(
        name="status-since-newest", law="W7", patch=flow.status_since_the_newest_epoch,
        why="Status looks at the newest epoch only to say since when W is held.",
    ),
    Mutant(
        name="removed-forgotten", law="W5", patch=flow.removed_partition_forgotten,
        why="A partition that is added again starts without its largest event time.",
    ),
    Mutant(
        name="drain-stops-short", law="W6", patch=flow.drain_stops_at_the_largest_time,
        why="A drain stops at the largest event time, so the last windows never close.",
    ),
    Mutant(
        name="late-at-the-watermark", law="A1", patch=flow.late_at_the_watermark,
        why="A row at W itself is late: iceberg#15867's off by one.",
    ),
    Mutant(
        name="window-rule-by-row", law="A2", patch=flow.every_rule_is_the_row_rule,
        why="numaflow#696: a row before W is late although its window is open.",
    ),
    Mutant(
        name="window-rule-without-grace", law="A2", patch=flow.window_rule_without_grace,
        why="A row is late once W has reached the end of its window, whatever the grace.",
    ),
    Mutant(
        name="window-rule-without-offset", law="A2", patch=flow.window_rule_without_offset,
        why="The window rule looks at another grid than the windows.",
    ),
    Mutant(
        name="missed-windows-take-row", law="A2", patch=windows.missed_windows_take_the_row,
        why="hazelcast-jet#675: a row goes into all windows that hold it, closed ones too; none is counted.",
    ),
    Mutant(
        name="late-by-first-window", law="A2", patch=windows.late_by_the_first_window,
        why="Model windows_late_by_first: a row is late once the first of its windows is closed.",
    ),
    Mutant(
        name="missed-counted-once", law="A2", patch=windows.missed_windows_counted_as_one,
        why="Model windows_drops_rows: a row that missed two windows is counted as one.",
    ),
    Mutant(
        name="open-session-holds-none", law="A2", patch=windows.open_sessions_hold_no_late_row,
        why="Model sessions_late_inside: a row that an open session holds is late.",
    ),
    Mutant(
        name="closed-session-takes", law="A2", patch=windows.closed_sessions_take_rows,
        why="Model sessions_close_at_cut: a session that W has passed takes rows to the batch's end.",
    ),
    Mutant(
        name="partition-rule-by-row", law="A3", patch=flow.every_rule_is_the_row_rule,
        why="A row far behind its own partition is on time while another one holds W.",
    ),
    Mutant(
        name="guard-off", law="A4", patch=flow.guard_off,
        why="An event time far ahead of the clock is taken, and carries W away.",
    ),
    Mutant(
        name="late-counted-as-admitted", law="A5", patch=flow.late_rows_counted_twice,
        why="A late row is counted as late and as admitted.",
    ),
    Mutant(
        name="late-lane-later-watermark", law="A6", patch=flow.late_lane_has_a_later_watermark,
        why="The late lane shows W at the end of the batch, not just before the row.",
    ),
    Mutant(
        name="repeats-renew", law="A7", patch=flow.repeats_renew,
        why="nats-server#7302 asks for it: a repeat renews the memory, so an id may never be new again.",
    ),
    Mutant(
        name="id-forgotten-at-bound", law="A7", patch=flow.forgotten_at_the_bound,
        why="Model repeats_forgets_early: an id is forgotten at W = event time + remember.",
    ),
    Mutant(
        name="id-known-in-memory", law="A7", patch=flow.known_while_in_memory,
        why="Model repeats_by_memory: an id is known for as long as it happens to be kept.",
    ),
    Mutant(
        name="late-remembered", law="A7", patch=flow.late_rows_remembered,
        why="Repeats are judged before late rows: a late row's id is known, and the row on time is dropped.",
    ),
    Mutant(
        name="ids-lost-by-restart", law="A7", patch=flow.ids_lost_by_a_restart,
        why="WM-18, KAFKA-7994, for ids: what was seen is unknown after a restart.",
    ),
    Mutant(
        name="ids-lost-at-cut", law="A7", patch=flow.ids_lost_at_the_cut,
        why="Model repeats_forgets_at_cut: a repeat in the next epoch is admitted.",
    ),
    Mutant(
        name="ids-never-forgotten", law="A7", patch=flow.ids_never_forgotten,
        why="ST-02, SPARK-19932: every id is kept for ever.",
    ),
    Mutant(
        name="filtered-moves-nothing", law="A8", patch=flow.filtered_rows_move_nothing,
        why="numaflow#1357, hazelcast#20740: a source whose rows are all filtered out holds W for ever.",
    ),
    Mutant(
        name="null-passes", law="A8", patch=flow.null_passes,
        why="databend#7966: a row for which the filter is null passes it.",
    ),
    Mutant(
        name="filtered-late-first", law="A8", patch=flow.filtered_rows_are_late_first,
        why="Model filter_after_late: a row that the filter does not pass is counted late.",
    ),
    # ---- windows, aggregates, output
    Mutant(
        name="truncated-start", law="G1", patch=results.truncated_start,
        why="The window's start is truncated toward zero: wrong for negative times.",
    ),
    Mutant(
        name="hops-truncated", law="G2", patch=results.truncated_start,
        why="Model windows_hops_truncate: the start of a hopping window is truncated toward zero.",
    ),
    Mutant(
        name="hops-by-quotient", law="G2", patch=windows.hops_by_the_quotient,
        why="Model windows_hops_quotient: a row is in size / slide windows, rounded down.",
    ),
    Mutant(
        name="ends-cut-no-cell", law="G2", patch=windows.ends_cut_no_cell,
        why="WN-04, bytewax#485: where the slide does not divide the size, a row is in a window too many.",
    ),
    Mutant(
        name="cell-dropped-early", law="G2", patch=windows.cell_dropped_early,
        why="onyx#801: what windows share goes when the first of them closes.",
    ),
    Mutant(
        name="cells-merged-in-place", law="G2", patch=windows.cells_merged_in_place,
        why="BEAM-11050: the first of the partials is merged into, so the next window counts rows twice.",
    ),
    Mutant(
        name="gap-counts-both-ends", law="G3", patch=windows.gap_counts_both_ends,
        why="WN-20, model sessions_inclusive_reached: a row at the end of a session joins it.",
    ),
    Mutant(
        name="bridge-joins-one-side", law="G3", patch=windows.bridge_joins_one_side,
        why="WN-19, FLINK-26444: a row between two sessions joins one of them.",
    ),
    Mutant(
        name="bridge-forgets", law="G3", patch=windows.bridge_forgets_what_was_there,
        why="WN-19 over two epochs: of merged sessions one loses what the epochs before had in it.",
    ),
    Mutant(
        name="closes-without-gap", law="G3", patch=windows.closes_without_the_gap,
        why="LT-13, KAFKA-12718: a session closes at its last row, not a gap later.",
    ),
    Mutant(
        name="restart-keeps-newest", law="G3", patch=windows.older_sessions_lost_by_a_restart,
        why="Model sessions_joins_one, by a restart: it finds the newest session of a key and no other.",
    ),
    Mutant(
        name="summer-forgotten", law="G5", patch=windows.one_distance_a_year,
        why="Model calendar_fixed, pinot#1018: each day has 24 hours.",
    ),
    Mutant(
        name="negative-local-truncated", law="G5", patch=windows.negative_local_time_truncated,
        why="Model calendar_truncates: a local time before 1970 is in the unit after its own.",
    ),
    Mutant(
        name="second-midnight", law="G5", patch=windows.second_midnight_starts_a_day,
        why="Model calendar_midnight_twice, elasticsearch#27976: a midnight shown twice starts two days.",
    ),
    Mutant(
        name="skipped-midnight", law="G5", patch=windows.skipped_midnight_too_early,
        why="druid#8711: a day whose midnight the clock jumps over starts where midnight would have been.",
    ),
    Mutant(
        name="hours-by-label", law="G5", patch=windows.hours_by_their_label,
        why="Model calendar_hour_label, timescaledb#4884: an hour that comes twice is one window.",
    ),
    Mutant(
        name="cycle-one-day-more", law="G5", patch=windows.cycle_of_one_day_more,
        why="SPARK-26651's calendars: 400 years have a day more than the Gregorian calendar gives them.",
    ),
    Mutant(
        name="sum-wraps", law="G4", patch=results.sum_wraps_silently,
        why="A sum that does not fit is shown wrapped, and reported nowhere.",
    ),
    Mutant(
        name="null-counted", law="G4", patch=results.null_counted_as_a_value,
        why="count(column) counts nulls.",
    ),
    Mutant(
        name="wide-sums-lost", law="G4", patch=results.partials_rounded_in_the_state,
        why="What an exact float sum has beyond its digits is not kept in the state.",
    ),
    Mutant(
        name="sample-of-one", law="G4", patch=aggregates.sample_of_one_is_zero,
        why="matrixone#24220: the sample's variance is the population's, and that of one value is 0.",
    ),
    Mutant(
        name="variance-of-rounded", law="G4", patch=aggregates.variance_of_rounded_sums,
        why="elasticsearch#37303: the variance comes from sums that are rounded already.",
    ),
    Mutant(
        name="ties-by-arrival", law="G4", patch=aggregates.ties_by_arrival,
        why="timescaledb#1620: of rows of one time, first shows the one that came first.",
    ),
    Mutant(
        name="zeros-apart", law="G4", patch=aggregates.zeros_apart,
        why="polars#10457, ClickHouse#70973: -0.0 and 0.0 are two distinct values.",
    ),
    Mutant(
        name="decimal-sum-wraps", law="G4", patch=aggregates.decimal_sum_wraps,
        why="SPARK-28067: a sum of decimals that does not fit is shown all the same.",
    ),
    Mutant(
        name="counters-add", law="G4", patch=aggregates.counters_add,
        why="defradb#5274: a count that comes again is added once more.",
    ),
    Mutant(
        name="replicas-forgotten", law="G4", patch=aggregates.replicas_forgotten,
        why="orbit-db-counterstore#44: counts of two replicas are taken for those of one.",
    ),
    Mutant(
        name="writers-tie-by-arrival", law="G4", patch=aggregates.writers_tie_by_arrival,
        why="cockroach#168541: of two writes of one stamp the first to come stays.",
    ),
    Mutant(
        name="removes-win", law="G4", patch=aggregates.removes_win,
        why="nandatown#124: a remove also takes adds that it has not seen.",
    ),
    Mutant(
        name="texts-cut-to-eight", law="G4", patch=aggregates.texts_cut_to_eight,
        why="duckdb#22515: min and max look at the first eight bytes of a text, and show them.",
    ),
    Mutant(
        name="closes-one-later", law="F1", patch=results.closes_one_later,
        why="A window closes at W > end + grace.",
    ),
    Mutant(
        name="opens-again", law="F2", patch=results.closed_window_opens_again,
        why="A late row opens its closed window once more.",
    ),
    Mutant(
        name="closed-windows-stay", law="F3", patch=results.closed_windows_stay,
        why="A closed window is shown, but its state is never evicted.",
    ),
    Mutant(
        name="cells-stay", law="F3", patch=windows.cells_stay,
        why="Model windows_never_evict, for hopping windows: what only closed windows need is kept.",
    ),
    Mutant(
        name="closed-sessions-stay", law="F3", patch=windows.closed_sessions_stay,
        why="bytewax#577: a session that is closed leaves a husk behind.",
    ),
    Mutant(
        name="panes-stay", law="F3", patch=windows.panes_stay,
        why="Model windows_never_evict, for panes: the last pane of a closed window is kept.",
    ),
    Mutant(
        name="shown-without-a-row", law="F4", patch=results.shown_without_a_new_row,
        why="Update mode corrects each open window in each epoch.",
    ),
    Mutant(
        name="append-shows-open", law="E1", patch=results.append_shows_open_windows,
        why="Append mode shows a window before it is final.",
    ),
    Mutant(
        name="update-shows-a-close", law="E2", patch=results.update_shows_a_close,
        why="Update mode shows a window once more when it closes.",
    ),
    Mutant(
        name="complete-forgets", law="E3", patch=results.complete_forgets_over_a_restart,
        why="Complete mode loses the closed rows with the process.",
    ),
    Mutant(
        name="update-misses-a-close", law="E4", patch=results.update_misses_what_closed,
        why="In update mode a row that also closes its window is never shown.",
    ),
    Mutant(
        name="update-keeps-taken", law="E2", patch=windows.update_keeps_taken_sessions,
        why="Model sessions_update_keeps, ksql#6637: the row of a session that was merged away stays.",
    ),
    Mutant(
        name="closed-taken-back", law="E2", patch=windows.closed_sessions_taken_back,
        why="Model sessions_closed_tombstone: a session's row is deleted when it closes.",
    ),
    Mutant(
        name="restored-never-shown", law="E2", patch=windows.restored_sessions_were_never_shown,
        why="After a restart a session that was shown leaves no tombstone: ksql#6637 by a crash.",
    ),
    Mutant(
        name="complete-keeps-taken", law="E3", patch=windows.complete_keeps_taken_sessions,
        why="Model sessions_complete_keeps: the row of a session that was merged away stays.",
    ),
    Mutant(
        name="pane-numbers-restart", law="E6", patch=windows.numbers_start_again,
        why="Model panes_restart: after a restart an id's panes are numbered from 0 again.",
    ),
    Mutant(
        name="taken-back-new-values", law="E6", patch=windows.taken_back_with_the_new_values,
        why="Model panes_new_values: what is taken back has the values of what replaces it.",
    ),
    Mutant(
        name="on-time-each-time", law="E6", patch=windows.on_time_each_time,
        why="beam#36142's prism: a pane is on time again after one that was.",
    ),
    Mutant(
        name="discarding-keeps-rows", law="E6", patch=windows.discarding_keeps_its_rows,
        why="Model panes_repeat: a discarding pane has all rows of a window that is still open.",
    ),
    Mutant(
        name="tombstone-keeps-pane", law="E6", patch=windows.tombstones_take_no_pane_back,
        why="Model panes_tombstone: a reader keeps the pane of a session that was merged away.",
    ),
    Mutant(
        name="identity-without-operator", law="E5", patch=results.identity_without_operator,
        why="Two operators of a pipeline give the same identity to different rows.",
    ),
    # ---- checkpoint and recovery
    Mutant(
        name="source-before-manifest", law="K1", patch=durable.source_told_before_the_manifest,
        why="seatunnel#10574: the source is told of rows that are not committed.",
    ),
    Mutant(
        name="own-manifest-unknown", law="K2", patch=durable.own_manifest_taken_for_anothers,
        why="A create that happened, but whose answer was lost, stops its own writer.",
    ),
    Mutant(
        name="one-range-per-partition", law="K3", patch=flow.one_range_for_each_partition,
        why="The manifest joins the rows of a partition, and so loses the interleaving.",
    ),
    Mutant(
        name="pointer-trusted", law="K4", patch=durable.pointer_trusted,
        why="Recovery goes on from the epoch that the pointer names.",
    ),
    Mutant(
        name="epochs-as-text", law="K4", patch=durable.epochs_compared_as_text,
        why="Epoch 9 is taken for a later one than 10.",
    ),
    Mutant(
        name="gap-skipped", law="K5", patch=durable.gap_skipped,
        why="The sink applies any later outbox, so one that is missing is missing for good.",
    ),
    Mutant(
        name="loser-overwrites", law="K6", patch=durable.loser_writes_over_the_winner,
        why="The manifest is written over one that is there.",
    ),
    Mutant(
        name="silent-step-back", law="K7", patch=durable.silent_step_back,
        why="A damaged epoch is passed over for the one before it.",
    ),
    Mutant(
        name="any-configuration", law="K8", patch=durable.any_configuration_taken,
        why="A state is read under another configuration.",
    ),
    Mutant(
        name="manifests-collected", law="K9", patch=durable.manifests_collected,
        why="Garbage collection removes manifests, whose names are what fences.",
    ),
    Mutant(
        name="folder-not-synced", law="K10", patch=durable.folder_not_synced,
        why="A file's name is not durable when the step is announced.",
    ),
    Mutant(
        name="counters-start-again", law="R1", patch=durable.counters_start_again,
        why="Counters are those of one life.",
    ),
    Mutant(
        name="older-answer-wins", law="R2", patch=durable.older_answer_replaces_a_newer,
        why="A recompute run that was beaten replaces the newer answer with its own.",
    ),
    # ---- sink
    Mutant(
        name="any-version-wins", law="M1", patch=durable.any_version_wins,
        why="A row goes over a newer one.",
    ),
    Mutant(
        name="replay-applied-again", law="M2", patch=durable.replay_applied_again,
        why="An outbox that the table has already is applied once more.",
    ),
    Mutant(
        name="lanes-apart", law="M3", patch=durable.lanes_outside_the_transaction,
        why="The lanes are appended whether or not the outbox was applied.",
    ),
    # ---- theorems
    Mutant(
        name="watermark-by-batch", law="T1", patch=flow.watermark_moves_with_the_batch,
        why="Rows are judged by W as it stood before their batch, so the cut shows.",
    ),
    Mutant(
        name="recompute-admits-late", law="T2", patch=durable.recompute_admits_late_rows,
        why="Recompute takes rows that incremental mode refuses.",
    ),
    Mutant(
        name="state-not-restored", law="T3", patch=results.state_not_restored,
        why="Open windows are empty after a restart.",
    ),
    Mutant(
        name="left-unpublished", law="T3", patch=durable.recovery_does_not_publish,
        why="Recovery does not publish the outbox that was committed before the death.",
    ),
    Mutant(
        name="zombie-goes-on", law="T4", patch=durable.zombie_goes_on,
        why="The loser of an epoch takes the winner's for its own and goes on.",
    ),
    Mutant(
        name="slow-partition-overtaken", law="T5", patch=flow.slow_partition_overtaken,
        why="W follows the fastest partition instead of the slowest.",
    ),
    Mutant(
        name="partition-rule-by-batch", law="T8", patch=flow.partition_rule_overlooked_in_a_batch,
        why="A batch in which no row is before W is taken whole, so the cut shows.",
    ),
    Mutant(
        name="order-of-partitions-shows", law="T8", patch=flow.every_rule_is_the_row_rule,
        why="What is late hangs on when the rows of other partitions came.",
    ),
    Mutant(
        name="duplicate-accepted", law="T6", patch=flow.duplicate_accepted_again,
        why="A row that comes again is folded again.",
    ),
    Mutant(
        name="tick-not-recorded", law="T7", patch=flow.tick_not_recorded,
        why="A clock reading inside an epoch is used, but not recorded.",
    ),
)  # fmt: skip

COVERED = (
    "S1", "S2", "S3", "S4", "S5", "C1", "C2", "C3", "C4", "W1", "W2", "W3", "W4", "W5", "W6", "W7",
    "A1", "A2", "A3", "A4", "A5", "A6", "A7", "A8", "G1", "G2", "G3", "G4", "G5", "F1", "F2", "F3",
    "F4", "E1", "E2", "E3", "E4", "E5", "E6", "K1", "K2", "K3", "K4", "K5", "K6", "K7", "K8", "K9",
    "K10", "R1", "R2", "M1", "M2", "M3", "T1", "T2", "T3", "T4", "T5", "T6", "T7", "T8",
)  # fmt: skip
"""The laws that this version keeps; each has a mutant."""


def without_a_mutant() -> list[str]:
    """The laws that nothing in the catalogue breaks."""
    broken = {mutant.law for mutant in MUTANTS}
    return [law for law in COVERED if law not in broken]
