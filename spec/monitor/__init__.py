"""The judge of what targets did: in goes a trace of a run or one function's answer, out findings.

``monitor`` hands each step of a run to ``residency`` (what is where when it is read), ``counts``
(what changes, and by how much) and ``progress`` (whether anything goes on); ``functions`` judges
single calls. None knows who recorded them. Knows ``spec.claims``, ``spec.history``,
``spec.functions``, ``spec.record`` and ``spec.rules``.
"""
