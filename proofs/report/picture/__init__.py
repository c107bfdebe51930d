"""The picture of a run: SVG, and the same in fixed columns of text.

In goes the timeline of ``proofs.report.story``; out comes text without scripts. Begin at
``drawing``.
"""
