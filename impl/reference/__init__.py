"""A reference implementation in the style of an engine: real tensors, running totals, no oracle."""
