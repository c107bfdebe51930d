"""Reports on findings: a page for reviewers, a text for a pull request, a test, the case.

In go a finding, its smallest run or case and where it comes from; out come the files of a folder.
``story`` tells a run in sentences, ``picture`` draws it, ``near`` looks what changes beside it,
``ready`` writes a test, ``text`` makes names harmless, ``templates`` are the pages' frames and
``pages`` puts all together. ``proofs.dossiers`` says which reports a command writes. Knows what
shows findings (``proofs.search``, ``proofs.source``), never a command.
"""
