.DEFAULT_GOAL := help
.PHONY: help env book test lab progress success hint submit release grade record observe bench peers clean again

PY := .venv/bin/python
TORCH_PY := .venv-observe/bin/python

# LAB=, EX=, N=, LEARNER=, BOOK=, DIR=, OUT= and SECRET= reach the recipes through the environment, as typed: no part of a value is ever run.
override LAB := $(value LAB)
override EX := $(value EX)
override N := $(value N)
override LEARNER := $(value LEARNER)
override BOOK := $(value BOOK)
override DIR := $(value DIR)
override OUT := $(value OUT)
override SECRET := $(value SECRET)
export LAB EX N LEARNER BOOK DIR OUT SECRET

# The course reads this folder's code and its own environment, whatever the user's settings say.
export PYTHONPATH := $(CURDIR)
export IPYTHONDIR := $(CURDIR)/.venv/ipython
export MPLCONFIGDIR := $(CURDIR)/.venv/matplotlib
export JUPYTER_PREFER_ENV_PATH := 1
unexport PYTHONHOME PYTHONSTARTUP JUPYTER_PATH MPLBACKEND MATPLOTLIBRC

# Several kernels on few cores, and output that is the same on every run.
KERNELS := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 PYTHONHASHSEED=0

help:
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-9s %s\n", $$1, $$2 }' Makefile

env: .venv/ready  ## make the environment in .venv (the other targets do it by themselves)
	@echo "The environment in .venv is ready."

# A moved or copied folder, or a Python that is gone, makes the environment anew.
ifneq ($(CURDIR) here,$(file <.venv/ready) $(if $(realpath $(PY)),here))
.venv/ready: again
endif

.venv/ready: requirements.txt pyproject.toml
	@python=$$(sh tools/python.sh) || exit 1; \
	echo "Making the environment in .venv (about a minute, once) ..."; \
	"$$python" -m venv --clear .venv && { \
	  $(PY) -m pip install -r requirements.txt && \
	  $(PY) -m pip install --no-index --no-deps --no-build-isolation -e . && \
	  $(PY) -m IPython -c 'import matplotlib.pyplot' && \
	  echo 'c.HistoryManager.enabled = False' >.venv/ipython/profile_default/ipython_config.py; \
	} >.venv/making.log 2>&1 || { \
	  tail -n 15 .venv/making.log; echo "The environment is not complete; its log is .venv/making.log."; exit 1; }
	@printf %s "$(CURDIR)" >.venv/ready

# PyTorch has an environment of its own: the course's stays small, and neither lock holds the other back.
ifneq ($(CURDIR) here,$(file <.venv-observe/ready) $(if $(realpath $(TORCH_PY)),here))
.venv-observe/ready: again
endif

.venv-observe/ready: requirements-observe.txt
	@python=$$(sh tools/python.sh) || exit 1; \
	echo "Making the environment with PyTorch in .venv-observe (minutes, once) ..."; \
	"$$python" -m venv --clear .venv-observe && \
	  $(TORCH_PY) -m pip install -r requirements-observe.txt >.venv-observe/making.log 2>&1 || { \
	  tail -n 15 .venv-observe/making.log; \
	  echo "The environment is not complete; its log is .venv-observe/making.log."; exit 1; }
	@printf %s "$(CURDIR)" >.venv-observe/ready

OBSERVE := LAB_MODULE=solutions $(KERNELS) $(TORCH_PY) -m costlib.observe --check && \
	  LAB_MODULE=solutions $(KERNELS) $(TORCH_PY) -m pytest -q tests/observe

book: .venv/ready  ## build the book with every page executed on the reference solutions
	@LAB_MODULE=solutions $(KERNELS) $(PY) tools/book.py

test: .venv/ready  ## run every test, and compare every recorded page with a new run
	@find tests/recorded -name '*.ipynb' 2>/dev/null | grep -q . || { \
	  echo "tests/recorded holds no notebook: make record" >&2; exit 1; }
	@LAB_MODULE=solutions $(KERNELS) $(PY) -m pytest -n 4 --dist loadfile \
	  --nbval --nbval-current-env --nbval-cell-timeout=60 --ignore-glob='labs/*.ipynb' tests labs
	@if [ "$$(cat .venv-observe/ready 2>/dev/null)" = "$(CURDIR)" ] && [ -x $(TORCH_PY) ] && \
	  [ ! requirements-observe.txt -nt .venv-observe/ready ]; \
	then $(OBSERVE); \
	else echo "The observations were not compared with PyTorch, which is not installed here: make observe does both."; fi

lab: .venv/ready  ## check your answers to one lab: make lab LAB=01
	@[ -n "$$LAB" ] || { echo "Name the lab, for example: make lab LAB=01" >&2; exit 2; }; \
	$(PY) -m labs check "$$LAB" || [ $$? = 1 ]  # 1: an answer is wrong, which the text has said

hint: .venv/ready  ## the next hint, or hint N: make hint LAB=01 EX=matmul_flops N=2
	@[ -n "$$LAB" ] && [ -n "$$EX" ] || { \
	  echo "Name the lab and the exercise, for example: make hint LAB=01 EX=matmul_flops" >&2; exit 2; }; \
	$(PY) -m labs hint "$$LAB" "$$EX" $${N:+"$$N"}

progress: .venv/ready  ## which exercises are filled in, which pass, and what to do next
	@$(PY) -m labs progress

success: .venv/ready  ## which success criteria of Part I your answers meet, and which remain to be said
	@$(PY) -m labs success || [ $$? = 1 ]  # 1: an answer is wrong, which the text has said

submit: .venv/ready  ## the file to hand in, with your id or without: make submit LAB=03 LEARNER=ada
	@[ -n "$$LAB" ] || { echo "Name the lab, for example: make submit LAB=01" >&2; exit 2; }; \
	$(PY) -m labs submit "$$LAB" $${LEARNER:+--learner="$$LEARNER"}

release: .venv/ready  ## a class's edition, proved to hold no solution: make release LAB=all BOOK=1
	@[ -n "$$LAB" ] || { echo "Name the labs, for example: make release LAB=all, or LAB='01 03'" >&2; exit 2; }; \
	$(PY) -m labs release "$$LAB" --out costlib-labs.zip $${BOOK:+--book _build/html}

grade: .venv/ready  ## mark a class in a sandbox: make grade LAB=01 DIR=handed_in OUT=marks
	@[ -n "$$LAB" ] && [ -d "$$DIR" ] && [ -n "$$OUT" ] || { \
	  echo "Name the lab, the submissions and a folder for the results, for example: make grade LAB=01 DIR=handed_in OUT=marks" >&2; exit 2; }; \
	$(PY) -m labs grade "$$DIR"/* --lab="$$LAB" --out="$$OUT" $${SECRET:+--secret-file="$$SECRET"}

record: .venv/ready  ## write the executed pages to tests/recorded, from their sources
	@LAB_MODULE=solutions $(KERNELS) $(PY) tools/record.py

observe: .venv-observe/ready  ## record all observations again with PyTorch and compare
	@$(OBSERVE)

bench: .venv/ready  ## measure the lab loop, the import and the estimates
	@$(PY) -m labs bench

ifneq ($(CURDIR) here,$(file <.venv-peers/ready) $(if $(realpath .venv-peers/bin/python),here))
.venv-peers/ready: again
endif

.venv-peers/ready: requirements-peers.txt
	@python=$$(sh tools/python.sh) || exit 1; \
	echo "Making the environment with nbgrader and Otter-Grader in .venv-peers (about a minute, once) ..."; \
	"$$python" -m venv --clear .venv-peers && .venv-peers/bin/python -m pip install -qq -r requirements-peers.txt && printf %s "$(CURDIR)" >$@

peers: .venv/ready .venv-peers/ready  ## mark a class with pytest, nbgrader and Otter-Grader too, and compare
	@$(PY) tools/bench_class.py

clean:  ## delete what can be made again: the built book and caches, never .venv* or your work
	@rm -rf _build .pytest_cache
	@find . \( -path ./.venv -o -path ./.venv-observe -o -path ./.venv-peers -o -path ./.git \) -prune -o -type d -name __pycache__ -prune -exec rm -rf {} +
