"""The search for the highest rate whose full run is VALID: what to ask next is decided without any I/O.

``limits`` are the round's, ``reading`` what the samples of a short run say, ``constraint`` whether that keeps the
limits, ``strategy`` which rate comes next and when it ends. ``watching`` ends a probe that cannot keep them, ``legs``
makes the runs that are asked for, ``server``, ``offline`` and ``session`` run them.
"""
