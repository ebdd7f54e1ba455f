"""The judge of LiveCodeBench: runs code that a model wrote, shut in, against tests that it cannot see.

``judge.py`` tries many solutions at once, ``trial.py`` one; ``sandbox.py`` starts ``inside/confine.py``, which shuts
itself in and becomes ``inside/solve.py``. ``tests_file.py`` reads the problems, ``problems.py`` says what is right,
``selftest.py`` whether all of this works on this machine.
"""

from harness.benchmarks.gpt_oss_120b.judge.judge import Judge, Submission, default_workers
from harness.benchmarks.gpt_oss_120b.judge.limits import Limits
from harness.benchmarks.gpt_oss_120b.judge.sandbox import SANDBOXES, Sandbox
from harness.benchmarks.gpt_oss_120b.judge.selftest import self_test
from harness.benchmarks.gpt_oss_120b.judge.tests_file import TestsFolder
from harness.benchmarks.gpt_oss_120b.judge.trial import Ending, Trial

__all__ = [
    "Judge",
    "Submission",
    "Trial",
    "Ending",
    "Limits",
    "TestsFolder",
    "Sandbox",
    "SANDBOXES",
    "self_test",
    "default_workers",
]
