# The two commands that README.md starts with are `make run` and `make test`; the rest are habits.
.PHONY: help setup run test check fix bench

help:            ## this list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/'

setup:           ## install what a build needs and is missing, build RocksDB once
	@tools/setup

run: setup       ## run the main job over a real web-server log
	cargo run --bin streamkeeper -- run examples/api-hits.yaml

test:            ## all tests; builds the real servers first that some of them run against
	@tools/setup services
	cargo test --workspace

check: setup     ## what CI checks besides the tests
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	cargo run -q -p streamkeeper-tidy -- crds --check
	cargo run -q -p streamkeeper-tidy -- docs --check

fix: setup       ## format, and write generated files anew
	cargo fmt --all
	cargo run -q -p streamkeeper-tidy -- crds
	cargo run -q -p streamkeeper-tidy -- docs

bench: setup     ## benchmarks; with FLINK_HOME or a set-up Flink, side by side
	e2e/bench/run
