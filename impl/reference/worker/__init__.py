"""The reference's worker: outputs of the scheduler in, rows that target and drafter read out.

``worker`` applies outputs in V1's or V2's order. ``runner_v1`` and ``runner_v2`` gather tensors;
``row_reader`` says the same on integers. Knows ``impl.reference.scheduling`` for requests, features
and outputs.
"""
