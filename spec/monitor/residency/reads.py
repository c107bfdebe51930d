"""What the worker holds when a pass reads it, and what the scheduler asked for.

The claims ``target-resident``, ``drafter-resident-or-boundary``, ``views-agree``,
``worker-bounded``, ``payload-available``, ``item-whole`` and ``need-agrees``; the gathers
themselves are judged by :mod:`spec.monitor.residency.gather`.
"""

from __future__ import annotations

from spec.history.history import History
from spec.history.layout import FeatureLayout
from spec.history.log import FindingLog
from spec.monitor.residency.gather import GatherMonitor
from spec.monitor.residency.gathered import Reader, ReadFeature
from spec.record.steps import PassSeen, ScheduledRequest, WorkerSeen

_WHY_MISSING = {
    None: "feature never asked for",
    "hit": "hit of an entry without a tensor",
    "allocated": "allocated feature not encoded",
    "duplicate": "duplicate of a feature without a tensor",
    "refused": "range not cut before a refused feature",
}


class ResidencyMonitor:
    """Judge the passes of a run.

    Args:
        history: the run so far, the pass included.
        log: where findings go.
        runner: ``V1`` or ``V2``; V2 does not look at requests whose window is past their prefill.
    """

    def __init__(self, history: History, log: FindingLog, runner: str) -> None:
        self._history = history
        self._config = history.config
        self._log = log
        self._is_v2 = runner == "V2"
        self._gather = GatherMonitor(history, log)
        self._compared: tuple[object, object] = (None, None)
        self._counted: object = None
        self._num_rows = 0

    def observe(self, step: PassSeen) -> None:
        """Judge a pass."""
        if step.worker is None:
            return
        self._check_payload(step)
        if self._config.is_encoder_decoder:
            self._check_cross_attention(step, step.worker)
        else:
            self._check_views(step, step.worker)
            self._check_batch(step, step.worker)
        self._check_bounded(step.worker)

    def _check_payload(self, step: PassSeen) -> None:
        for request, index in step.encoder_inputs:
            self._log.premises["payload-available"] += 1
            if index not in self._history.requests[request].payload:
                self._log.add(
                    "payload-available",
                    "input scheduled for encoding without its raw data",
                    observed=f"request {request}, feature "
                    f"{self._history.feature(request, index).describe()} is to be encoded, and "
                    "its raw data is not on the worker",
                    expected="raw data came with this output or an earlier one and is still there",
                    request=request,
                    feature=index,
                )

    def _check_views(self, step: PassSeen, worker: WorkerSeen) -> None:
        entries, contents = self._history.references, self._history.contents
        if entries or contents:
            self._log.premises["views-agree"] += 1
        if self._compared[0] is entries and self._compared[1] is contents:
            return
        self._compared = (entries, contents)
        if entries.keys() != contents.keys():
            for name in sorted(entries.keys() - contents.keys()):
                lacking = (name, "lacks")
                self._log.add_standing(
                    "views-agree",
                    lacking,
                    self._log.mechanism_of("views-agree", lacking) or self._why_lacking(step, name),
                    observed=f"the book has {name!r}, the worker has not",
                    expected=f"the worker holds {sorted(entries)}",
                )
            encoded = {
                self._history.feature(e.request, e.feature).identifier: e for e in worker.encoded
            }
            for name in sorted(contents.keys() - entries.keys()):
                surplus = (name, "surplus")
                why = (
                    "encoded input has no entry in the book"
                    if name in encoded
                    else "worker keeps a tensor that left the book"
                )
                self._log.add_standing(
                    "views-agree",
                    surplus,
                    self._log.mechanism_of("views-agree", surplus) or why,
                    observed=f"the worker holds {name!r}, the book has not",
                    expected=f"the worker holds {sorted(entries)}",
                )
        self._log.settle("views-agree")

    def _why_lacking(self, step: PassSeen, name: str) -> str:
        if name in step.notices:
            return "entry in the book dropped from the worker by a notice"
        if any(name in allocated for allocated in self._history.allocated.values()):
            return "allocated entry not encoded"
        return "worker lost the tensor of an entry"

    def _check_bounded(self, worker: WorkerSeen) -> None:
        if worker.contents is not self._counted:
            self._counted = worker.contents
            encodings = self._history.encodings
            known = [encodings[n][0] for _, n in worker.contents if n in encodings]
            self._num_rows = sum([encoding.num_rows for encoding in known])
        rows = self._num_rows
        if rows:
            self._log.premises["worker-bounded"] += 1
        if rows > self._config.encoder_cache_size:
            self._log.add_standing(
                "worker-bounded",
                "rows",
                "worker outgrows the cache",
                observed=f"the worker holds {rows} rows",
                expected=f"at most {self._config.encoder_cache_size} rows",
            )
        self._log.settle("worker-bounded")

    def _check_cross_attention(self, step: PassSeen, worker: WorkerSeen) -> None:
        items = [
            ReadFeature(scheduled.request, feature, False, 0, feature.end, 0)
            for scheduled in step.scheduled
            if scheduled.num_computed_tokens == 0
            for feature in self._history.requests[scheduled.request].layout.features
        ]
        for item in items:
            self._log.premises["target-resident"] += 1
            if item.feature.identifier not in self._history.contents:
                self._missing("target", item)
        self._gather.check_items(items, worker.target)

    def _check_batch(self, step: PassSeen, worker: WorkerSeen) -> None:
        look_ahead = 0 if worker.drafter is None else self._config.gather_lookahead
        target: list[ReadFeature] = []
        drafter: list[ReadFeature] = []
        base = 0
        for scheduled in step.scheduled:
            start = scheduled.num_computed_tokens
            count = scheduled.num_scheduled_tokens
            layout = self._history.requests[scheduled.request].layout
            if start < layout.last_end:
                features = layout.meeting(start, start + count + look_ahead)
                if features:
                    self._check_request(
                        step, scheduled, features, look_ahead, base, target, drafter
                    )
            base += count
        self._gather.check("target", target, worker.target)
        if worker.drafter is not None:
            self._gather.check("drafter", drafter, worker.drafter)

    def _check_request(
        self,
        step: PassSeen,
        scheduled: ScheduledRequest,
        features: list[FeatureLayout],
        look_ahead: int,
        base: int,
        target: list[ReadFeature],
        drafter: list[ReadFeature],
    ) -> None:
        request = scheduled.request
        start = scheduled.num_computed_tokens
        end = start + scheduled.num_scheduled_tokens
        premises = self._log.premises
        contents = self._history.contents
        past_prefill = self._is_v2 and start + look_ahead >= scheduled.prefill_len
        search_stopped = False
        for feature in features:
            if self._config.whole_items and feature.offset < end:
                self._check_whole(scheduled, feature, end)
            boundary = feature.offset >= end
            for_target = feature.has_row_in(start, end)
            for_drafter = look_ahead > 0 and feature.has_row_in(
                start + look_ahead, end + look_ahead
            )
            missing = feature.identifier not in contents
            if for_target:
                read = ReadFeature(request, feature, False, start, end, base)
                premises["target-resident"] += 1
                target.append(read)
                if missing:
                    self._missing("target", read)
            if for_drafter:
                ahead = ReadFeature(
                    request, feature, boundary, start + look_ahead, end + look_ahead, base
                )
                premises["drafter-resident-or-boundary"] += 1
                if not past_prefill:
                    drafter.append(ahead)
                # A tensor that the target misses already is one effect, and counts there.
                if missing and not boundary and not for_target:
                    self._missing("drafter", ahead)
            if for_target or for_drafter:
                premises["need-agrees"] += 1
            asked = self._history.how_asked(request, feature.index)
            cut = asked is None and boundary and self._cut_whole(step, scheduled, feature)
            excused = cut or (boundary and search_stopped)
            if asked is None and not excused and (for_target or for_drafter):
                self._note_never_asked(request, feature, boundary, start, end)
            # The scheduler looks no further once a feature was refused.
            search_stopped = search_stopped or asked == "refused" or cut

    def _missing(self, reader: Reader, read: ReadFeature) -> None:
        asked = self._history.how_asked(read.request, read.feature.index)
        window = f"[{read.start},{read.end})"
        self._log.add(
            "target-resident" if reader == "target" else "drafter-resident-or-boundary",
            _WHY_MISSING[asked],
            observed=f"the {reader} reads {read.describe()} in {window}, and it is not resident; "
            f"asked for in this pass: {asked or 'no'}",
            expected="it is resident"
            if reader == "target"
            else "it is resident, or starts at or past the processed end",
            request=read.request,
            feature=read.feature.index,
        )

    def _check_whole(self, scheduled: ScheduledRequest, feature: FeatureLayout, end: int) -> None:
        start = scheduled.num_computed_tokens
        if feature.offset < start:
            self._log.premises["item-whole.exempt"] += 1
            return
        self._log.premises["item-whole"] += 1
        if feature.end > end:
            at_start = feature.offset == start
            self._log.add(
                "item-whole",
                "range that starts on an item ends inside it"
                if at_start
                else "range that starts before an item ends inside it",
                observed=f"request {scheduled.request} runs [{start},{end}) and splits "
                f"{feature.describe()}",
                expected=f"it ends at {feature.offset} or before, or at {feature.end} or after",
                request=scheduled.request,
                feature=feature.index,
            )

    def _cut_whole(
        self, step: PassSeen, scheduled: ScheduledRequest, feature: FeatureLayout
    ) -> bool:
        """Whether the range ended before an item that the pass had no tokens to finish."""
        if not self._config.whole_items:
            return False
        budget = self._config.max_num_batched_tokens
        before, others, is_before = 0, 0, True
        for other in step.scheduled:
            is_before = is_before and other is not scheduled
            if other is not scheduled:
                others += other.num_scheduled_tokens
                before += other.num_scheduled_tokens if is_before else 0
        # What victims had run came back when the range was cut, or only after that.
        most = budget - before
        least = budget - others - self._returned(step)
        if self._config.long_prefill_token_threshold:
            most = min(most, self._config.long_prefill_token_threshold)
            least = min(least, self._config.long_prefill_token_threshold)
        start = scheduled.num_computed_tokens
        return feature.offset < start + most and start + least < feature.end

    def _returned(self, step: PassSeen) -> int:
        """At most how many tokens came back in the pass from victims that were to run in it."""
        granted = {
            call.request: call.budget
            for call in step.calls
            if call.method == "allocate_slots" and call.answer and call.request in step.preempted
        }
        progress = self._history.previous_progress()
        return sum(end - progress.get(request, 0) for request, end in granted.items())

    def _note_never_asked(
        self, request: int, feature: FeatureLayout, boundary: bool, start: int, end: int
    ) -> None:
        where = "boundary feature" if boundary else "feature"
        self._log.add(
            "need-agrees",
            f"{where} never asked for",
            observed=f"request {request} runs [{start},{end}) and reads {feature.describe()}; in "
            "this pass it was neither hit, allocated, met as a duplicate nor refused",
            expected="the scheduler asks the book for every feature that the pass reads",
            request=request,
            feature=feature.index,
        )
