# make reproduce   the small reproduction, from nothing to tables, figures and report
# make test        checks and tests, a small end-to-end run included
# make test-slow   the tests that take longer; among them jobs stopped in many ways, on a real Slurm or by kill -9
# make test-vllm   those of vLLM alone, whose build for a CPU gets an environment of its own (3.5 GB)
# make bench       speed, against plain ways of doing the same and against TRL in an environment of its own
# make gpu-check   what the GPU here makes of attention, update, sampling and a whole step: some minutes
PYTHON ?= python3
CORES ?= 2
UV := 0.13.9
VENV := .venv
# Bytecode is kept: most jobs import torch, which takes a quarter of a minute without.
IN := PYTHONDONTWRITEBYTECODE= PATH="$(CURDIR)/$(VENV)/bin:$$PATH"
# The scale that config.yaml names, unless SCALE= is given.
SCALE ?= $(or $(shell sed -n 's/^scale: *\([A-Za-z0-9._-]*\).*/\1/p' config/config.yaml),tiny)
# Local wheels, where a machine has some: uv does not read pip's settings.
FIND_LINKS := $(if $(PIP_FIND_LINKS),--find-links "$(PIP_FIND_LINKS)")

.PHONY: setup reproduce test test-slow test-vllm checks bench gpu-check

setup: $(VENV)/installed

# The stamp is newer than the pins: the environment is as pinned. The .pth file lets `python -m datpo` find src/.
$(VENV)/installed: requirements.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; name one with PYTHON=")'
	test -x $(VENV)/bin/pip || $(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install --quiet uv==$(UV)
	$(VENV)/bin/uv pip install --python $(VENV)/bin/python $(FIND_LINKS) -r requirements.txt
	$(VENV)/bin/python -c 'import site; open(site.getsitepackages()[0] + "/datpo.pth", "w").write("$(CURDIR)/src\n")'
	touch $@

reproduce: setup
	$(IN) snakemake --cores $(CORES) --config scale=$(SCALE)
	$(IN) snakemake --report results/$(SCALE)/report.html --config scale=$(SCALE)
	@echo
	@echo "report:  results/$(SCALE)/report.html: all tables and figures, captions, run cards, three trees"
	@echo "tables:  results/$(SCALE)/tables/table2.md and others (also .csv, .tex and .html)"
	@echo "figures: results/$(SCALE)/figures/pass_at_k.png and others (also .svg)"
	@echo "trees:   results/$(SCALE)/viewer/index.html"

checks: setup
	$(IN) ruff check .
	$(IN) ruff format --check .
	$(IN) snakefmt --check .
	$(IN) mypy
	$(IN) PYTHONPATH=src lint-imports
	$(IN) snakemake --lint

# One test more at a time than there are cores: those on Slurm mostly wait.
PYTEST := python -m pytest -n $$(($(CORES) + 1)) --dist loadgroup

test: checks
	$(IN) $(PYTEST) -m "not slow"

test-slow: setup test-vllm
	$(IN) $(PYTEST) -m slow

# vLLM's build for a CPU, in an environment of its own whose pins name all there is.
VLLM := .venv-vllm

$(VLLM)/installed: tests/vllm/requirements.txt | setup
	$(VENV)/bin/uv venv --quiet --clear --python $(VENV)/bin/python $(VLLM)
	$(VENV)/bin/uv pip install --quiet --no-deps --python $(VLLM)/bin/python $(FIND_LINKS) -r $<
	touch $@

test-vllm: $(VLLM)/installed
	PATH="$(CURDIR)/$(VLLM)/bin:$$PATH" OMP_NUM_THREADS=1 HF_HUB_OFFLINE=1 python -m pytest tests/vllm

# Answers for the checker to judge, where a set of them lies beside the project.
ANSWERS ?= $(wildcard ../shared/cases/grading_real.jsonl)
TRL := .venv-trl

$(TRL)/installed: benchmarks/requirements-trl.txt | setup
	$(VENV)/bin/uv venv --quiet --clear --python $(VENV)/bin/python $(TRL)
	$(VENV)/bin/uv pip install --quiet --python $(TRL)/bin/python $(FIND_LINKS) -r $<
	touch $@

bench: setup $(TRL)/installed
	$(IN) PYTHONPATH=src HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 python -m benchmarks --trl $(TRL)/bin/python \
	    $(if $(ANSWERS),--answers $(ANSWERS))

gpu-check: setup
	$(IN) PYTHONPATH=src HF_HUB_OFFLINE=1 python -m benchmarks.gpu_check
