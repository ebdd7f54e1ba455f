"""The accuracy of qwen3.6-27b: single turns of the Berkeley Function Calling Leaderboard (BFCL v4).

bfcl-eval scores: ``environment.py`` talks to ``inside/driver.py``, which alone imports it, in an environment of its
own. ``sampling.py`` says which rows are asked, ``table.py`` keeps them, ``requests.py`` makes chats of them.
``answers.py`` reads a reply, ``calls.py`` and ``written_calls.py`` find the calls in it, ``grading.py`` has them
checked, ``figures.py`` and ``score.py`` sum up. ``selftest.py`` tries the checker on answers of which is known how they
come out. ``standin.py`` makes up a table, ``scripted.py`` answers to it.
"""
