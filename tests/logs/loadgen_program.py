"""One LoadGen run with instant answers: ``loadgen_program.py <leg as JSON> <output folder>``."""

from __future__ import annotations

import array
import json
import os
import sys

import mlperf_loadgen as lg


def main(leg: dict, out: str) -> None:
    settings = lg.TestSettings()
    assert settings.FromConfig(f"{out}/user.conf", leg["model"], leg["scenario"], 1) == 0
    settings.scenario = getattr(lg.TestScenario, leg["scenario"])
    settings.mode = getattr(lg.TestMode, leg["mode"])
    tokens = array.array("i", range(1, leg["answer_tokens"] + 1))
    address, _ = tokens.buffer_info()

    def issue(ids: list[int], indices: list[int]) -> None:
        answers = [lg.QuerySampleResponse(i, address, 4 * len(tokens), len(tokens)) for i in ids]
        if leg["first_tokens"] and leg["scenario"] == "Server":
            lg.FirstTokenComplete(answers)
        lg.QuerySamplesComplete(answers)

    sut = lg.ConstructFastSUT(issue, lambda: None)
    qsl = lg.ConstructQSL(leg["rows"], leg["rows"], lambda _: None, lambda _: None)
    log = lg.LogSettings()
    log.log_output.outdir = out
    log.enable_trace = False
    lg.StartTestWithLogSettings(sut, qsl, settings, log, f"{out}/audit.config" if leg["audit"] else "")


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), sys.argv[2])
    sys.stdout.flush()
    os._exit(0)  # LoadGen's threads may outlive the interpreter's shutdown
