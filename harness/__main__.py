"""``python -m harness VERB``."""

import signal
import sys
import traceback

if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # ^C ends it in silence until the verb can say so

from harness.cli.main import main
from harness.errors import HarnessError

try:
    code = main(sys.argv[1:])
except Exception:  # noqa: BLE001 - Python's own status would be 1, which says that all was done and the verdict is no
    traceback.print_exc()
    code = HarnessError.exit_code
signal.signal(signal.SIGINT, signal.SIG_IGN)  # all is done: ^C must not turn the status into another
sys.exit(code)
