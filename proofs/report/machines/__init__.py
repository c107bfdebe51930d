"""Results for other programs: JUnit, SARIF, annotations and the summary of a GitHub job.

In go the results of a command; out come files and lines. Knows the words of ``proofs.report.text``
and the results of ``proofs.search``, ``proofs.source`` and ``proofs.releases``.
"""
