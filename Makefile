# Every command a contributor needs. `make test` is what CI runs.

.PHONY: test lint setup build bench

# Formatting, lints, then every test, with what the tests need installed first.
test: setup lint
	# The house rules read the licences of everything in Cargo.lock, also of what only other systems need.
	cargo fetch --quiet --locked
	cargo test --workspace --locked

lint:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	cargo check --quiet --manifest-path crates/wire/fuzz/Cargo.toml --target-dir target/fuzz --locked

# Debian packages that the tests drive: real servers, a real browser, the tools for links and cgroups.
setup:
	scripts/setup-tests

build:
	cargo build --release --locked

# nstar side by side with what a user would pick instead, as one table of ratios. Peers are installed when root.
bench: build
	scripts/setup-bench
	PATH="$(CURDIR)/target/peers/bin:$$PATH" target/release/bench
