"""The search for the highest rate whose full run is VALID: what to ask next is decided without any I/O.

``limits`` are the round's, ``reading`` what the samples of a short run say, ``constraint`` whether that keeps the
limits, ``strategy`` (of Offline ``offline``) which rate comes next and when it ends, in the words of ``steps``;
``shares`` fits. ``find`` runs it: ``legs`` makes the runs that are asked for, ``session`` starts and keeps them,
``watching`` ends a probe that cannot keep the limits, ``former`` finds those of a search that was interrupted.
"""
