"""qwen3.6-27b, the agentic benchmark: recorded trajectories, replayed turn by turn, and BFCL for accuracy.

``benchmark.py`` is what the rest of the harness holds. ``tables.py`` makes data sets of the two tables, ``store.py``
and ``requests.py`` the chats that are asked. ``rows.py``, ``fields.py``, ``messages.py`` and ``trajectories.py`` read
the recorded file, ``files.py``, ``fetch.py`` and ``dataset.py`` say whether it is the round's. ``salts.py`` tells
repeats apart. ``inline.py`` and ``commands.py`` compare answers with the recorded ones, ``turn_scores.py`` those of a
run; ``counting.py`` and ``tokenizers.py`` count tokens. ``canary.py`` and ``warmup.py`` ask what is in no data set,
``scripted.py`` answers, ``standin.py`` and ``tasks.py`` make up a data set. ``bfcl/`` is the accuracy.
"""
