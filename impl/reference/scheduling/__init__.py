"""The reference's scheduler, its book and its queues: passes out, results of passes in.

``scheduler`` puts a pass together, ``encoder_inputs`` and ``chunks`` say where a chunk ends,
``encoder_cache`` is the book, ``free`` and ``updates`` let go. ``guards`` holds the tests on
integers. Holds no tensor of encoder outputs, and knows the records of ``spec`` alone.
"""
