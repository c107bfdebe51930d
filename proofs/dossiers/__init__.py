"""What a command writes about its findings: which runs to make again, and which pages.

In go the results of a command; out come folders of reports, through ``proofs.report``. Knows every
room but ``proofs.commands``.
"""
