"""Whether every count changes by exactly what was seen, and nothing else changes.

In go a step and what came before it; out come findings on tokens, placeholders, drafts, KV blocks,
statuses, queues, batches and calls, and on the order of those who go first. Knows ``spec.history``.
"""
