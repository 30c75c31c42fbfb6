"""The catalogue: at least one seeded bug for each law. A law without one fails the build."""

from __future__ import annotations

from thund_conformance.mutants import durable, flow, results
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
    # ---- windows, aggregates, output
    Mutant(
        name="truncated-start", law="G1", patch=results.truncated_start,
        why="The window's start is truncated toward zero: wrong for negative times.",
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
    "S1", "S2", "S3", "S4", "S5", "C1", "C2", "C3", "C4", "W1", "W2", "W3", "W5", "W6", "A1", "A2",
    "A3", "A4", "A5", "A6", "G1", "G4", "F1", "F2", "F3", "F4", "E1", "E2", "E3", "E4", "E5", "K1",
    "K2", "K3", "K4", "K5", "K6", "K7", "K8", "K9", "K10", "R1", "R2", "M1", "M2", "M3", "T1", "T2",
    "T3", "T4", "T5", "T6", "T7", "T8",
)  # fmt: skip
"""The laws that this version keeps; each has a mutant."""


def without_a_mutant() -> list[str]:
    """The laws that nothing in the catalogue breaks."""
    broken = {mutant.law for mutant in MUTANTS}
    return [law for law in COVERED if law not in broken]
