# One command per chore, the same on a laptop and in CI. Each sets up .venv by itself when it has
# to: a machine with Python 3.11-3.13 and make is enough. uv is used when it is there, pip when not.
# To choose the interpreter: make PYTHON=python3.12 test

VENV := .venv
IN_VENV := $(VENV)/bin/python
READY := $(VENV)/.ready
BACKENDS := .venv-backends
OLDEST := .venv-oldest

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test test-slow test-all test-backends test-torch test-jax test-onnx benchmark check format constraints clean docs docs-serve house mechanisms notebooks lecture pictures

help: ## list the commands
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 14

demo: $(READY) ## train, export, verify and picture a small model on handwritten digits
	$(IN_VENV) -m keras_attention demo

# Without oneDNN, whose kernels TensorFlow never frees: half a gigabyte less, and the same numbers on
# every processor. The slow tests run with it, as users do. Four processes on two cores as well: the
# fewer tests a process runs, the less memory it keeps.
test: $(READY) ## run the default tests (8 minutes on two cores; tests/README.md)
	TF_ENABLE_ONEDNN_OPTS=0 $(IN_VENV) -m pytest --numprocesses=4 --dist=worksteal

test-slow: $(READY) ## run the slow tests: runtimes, small trainings, commands, documents
	$(IN_VENV) -m pytest -m 'slow and not sweep' --numprocesses=2 --dist=worksteal

test-all: $(READY) ## run all tests: full grids, long trainings, published numbers
	KERAS_ATTENTION_TESTS=all $(IN_VENV) -m pytest -m 'slow or sweep or not slow' --numprocesses=2 \
	    --dist=worksteal

# What must hold on every backend. JAX compiles each operation of a test: faster when not optimized.
ON_EVERY_BACKEND := tests/backends tests/test_contract.py tests/attention/test_definition.py
BACKENDS_PYTEST := $(BACKENDS)/bin/python -m pytest -m 'not slow and not sweep and not tensorflow' \
    --numprocesses=logical --maxprocesses=4 --dist=worksteal
UNOPTIMIZED := --xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true

# Each version that setup.cfg allows at least, with Python 3.11: NumPy 2.0 has no wheels for 3.13.
test-oldest: $(OLDEST)/.ready ## run the smoke test on the oldest versions (2 minutes)
	$(OLDEST)/bin/python -m pytest -m 'slow or sweep or not slow' tests/test_smoke.py \
	    tests/core/test_keras_internals.py tests/core/test_onednn.py tests/tasks/test_model_file.py

test-backends: test-torch test-jax test-onnx ## run the layers' tests on PyTorch, on JAX and beside peers

test-torch: $(BACKENDS)/.ready
	KERAS_BACKEND=torch $(BACKENDS_PYTEST) $(ON_EVERY_BACKEND) tests/training/scores/test_brackets.py \
	    tests/training/test_hungarian.py

test-jax: $(BACKENDS)/.ready
	KERAS_BACKEND=jax XLA_FLAGS='$(UNOPTIMIZED)' $(BACKENDS_PYTEST) $(ON_EVERY_BACKEND)
	KERAS_BACKEND=tensorflow XLA_FLAGS='$(UNOPTIMIZED)' $(BACKENDS_PYTEST) -p no:costs tests/backends

test-onnx: $(BACKENDS)/.ready
	$(BACKENDS)/bin/python -m pytest -m 'slow or sweep' --numprocesses=logical --maxprocesses=4 --dist=worksteal \
	    tests/export/test_onnx_and_openvino.py 'tests/test_docs.py::test_code_runs[on-device/onnx.md]'

benchmark: $(READY) ## measure speed and memory against Keras (15 minutes)
	TF_CPP_MIN_LOG_LEVEL=3 $(IN_VENV) benchmarks/encoder.py
	TF_CPP_MIN_LOG_LEVEL=3 $(IN_VENV) benchmarks/attention_core.py

check: $(READY) ## lint, and see that the code is formatted and the prose is plain
	$(IN_VENV) -m ruff check .
	$(IN_VENV) -m ruff format --check .
	$(IN_VENV) docs/tools/prose.py

format: $(READY) ## format the code and mend what the linter can
	$(IN_VENV) -m ruff check --fix .
	$(IN_VENV) -m ruff format .

docs: $(READY) ## build the site into build/site; a link or a name that leads nowhere fails
	NO_MKDOCS_2_WARNING=1 $(IN_VENV) -m mkdocs build --strict

docs-serve: $(READY) ## show the site on this machine, and again after every change
	$(IN_VENV) -m mkdocs serve

house: $(READY) ## count front doors, kinds, private names and imports of the package
	TF_CPP_MIN_LOG_LEVEL=3 $(IN_VENV) docs/tools/house.py

mechanisms: $(READY) ## write docs/mechanisms.md from the docstrings
	TF_CPP_MIN_LOG_LEVEL=3 $(IN_VENV) docs/tools/mechanisms.py

notebooks: $(READY) ## make docs/notebooks from examples/, with outputs
	$(IN_VENV) docs/tools/notebooks.py

lecture: $(READY) ## run the scripts of examples/lecture, and write docs/lecture (45 minutes)
	TF_CPP_MIN_LOG_LEVEL=3 $(IN_VENV) docs/tools/lecture.py --run all

pictures: $(READY) ## draw docs/pictures from the trained models
	TF_CPP_MIN_LOG_LEVEL=3 $(IN_VENV) docs/tools/pictures.py

# pip takes no backports.strenum newer than 1.2.8 on Python 3.11; uv, which would, must not either.
# PyTorch stays at the version whose build without CUDA the tests have run with.
constraints: ## resolve both files of constraints again, to the newest and oldest versions (needs uv)
	printf '%s\n' 'backports.strenum<=1.2.8' 'torch==2.13.0' | uv pip compile setup.cfg --output-file constraints.txt \
	    --extra backends --constraint - --universal --python-version 3.11 \
	    --fork-strategy fewest --upgrade --quiet --no-annotate \
	    --custom-compile-command 'make constraints'
	printf '%s\n' 'backports.strenum<=1.2.8' | uv pip compile setup.cfg \
	    --output-file constraints-oldest.txt --extra test --constraint - \
	    --python-version 3.11 --resolution lowest-direct --upgrade --quiet --no-annotate \
	    --custom-compile-command 'make constraints'

clean: ## remove the environments and what builds and tests leave behind
	rm -rf $(VENV) $(BACKENDS) $(OLDEST) build dist *.egg-info .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# On Linux, PyTorch comes with CUDA unless a wheel without it is at hand (PIP_FIND_LINKS), or, with
# uv, UV_TORCH_BACKEND=cpu asks for one.
$(BACKENDS)/.ready: setup.cfg pyproject.toml constraints.txt
	@./.ci/set-up $(BACKENDS) backends
	@touch $@

$(OLDEST)/.ready: setup.cfg pyproject.toml constraints-oldest.txt
	@PYTHON=python3.11 ./.ci/set-up $(OLDEST) all constraints-oldest.txt pytest hypothesis
	@touch $@

$(READY): setup.cfg pyproject.toml constraints.txt
	@./.ci/set-up $(VENV) test
	@touch $@
