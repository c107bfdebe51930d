"""Random search: cases drawn at the edges, claims checked on them, findings shrunk."""
