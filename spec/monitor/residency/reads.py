"""What the worker holds when a pass reads it, and what the scheduler asked for.

The claims ``target-resident``, ``drafter-resident-or-boundary``, ``views-agree``,
``worker-bounded``, ``payload-available``, ``item-whole`` and ``need-agrees``; the gathers
themselves are judged by :mod:`spec.monitor.residency.gather`.
"""

from __future__ import annotations

from spec.claims import predicates as claims
from spec.history.admission import by_admission
from spec.history.history import History
from spec.history.layout import FeatureLayout
from spec.history.log import FindingLog
from spec.history.tokens import tokens_left, tokens_of_victims
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
            has_raw_data = index in self._history.requests[request].payload
            if not claims.payload_available(True, has_raw_data):
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
        names = entries.keys() | contents.keys()
        wrong = [n for n in names if not claims.views_agree(n in entries, n in contents)]
        if wrong:
            for name in sorted(name for name in wrong if name in entries):
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
            for name in sorted(name for name in wrong if name not in entries):
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
            encoded = [encodings[n][0] for _, n in worker.contents if n in encodings]
            self._num_rows = sum([encoding.num_rows for encoding in encoded])
        rows = self._num_rows
        if rows:
            self._log.premises["worker-bounded"] += 1
        if not claims.worker_bounded(rows, self._config.encoder_cache_size):
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
            # Whatever its tokens, the first step reads all of the item.
            whole = claims.Chunk(item.feature.offset, item.feature.end)
            resident = item.feature.identifier in self._history.contents
            if not claims.target_resident(item.feature, whole, resident):
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
        chunk = claims.Chunk(start, end, look_ahead)
        premises = self._log.premises
        contents = self._history.contents
        past_prefill = self._is_v2 and start + look_ahead >= scheduled.prefill_len
        search_ended = False
        for feature in features:
            if self._config.whole_items and feature.offset < end:
                self._check_whole(scheduled, feature, chunk)
            boundary: bool = claims.is_at_boundary(feature, chunk)
            for_target: bool = claims.target_reads(feature, chunk)
            for_drafter: bool = look_ahead > 0 and claims.drafter_reads(feature, chunk)
            resident = feature.identifier in contents
            is_there = claims.target_resident(feature, chunk, resident)
            if for_target:
                read = ReadFeature(request, feature, False, start, end, base)
                premises["target-resident"] += 1
                target.append(read)
                if not is_there:
                    self._missing("target", read)
            if for_drafter:
                ahead = ReadFeature(
                    request, feature, boundary, start + look_ahead, end + look_ahead, base
                )
                premises["drafter-resident-or-boundary"] += 1
                if not past_prefill:
                    drafter.append(ahead)
                # A tensor that the target misses already is one effect, and counts there.
                if is_there and not claims.drafter_resident_or_boundary(feature, chunk, resident):
                    self._missing("drafter", ahead)
            asked = self._history.how_asked(request, feature.index)
            cut = asked is None and boundary and self._cut_whole(step, scheduled, feature)
            search_ended = search_ended or cut
            if for_target or for_drafter:
                premises["need-agrees"] += 1
                if not claims.need_agrees(feature, chunk, asked is not None, search_ended):
                    self._note_never_asked(request, feature, boundary, start, end)
            # The scheduler looks no further once a feature was refused.
            search_ended = search_ended or asked == "refused"

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

    def _check_whole(
        self, scheduled: ScheduledRequest, feature: FeatureLayout, chunk: claims.Chunk
    ) -> None:
        start, end, _ = chunk
        if feature.offset < start:
            self._log.premises["item-whole.exempt"] += 1
            return
        self._log.premises["item-whole"] += 1
        if not claims.item_whole(feature, chunk):
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
        start = scheduled.num_computed_tokens
        returned = tokens_of_victims(step, self._history.previous_progress())
        least, most = tokens_left(self._config, by_admission(step), scheduled, returned)
        cut: bool = claims.cut_before_whole_item(feature, start, least, most)
        return cut

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
