"""A run told step by step, in numbered sentences that end in the contradiction.

In go a trace and a finding; out come the timeline (what lies where and when), the reasons,
and the sentences. Knows ``spec`` and ``proofs.report.text``, and draws nothing.
"""
