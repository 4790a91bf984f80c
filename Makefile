# Every command a contributor needs. `make test` is what CI runs.

.PHONY: test lint setup build static size bench bench-overflow sanitize sanitize-build fuzz truth truth-hosts predictions manual power-cuts kill-campaign packages packages-check container-check release reproducible supply-chain

# Format, lints, every test, and the sanitizer, with what the tests need installed first.
test: setup
	scripts/test

lint:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --features fuzz/libfuzzer --locked -- -D warnings

# All unsafe code, the engine's on every concurrency model, and the parser under AddressSanitizer. The search for leaks
# stays out: it needs ptrace(2), which a container may forbid. A compiler of the stable channel has the sanitizers, and
# has to be told. Instructions are not counted: what is built so runs under no other tool.
SANITIZED = RUST_TEST_THREADS=4 RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zsanitizer=address ASAN_OPTIONS=detect_leaks=0 \
  cargo test -p engine -p wire -p load -p observe --tests --locked --target $(shell rustc --print host-tuple) --target-dir target/asan
sanitize:
	$(SANITIZED) -- --skip instructions::

sanitize-build:
	$(SANITIZED) --no-run

# Searches with coverage for inputs that break what fuzz/src promises: ten minutes for each target, four hours for all.
# FUZZ_SECONDS sets the time for each; `scripts/fuzz TARGET.. [SECONDS]` searches some.
fuzz:
	scripts/fuzz

# Debian packages that the tests drive: real servers, a real browser, the tools for links and cgroups.
setup:
	scripts/setup-tests

build:
	cargo build --release --locked

# nstar alone as one small file that takes no library of the host it runs on, in target/static, and whether it is that. Minutes.
static:
	scripts/static

# Manual pages and completions of both programs, and the terms of everything inside, in target/manual.
manual:
	cargo run --quiet --release --locked -p packaging -- target/manual

# Debian packages of both programs, in target/debian.
packages: build manual
	scripts/packages

# Their life on a fresh Debian: install, serve, be attacked, killed and without power, upgrade, remove, purge. As root.
packages-check: build manual
	cargo build --release --locked -p bench --bin hostile-client
	cargo build --release --locked -p crash-tests
	scripts/check-packages

# Archives and packages of both programs with checksums, lists of what is inside and its terms, in target/release-VERSION.
release:
	scripts/release --check
	scripts/reproducibly $(MAKE) build manual
	scripts/release

# Whether what is released has the same bytes wherever it is built: PROGRAMS (nstar), built in two folders. Minutes.
PROGRAMS = nstar
reproducible:
	scripts/check-reproducible $(PROGRAMS)

# Licences, sources, and known faults of everything that is linked. Takes cargo-deny, and the network for the faults.
supply-chain:
	scripts/supply-chain

# Images of both programs, built and run by podman. As root.
container-check: build manual
	scripts/check-container

# Cuts the power of the disk under accounts, files, booking, index and peer, 500 times each, and looks whether they keep what
# they acknowledged (docs/security.md). As root, where /dev/fuse is. `make power-cuts CRASH="--systems files --times 25 --seed 7"`
# repeats some of them.
power-cuts: build
	cargo build --release --locked -p crash-tests
	target/release/crash-tests power-cut --times 500 $(CRASH)

# The same with kill -9, 1 000 times each.
kill-campaign: build
	cargo build --release --locked -p crash-tests
	target/release/crash-tests kill --times 1000 $(CRASH)

# Packages, build time and program size of the tool, which stays small.
size:
	scripts/size

# nstar side by side with what a user would pick instead, as one table of ratios. Peers are installed when root.
bench: build
	cargo build --release --locked -p bench
	scripts/setup-bench
	PATH="$(CURDIR)/target/peers/bin:$$PATH" target/release/bench

# What checks for overflow would cost releases: CPU time with them over that without, of server and generator.
bench-overflow:
	scripts/bench-overflow

# Servers with one bottleneck of known size each, and whether nstar finds it (docs/truth.md). About twenty minutes on a
# machine that does nothing else.
truth: build
	cargo build --release --locked -p truth
	scripts/setup-truth
	target/release/truth

# Servers whose tiers stand on a host of their own each, with a bottleneck on each host and on each link in turn; then the same
# with the load from three hosts that join a fleet. As root, on a machine that does nothing else.
truth-hosts: build
	cargo build --release --locked -p truth
	scripts/setup-truth
	trap 'exit 1' INT TERM; failed=0; \
	target/release/truth --hosts || failed=1; \
	target/release/truth --hosts --generators nats || failed=1; \
	exit $$failed

# The same servers changed, and how well `nstar predict` knew what they would do then (docs/predict.md), on a machine that does
# nothing else. `make predictions CHANGES="--keep runs pool"` keeps the run files, and measures only changes of that name.
predictions: build
	cargo build --release --locked -p truth
	scripts/setup-truth
	target/release/truth --changes $(CHANGES)
