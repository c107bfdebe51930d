"""CrossHair on the integer guards: contracts and pairs that must behave alike.

CrossHair runs Python on symbolic integers. It stops exploring silently where a C extension takes
over, so nothing here imports one, and only a report that all paths were exhausted counts.
"""
