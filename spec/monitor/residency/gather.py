"""What a gather of the loop must return, and how what it returned differs.

The oracle works on runs of positions: for each request of the batch and each feature with a row in
the request's window, the rows are found by counting; then neighbours are joined. One effect counts
once: an error counts under the miss claims, a tensor with other rows under ``fresh-tensor``, and
neither again under ``rows-exact`` or ``mask-exact``.
"""

from __future__ import annotations

from spec.claims import predicates as claims
from spec.history.history import History
from spec.history.log import FindingLog
from spec.monitor.residency.fresh import check_fresh, staleness
from spec.monitor.residency.gathered import (
    Placed,
    Ranges,
    Reader,
    ReadFeature,
    Row,
    join_placed,
    join_ranges,
    positions_of,
    ranges_meet,
    returned_rows,
    rows_of,
    single_rows,
    write_placed,
    write_ranges,
    write_rows,
)
from spec.record.steps import Read


class GatherMonitor:
    """Judge one gather of one pass after another.

    Args:
        history: the run so far, the pass included.
        log: where findings go.
    """

    def __init__(self, history: History, log: FindingLog) -> None:
        self._history = history
        self._log = log

    def check(self, reader: Reader, reads: list[ReadFeature], read: Read) -> None:
        """Judge what a gather returned.

        Args:
            reader: who reads.
            reads: the features with a row in the batch's windows, in the order of reading.
            read: what was seen.
        """
        if not reads and read.error is None and not read.mask and not read.rows:
            if read.slices or read.merged:
                self._check_slices_and_merge(reader, [], read)
            return
        premises = self._log.premises
        contents = self._history.contents
        missing = [r for r in reads if r.feature.identifier not in contents]
        # What a gather without an error would break.
        interior = [r for r in missing if not claims.interior_miss_raises(r.boundary, False, False)]
        if interior:
            premises["interior-miss-raises"] += 1
        if len(missing) > len(interior):
            premises["boundary-miss-tolerated"] += 1
        if read.error is not None:
            self._check_error(reader, reads, missing, interior, read)
            return
        if interior:
            self._log.add(
                "interior-miss-raises",
                f"{reader}: interior miss swallowed",
                observed=f"{reader}: no error; rows at {write_ranges(read.mask)}",
                expected=f"an error that names {interior[0].feature.identifier!r}: "
                f"{interior[0].describe()} is not resident",
                request=interior[0].request,
                feature=interior[0].feature.index,
            )
            return
        for tolerated in missing:
            if not claims.boundary_miss_tolerated(tolerated.boundary, False, False):
                self._note_not_tolerated(tolerated, f"{reader}: no error", reader)
        resident = [r for r in reads if r.feature.identifier in contents] if missing else reads
        if check_fresh(self._history, self._log, reader, resident):
            self._check_rows(reader, resident, read)

    def _check_error(
        self,
        reader: Reader,
        reads: list[ReadFeature],
        missing: list[ReadFeature],
        interior: list[ReadFeature],
        read: Read,
    ) -> None:
        error = read.error
        assert error is not None
        is_named = any(error.names(r.feature.identifier) for r in interior)
        if interior and claims.interior_miss_raises(False, False, is_named):
            return
        seen = f"{reader}: {error.type}: {error.message}"
        for tolerated in missing:
            raises = error.names(tolerated.feature.identifier)
            if claims.boundary_miss_tolerated(tolerated.boundary, False, raises):
                continue
            self._note_not_tolerated(tolerated, seen, reader)
            return
        if not interior:
            # A merge fails where a tensor has another number of rows: that is no miss.
            contents = self._history.contents
            resident = [r for r in reads if r.feature.identifier in contents]
            if not check_fresh(self._history, self._log, reader, resident):
                return
        first = interior[0] if interior else None
        named = [r for r in reads if error.names(r.feature.identifier)]
        subject = first or (named[0] if named else None)
        self._log.add(
            "interior-miss-raises",
            f"{reader}: "
            + ("interior miss raises another error" if first else "error without an interior miss"),
            observed=seen,
            expected=f"an error that names {first.feature.identifier!r}"
            if first
            else "no feature inside the processed range is missing: no error",
            request=None if subject is None else subject.request,
            feature=None if subject is None else subject.feature.index,
        )

    def _note_not_tolerated(self, missed: ReadFeature, seen: str, reader: Reader) -> None:
        self._log.add(
            "boundary-miss-tolerated",
            f"{reader}: boundary miss raises",
            observed=seen,
            expected=f"{missed.describe()} starts at or past the processed end and is not "
            "resident: it is skipped and its positions keep their token embeddings",
            request=missed.request,
            feature=missed.feature.index,
        )

    def _check_rows(self, reader: Reader, resident: list[ReadFeature], read: Read) -> None:
        contents = self._history.contents
        placed: list[Placed] = []
        for item in resident:
            placed += item.placed(contents[item.feature.identifier])
        if placed:
            self._log.premises["rows-exact"] += 1
            self._log.premises["mask-exact"] += 1
        boundary = any(item.boundary for item in resident)
        if boundary:
            self._log.premises["boundary-used-when-resident"] += 1
        rows, mask = rows_of(placed), positions_of(placed)
        seen_rows, seen_mask = returned_rows(read), join_ranges(read.mask)
        alike = rows == seen_rows and mask == seen_mask
        if boundary and self._skips_boundary(reader, resident, seen_rows, seen_mask, alike):
            return
        if alike:
            self._check_slices_and_merge(reader, placed, read)
            return
        self._note_difference(reader, resident, read, (rows, seen_rows), (mask, seen_mask))

    def _check_slices_and_merge(self, reader: Reader, placed: list[Placed], read: Read) -> None:
        total, returned = sum(count for _, _, count, _ in placed), sum(read.slices)
        if total != returned:
            self._log.add(
                "rows-exact",
                f"{reader}: returned tensors have other rows in all",
                observed=f"{reader}: tensors of {read.slices} rows, {returned} in all",
                expected=f"{total} rows",
            )
        if read.merged is None:
            return
        expected = join_placed(placed)
        merged = join_placed(
            (run.encoding, run.first_row, run.num_rows, run.position) for run in read.merged
        )
        if expected != merged:
            self._log.add(
                "rows-exact",
                f"{reader}: merged embeddings differ",
                observed=f"{reader}: the model reads {write_placed(merged)}",
                expected=f"the model reads {write_placed(expected)}",
            )

    def _skips_boundary(
        self,
        reader: Reader,
        resident: list[ReadFeature],
        seen_rows: list[Row],
        seen_mask: Ranges,
        alike: bool,
    ) -> bool:
        """Note resident boundary features that were skipped, if nothing else differs."""
        contents = self._history.contents
        kept: list[Placed] = []
        lost: list[ReadFeature] = []
        for item in resident:
            placed = item.placed(contents[item.feature.identifier])
            is_used = ranges_meet(positions_of(placed), seen_mask)
            if not claims.boundary_used_when_resident(item.boundary, True, is_used):
                lost.append(item)
            else:
                kept += placed
        if not lost:
            return False
        if not alike and (rows_of(kept) != seen_rows or positions_of(kept) != seen_mask):
            return False
        for item in lost:
            self._log.add(
                "boundary-used-when-resident",
                f"{reader}: resident boundary feature skipped",
                observed=f"{reader}: rows at {write_ranges(seen_mask)}",
                expected=f"the rows of {item.describe()} in [{item.start},{item.end}) too: it is "
                "resident",
                request=item.request,
                feature=item.feature.index,
            )
        return True

    def _note_difference(
        self,
        reader: Reader,
        resident: list[ReadFeature],
        read: Read,
        rows: tuple[list[Row], list[Row]],
        mask: tuple[Ranges, Ranges],
    ) -> None:
        (wanted_mask, seen_mask), (wanted_rows, seen_rows) = mask, rows
        if wanted_mask != seen_mask:
            self._log.add(
                "mask-exact",
                f"{reader}: mask differs",
                observed=f"{reader}: mask at {write_ranges(seen_mask)}",
                expected=f"mask at {write_ranges(wanted_mask)}",
            )
        if wanted_rows == seen_rows:
            return
        if not self._note_other_tensors(reader, resident, read):
            self._log.add(
                "rows-exact",
                f"{reader}: returned rows differ",
                observed=f"{reader}: rows {write_rows(seen_rows)}",
                expected=f"rows {write_rows(wanted_rows)}",
            )

    def _note_other_tensors(self, reader: Reader, resident: list[ReadFeature], read: Read) -> bool:
        """Whether the same rows came from other tensors, all of which are then judged as such."""
        contents = self._history.contents
        # Other rows of the wrong tensor may equal those of the right one by chance.
        sizes = (
            sum(count for _, _, count, _ in item.placed(contents[item.feature.identifier]))
            for item in resident
        )
        if tuple(sizes) != read.slices:
            return False
        seen = list(single_rows(returned_rows(read)))
        wrong: list[tuple[ReadFeature, tuple[str, str]]] = []
        at = 0
        for item in resident:
            number = contents[item.feature.identifier]
            noted = False
            for _, row in single_rows(run[:3] for run in item.placed(number)):
                if at >= len(seen) or seen[at][1] != row:
                    return False
                other = seen[at][0]
                at += 1
                if other == number or noted:
                    continue
                stale = None if other < 0 else staleness(self._history, item, other)
                if stale is None:
                    return False
                wrong.append((item, stale))
                noted = True
        if at != len(seen):
            return False
        for item, (mechanism, observed) in wrong:
            self._log.add(
                "fresh-tensor",
                f"{reader}: {mechanism}",
                observed=f"{reader}: {item.describe()} got rows of a tensor {observed}",
                expected=f"rows encoded from content {item.feature.content!r} since the last reset",
                request=item.request,
                feature=item.feature.index,
            )
        return True

    def check_items(self, items: list[ReadFeature], read: Read) -> None:
        """Judge what cross-attention read: all rows of each item, whatever their order."""
        contents = self._history.contents
        missing = [item for item in items if item.feature.identifier not in contents]
        if missing:
            self._log.premises["interior-miss-raises"] += 1
        if read.error is not None:
            self._check_error("target", items, missing, missing, read)
            return
        if missing:
            self._log.add(
                "interior-miss-raises",
                "target: interior miss swallowed",
                observed=f"cross-attention read rows {write_rows(returned_rows(read))}",
                expected=f"an error that names {missing[0].feature.identifier!r}: it is not "
                "resident",
                request=missing[0].request,
                feature=missing[0].feature.index,
            )
            return
        if not check_fresh(self._history, self._log, "target", items):
            return
        if items:
            self._log.premises["rows-exact"] += 1
        expected = sorted(
            (self._alike(contents[item.feature.identifier]), 0, item.feature.num_rows)
            for item in items
        )
        seen = sorted((self._alike(run.encoding), run.first_row, run.num_rows) for run in read.rows)
        if expected != seen:
            self._log.add(
                "rows-exact",
                "target: cross-attention reads other rows",
                observed=f"cross-attention reads rows {write_rows(seen)}",
                expected=f"rows {write_rows(expected)}",
            )

    def _alike(self, number: int) -> int:
        """The first encoding of the pass of the same content: two requests may each have theirs."""
        history = self._history
        if number not in history.encoded:
            return number
        made, _ = history.encodings[number]
        wanted = (made.num_rows, history.content_of(made))
        same = (history.encodings[other][0] for other in history.encoded)
        return next(e.number for e in same if (e.num_rows, history.content_of(e)) == wanted)
