"""The tests to look at for each claim; the test suite resolves every one of them.

``module::function``, or ``module::function[parameter]`` where the parameter is the claim, or a
switch that breaks it. The tests that run over all claims are not listed: each claim's witness, its
faults, the search for them, and the proofs.
"""

from __future__ import annotations

_FAULT = (
    "faults.test_loop_faults::test_scenario_breaks_the_claims_that_the_fault_names_and_no_others"
)


def path_of_test(name: str) -> str:
    """How pytest is given a test that is named here, from the root of the project."""
    module, function = name.split("::", 1)
    return f"tests/{module.replace('.', '/')}.py::{function}"


TESTS: dict[str, tuple[str, ...]] = {
    "target-resident": (
        "monitor.test_loop_monitor::test_target_miss_is_found_and_its_error_is_right",
        "source.test_source_scheduling::test_right_scheduling_is_proved",
    ),
    "drafter-resident-or-boundary": (
        "monitor.test_loop_monitor::test_drafter_miss_inside_the_processed_range",
        "source.test_source_scheduling::test_known_faults_on_plain_integers",
    ),
    "boundary-miss-tolerated": (
        "monitor.test_loop_monitor::test_boundary_miss_that_raises",
        "source.test_source::test_a_raising_boundary_miss_is_refuted_with_one_feature",
    ),
    "interior-miss-raises": (
        "monitor.test_loop_monitor::test_swallowed_target_miss",
        "monitor.test_loop_monitor::test_swallowed_drafter_miss",
        "source.test_source_soundness::test_an_error_must_name_the_hash_itself",
    ),
    "rows-exact": (
        "monitor.test_loop_monitor::test_other_rows",
        "reference.test_reference_gather::test_a_worker_that_reuses_memory_in_place_is_seen",
    ),
    "mask-exact": ("monitor.test_loop_monitor::test_other_mask",),
    "boundary-used-when-resident": (
        "monitor.test_loop_monitor::test_resident_boundary_feature_skipped",
    ),
    "runners-agree": (
        "monitor.test_loop_runners::test_runners_that_read_differently",
        "functions.test_monitor::test_tensors_split_differently_break_the_agreement_only",
    ),
    "window-exact": ("source.test_source::test_a_late_window_is_refuted",),
    "row-range-exact": ("source.test_source::test_a_mask_counted_from_its_end_is_refuted",),
    "freed-not-needed": (
        "monitor.test_loop_monitor_book::test_reference_dropped_before_its_end",
        "source.test_source::test_ignored_placeholders_are_refuted_but_safe_in_the_prompt",
    ),
    "held-until-last-use": (
        "monitor.test_loop_monitor_book::test_reference_dropped_while_a_duplicate_needs_it",
        "source.test_source::test_a_broken_book_is_refuted",
    ),
    "slots-conserved": (
        "monitor.test_loop_monitor_book::test_slots_that_drift",
        "functions.test_monitor::test_totals_are_recomputed_from_contents",
    ),
    "evicted-not-live": (
        "monitor.test_loop_monitor::test_notice_that_names_an_entry",
        "source.test_source::test_a_broken_book_is_refuted",
    ),
    "released": (
        "monitor.test_loop_monitor_book::test_finished_request_that_keeps_a_reference",
        "source.test_source::test_a_broken_book_is_refuted",
    ),
    "book-exact": (
        "functions.test_monitor::test_a_take_is_held_to_its_limits",
        "source.test_source_soundness::test_the_oldest_unreferenced_entry_is_not_the_first_inserted",
    ),
    "no-error": ("monitor.test_loop_monitor_book::test_schedule_that_raises",),
    "views-agree": (
        "monitor.test_loop_monitor::test_worker_that_lost_a_tensor",
        "monitor.test_loop_monitor::test_worker_that_keeps_what_the_book_does_not_know",
    ),
    "worker-bounded": (
        "monitor.test_loop_monitor::test_worker_that_keeps_what_the_book_does_not_know",
        "monitor.test_loop_monitor_encoder_decoder::test_worker_that_outgrows_the_cache",
    ),
    "dropped-in-update": (
        "monitor.test_loop_monitor_book::test_reference_dropped_in_a_pass",
        "monitor.test_loop_monitor_book::test_reference_that_vanishes",
    ),
    "fresh-tensor": (
        "monitor.test_loop_monitor::test_tensor_of_another_content",
        "monitor.test_loop_monitor::test_tensor_from_before_a_reset",
    ),
    "payload-available": ("monitor.test_loop_monitor::test_input_without_raw_data",),
    "item-whole": (
        "monitor.test_loop_monitor::test_item_that_is_split",
        "source.test_source_scheduling::test_known_faults_on_plain_integers",
    ),
    "need-agrees": (
        "monitor.test_loop_monitor::test_boundary_feature_that_nobody_asked_for",
        "monitor.test_loop_monitor::test_only_a_cut_before_a_whole_item_needs_no_question",
    ),
    "no-idle-references": (
        "monitor.test_loop_monitor_book::test_request_that_does_not_run_keeps_a_reference",
    ),
    "counts-agree": (f"{_FAULT}[rejected-drafts-kept]",),
    "no-stall": (
        "monitor.test_loop_stall::test_a_stall_tells_who_waits_for_what",
        "monitor.test_loop_stall::test_nothing_stands_still_while_an_event_is_pending",
        "source.test_source_scheduling::test_known_faults_on_plain_integers",
    ),
    "no-thrash": (
        "monitor.test_loop_thrash::test_a_circle_is_told_once_with_its_loop",
        "monitor.test_loop_thrash::test_drafts_that_were_answered_are_state",
    ),
    "work-conserving": (
        "monitor.test_loop_conserving::test_it_is_told_once_for_two_requests",
        "monitor.test_loop_conserving::test_a_hit_comes_first",
    ),
    "pass-uses-budget": (
        "monitor.test_loop_budget::test_a_running_request_that_is_passed_over",
        "monitor.test_loop_budget::test_tokens_of_a_victim_come_back_to_those_behind",
    ),
    "threshold-kept": (
        "monitor.test_loop_chunks::test_a_chunk_is_no_longer_than_the_threshold",
        "monitor.test_loop_chunks::test_a_whole_item_may_be_longer_than_the_threshold",
    ),
    "reservation-kept": (
        "monitor.test_loop_chunks::test_a_chunk_leaves_what_the_modules_read",
        "monitor.test_loop_chunks::test_nothing_is_asked_where_no_shorter_chunk_could_run",
    ),
}
