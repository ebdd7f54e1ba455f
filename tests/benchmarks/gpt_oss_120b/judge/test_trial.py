from __future__ import annotations

import os
import re
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from harness.benchmarks.gpt_oss_120b.judge import Ending, Limits, Trial, sandbox
from harness.benchmarks.gpt_oss_120b.judge.problems import Problem, Test
from harness.benchmarks.gpt_oss_120b.judge.sandbox import Cell
from harness.benchmarks.gpt_oss_120b.judge.trial import try_solution
from tests.benchmarks.gpt_oss_120b.judge.conftest import LIMITS, Try

TEXT = Problem("text", None, (Test("ab\n\ncd\n", "ok"),))
ADD = Problem("total", "total", (Test("1\n2", "3"), Test("[1]\n[2]", "[1, 2]")))
RIGHT = "print(2 * int(input()))"
SHORT = replace(LIMITS, test_s=0.7)


# -- what a solution meets: LiveCodeBench's world ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "code",
    [
        RIGHT,
        "n = int(input())\nprint(n * 2.0)",
        "def main():\n    print(2 * int(sys.stdin.readline()))\nif __name__ == '__main__':\n    main()",
        "import sys\nprint(2 * int(sys.stdin.read()))\nexit()",
        "print(2 * int(sys.stdin.buffer.read()))",
        "print(2 * int(sys.stdin.buffer.readline()))\nsys.exit(3)",
        "print(2 * int(sys.stdin.readlines()[0]))\nsys.stdin.close()\nsys.stdout.close()",
        "x = Counter(); heappush([], 1); print(gcd(2 * int(input()), 0))",
        "def f(n):\n    return 0 if n == 0 else 1 + f(n - 1)\nprint(f(9000) - 9000 + 2 * int(input()))",
        "import numpy as np\nprint(np.array([int(input())]).sum() * 2)",
        "from dataclasses import dataclass\n@dataclass\nclass P:\n    n: int\nprint(2 * P(int(input())).n)",
        "def f(n: int):\n    return n\nassert f.__annotations__ == {'n': int}\nprint(2 * f(int(input())))",
        "import threading\nt = threading.Thread(target=lambda: print(2 * int(input())))\nt.start()\nt.join()",
        "print(2 * int(input()), file=sys.stdout)\nprint('noise', file=sys.stderr)",
        "import os\nos.write(1, b'not the output')\n" + RIGHT,
    ],
)
def test_programs_that_pass_there(free: Try, code: str) -> None:
    assert free(code).ending is Ending.PASSED


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("print(sum(len(line) for line in sys.stdin))", "TypeError"),
        ("for _ in range(9):\n    stdin.readline()", "StopIteration"),
        ("for _ in range(9):\n    input()", "EOFError"),
        ("sys.stdin.buffer.readlines()", "AttributeError"),
        ("sys.stdout.buffer.write(b'ok')", "AttributeError"),
        ("x = 1\ndef f():\n    global x\n    x += 1\nf()", "NameError"),
        ("from __future__ import annotations\nprint('ok')", "SyntaxError"),
        ("import resource\nprint(1)", "ModuleNotFoundError|ImportError"),
        ("import os\nos.getcwd()", "TypeError"),
        ("import subprocess\nsubprocess.run(['ls'])", "TypeError"),
        ("quit()", "TypeError"),
        ("print(", "SyntaxError"),
        ("class E(BaseException):\n    def __str__(self):\n        raise self\nraise E()", "^E$"),
    ],
)
def test_programs_that_crash_there(free: Try, code: str, said: str) -> None:
    trial = free(code, TEXT)
    assert trial.ending is Ending.CRASHED
    assert re.search(said, trial.detail), trial


@pytest.mark.parametrize(
    ("stdin", "lines"),
    [
        ("import sys\nlines = [sys.stdin.readline() for _ in range(5)]", ["ab\n", "\n", "cd\n", "", ""]),
        ("import sys\nlines = sys.stdin.readlines()", ["ab", "", "cd", ""]),
        ("lines = [input(), input(), input()]", ["ab", "", "cd"]),
        ("from sys import stdin\nlines = [stdin.readline() for _ in range(4)]", ["ab", "", "cd", ""]),
        ("from sys import stdin\nlines = list(stdin)", []),
        ("import sys\nlines = [sys.stdin.read(), sys.stdin.read()]", ["ab\n\ncd\n"] * 2),
        ("import sys\nlines = [sys.stdin.buffer.readline(), sys.stdin.buffer.readline()]", [b"ab\n"] * 2),
        ("lines = open(0).readlines()", []),
    ],
)
def test_how_input_is_read_there(free: Try, stdin: str, lines: list[object]) -> None:
    assert free(f"{stdin}\nassert lines == {lines!r}, lines\nprint('ok')", TEXT) == Trial(Ending.PASSED, 1, "1 tests")


@pytest.mark.parametrize(
    "code",
    [
        "def total(a, b):\n    return a + b",
        "class Solution:\n    def total(self, a: List[int], b: int) -> int:\n        print(1)\n        return a + b",
        "def total(a, b):\n    return tuple(a + b) if isinstance(a, list) else a + b",
    ],
)
def test_functions_that_pass(free: Try, code: str) -> None:
    assert free(code, ADD).ending is Ending.PASSED


@pytest.mark.parametrize(
    ("code", "ending"),
    [
        ("def total(a, b):\n    return [a + b]", Ending.WRONG_ANSWER),
        (
            "class Any:\n    def __eq__(self, other):\n        return True\ndef total(a, b):\n    return Any()",
            Ending.WRONG_ANSWER,
        ),
        ("def other(a, b):\n    return a + b", Ending.CRASHED),
        ("def total(a):\n    return a", Ending.CRASHED),
        ("def total(a, b):\n    sys.exit()", Ending.CRASHED),
        ("def total(a, b):\n    x = []\n    x.append(x)\n    return x", Ending.CRASHED),
        ("raise SystemExit", Ending.CRASHED),
        ("", Ending.CRASHED),
    ],
)
def test_functions_that_do_not(free: Try, code: str, ending: Ending) -> None:
    assert free(code, ADD).ending is ending


def test_it_ends_with_the_first_test_that_fails(free: Try) -> None:
    trial = free("print(6)")
    assert (trial.ending, trial.tests, trial.detail) == (Ending.WRONG_ANSWER, 2, "test 2 of 2")


def test_much_goes_in_and_out(free: Try) -> None:
    text = "x" * (3 << 20)
    problem = Problem("echo", None, (Test(text, text), Test(text, text)))
    assert free("print(input())", problem).ending is Ending.PASSED


# -- limits ------------------------------------------------------------------------------------------------------------


def ends_quickly(trying: Try, code: str, limits: Limits, ending: Ending) -> None:
    began = time.monotonic()
    trial = trying(code, limits=limits)
    assert trial.ending is ending, trial
    assert time.monotonic() - began < 15


@pytest.mark.parametrize(
    "code",
    [
        "while True: pass",
        "import time\ntime.sleep(99)",
        "import signal\nfor n in (1, 2, 3, 14, 15):\n    signal.signal(n, signal.SIG_IGN)\nwhile 1: pass",
        "try:\n    while 1: pass\nexcept BaseException:\n    print(6)",
    ],
)
def test_what_does_not_end_is_ended(free: Try, code: str) -> None:
    ends_quickly(free, code, SHORT, Ending.TOO_LONG)


def test_what_floods_is_ended(free: Try) -> None:
    ends_quickly(free, "print('x' * (1 << 16))", replace(LIMITS, output_bytes=1 << 12), Ending.TOO_MUCH)


@pytest.mark.parametrize("code", ["x = bytearray(1 << 40)", "x = []\nwhile 1: x.append(bytearray(1 << 24))"])
def test_memory_has_an_end(free: Try, code: str) -> None:
    ends_quickly(free, code, replace(LIMITS, memory_bytes=256 << 20), Ending.CRASHED)


def test_a_file_has_an_end(free: Try) -> None:
    trial = free("f = open('x', 'wb')\nwhile 1: f.write(bytes(1 << 19))")
    assert (trial.ending, "File too large" in trial.detail) == (Ending.CRASHED, True)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import os\nos._exit(0)", "ended with status 0"),
        ("import posix\nposix.kill(posix.getpid(), 11)", "ended by SIGSEGV"),
        (
            "import os\nfor n in range(3, 20):\n    try: os.write(n, b'\\0\\0\\0\\5hello')\n    except OSError: 0\n",
            "pipe",
        ),
        ("import os\nfor n in range(3, 20):\n    try: os.write(n, b'\\0\\0\\0\\2[]')\n    except OSError: 0\n", "pipe"),
        ("import os\nos.closerange(3, 20)", ""),
    ],
)
def test_a_solution_that_meddles_with_the_judge_has_crashed(free: Try, code: str, said: str) -> None:
    trial = free(code)
    assert trial.ending is Ending.CRASHED
    assert said in trial.detail


def test_killed_by_somebody_else_is_no_verdict(free: Try) -> None:
    trial = free(f"import posix\nposix.kill(posix.getpid(), {int(signal.SIGKILL)})")
    assert trial.ending is Ending.NOT_JUDGED


def test_processes_that_a_solution_leaves_end_with_it(free: Try, tmp_path: Path) -> None:
    told = tmp_path / "pids"  # each test runs the solution anew: a second child must not empty what the first told
    told.touch()
    trial = free(
        f"import posix, time\nif posix.fork() == 0:\n    open({str(told)!r}, 'a').write(f'{{posix.getpid()}}\\n')\n"
        f"    time.sleep(99)\nwhile not open({str(told)!r}).read().endswith('\\n'): time.sleep(0.01)\n{RIGHT}"
    )
    assert trial.ending is Ending.PASSED
    pids = [int(pid) for pid in told.read_text().split()]
    assert pids
    for _ in range(200):
        if all(map(gone, pids)):
            return
        time.sleep(0.01)
    pytest.fail(f"of {pids} one is alive")


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_it_can_be_stopped_at_any_moment() -> None:
    stop = threading.Event()
    threading.Timer(0.5, stop.set).start()
    began = time.monotonic()
    trial = try_solution("while 1: pass", TEXT, LIMITS, Cell("none"), stop)
    assert (trial.ending, trial.detail) == (Ending.NOT_JUDGED, "interrupted")
    assert time.monotonic() - began < 15


def test_it_has_an_empty_folder_and_no_environment_of_ours(free: Try, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "x")
    before = Path.cwd()
    code = (
        "import os, posix\nassert posix.listdir('.') == [] and 'SECRET' not in os.environ\nopen('x', 'w').write('y')\n"
    )
    assert (
        free(code + RIGHT.replace("2 *", "2 * 1 *")).ending is Ending.CRASHED
    )  # The second test finds the first's file.
    assert (
        free(
            "import os\nassert set(os.environ) <= {'LANG', 'OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS', 'LC_CTYPE'}\n"
            + RIGHT
        ).ending
        is Ending.PASSED
    )
    assert before == Path.cwd()
    assert not (before / "x").exists()


# -- walls -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import socket\nsocket.create_connection(('127.0.0.1', 1), 1)", "Network is unreachable"),
        ("import socket\nsocket.getaddrinfo('example.org', 80)", "gaierror"),
        ("open('/usr/lib/x', 'w')", "Read-only file system"),
        ("open('/x', 'w')", "Read-only file system"),
        ("open('/proc/sys/kernel/hostname', 'w').write('x')", "Read-only|Permission|No such file"),
        ("import posix\nwhile True: posix.fork()", "BlockingIOError"),
        ("import ctypes\nraise OSError(ctypes.CDLL(None).unshare(0x10000000))", "OSError: -1"),
        (
            "import ctypes\nraise OSError(ctypes.CDLL(None, use_errno=True).mount(b'n', b'/work', b'tmpfs', 0, 0))",
            "OSError: -1",
        ),
        ("import posix\nposix.setuid(0)", "PermissionError"),
        ("import posix\nposix.kill(1, 9)\nraise OSError('alive')", "alive|PermissionError"),
        ("import posix\nposix.execv('/bin/sh', ['sh'])", "FileNotFoundError"),
    ],
)
def test_what_namespaces_hold(confined: Try, code: str, said: str) -> None:
    trial = confined(code)
    assert trial.ending is Ending.CRASHED, trial
    assert re.search(said, trial.detail), trial


def test_inside_there_is_nothing_of_ours(confined: Try) -> None:
    outside = ("/etc/passwd", "/etc/shadow", "/bin/sh", "/usr/bin", "/sys", "/var", str(Path(__file__)))
    code = f"""import posix
seen = [posix.listdir('.'), posix.getuid() != 0, posix.getpid() < 9]
tree = [path for path in {outside!r} if posix.access(path, 0)]
pids = [name for name in posix.listdir('/proc') if name.isdigit()]
if seen != [[], True, True] or tree or len(pids) > 2: raise OSError(seen, tree, pids)
"""
    trial = confined(code + RIGHT)
    assert trial.ending is Ending.PASSED, trial


def test_the_folder_of_tests_is_hidden_even_where_it_would_be_shown(namespaces: None, tmp_path: Path) -> None:
    inside = Path(os.__file__).parent / "json"
    code = f"import posix\nprint(int(not posix.access({str(inside / 'decoder.py')!r}, 4)) * 2 * int(input()))"
    hidden = Cell("namespaces", hidden=(inside,))
    trial = try_solution(code, Problem("p", None, (Test("3", "6"),)), LIMITS, hidden, threading.Event())
    assert trial.ending is Ending.PASSED, trial


def test_programs_and_functions_run_inside_as_outside(confined: Try) -> None:
    assert confined(RIGHT).ending is Ending.PASSED
    assert confined("print(1)").ending is Ending.WRONG_ANSWER
    assert confined("def total(a, b):\n    return a + b", ADD).ending is Ending.PASSED
    assert confined("import numpy as np\nprint(2 * np.int64(input()))").ending is Ending.PASSED
    assert confined("import os\nos._exit(3)").detail == "ended with status 3 before it answered"
    assert confined("import posix\nposix.kill(posix.getpid(), 11)").detail == "ended by SIGSEGV"
    ends_quickly(confined, "while 1: pass", SHORT, Ending.TOO_LONG)


def test_what_works_in_the_folder(confined: Try) -> None:
    code = "n = int(input())\nopen('x', 'w').write(str(2 * n))\nf = io.open('x')\nprint(f.read())"
    assert confined(code).ending is Ending.PASSED
    full = confined("for i in range(9):\n    open(str(i), 'wb').write(bytes(1 << 19))")
    assert (full.ending, "No space left" in full.detail) == (Ending.CRASHED, True)


def test_a_container_that_lets_nobody_mount_proc_has_none_inside(
    namespaces: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    source = sandbox.CONFINE.read_text(encoding="utf-8")
    masked = source.replace('f"{root}/proc", "proc"', '"/nowhere", "proc"')
    assert masked != source
    (tmp_path / "confine.py").write_text(masked, encoding="utf-8")
    monkeypatch.setattr(sandbox, "CONFINE", tmp_path / "confine.py")
    code = f"import posix\nassert posix.listdir('/proc') == []\n{RIGHT}"
    trial = try_solution(code, Problem("p", None, (Test("3", "6"),)), LIMITS, Cell("namespaces"), threading.Event())
    assert trial.ending is Ending.PASSED, trial


# -- where the kernel refuses ------------------------------------------------------------------------------------------


def test_a_kernel_that_refuses_is_no_verdict(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    refusing = sandbox.CONFINE.read_text(encoding="utf-8").replace('call("unshare", apart)', 'call("unshare", -1)')
    assert refusing != sandbox.CONFINE.read_text(encoding="utf-8")
    (tmp_path / "confine.py").write_text(refusing, encoding="utf-8")
    monkeypatch.setattr(sandbox, "CONFINE", tmp_path / "confine.py")
    trial = try_solution(RIGHT, TEXT, LIMITS, Cell("namespaces"), threading.Event())
    assert trial.ending is Ending.NOT_JUDGED
    assert trial.detail == "the kernel refused the sandbox: unshare: EINVAL, Invalid argument"


def test_a_sandbox_that_ends_without_a_word_is_no_verdict(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "confine.py").write_text("", encoding="utf-8")
    monkeypatch.setattr(sandbox, "CONFINE", tmp_path / "confine.py")
    trial = try_solution(RIGHT, TEXT, LIMITS, Cell("namespaces"), threading.Event())
    assert (trial.ending, trial.detail) == (Ending.NOT_JUDGED, "the sandbox broke: it said nothing")


def test_no_process_to_be_had_is_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox.sys, "executable", "/nowhere/python")
    trial = try_solution(RIGHT, TEXT, LIMITS, Cell("none"), threading.Event())
    assert (trial.ending, "no process could be started" in trial.detail) == (Ending.NOT_JUDGED, True)
