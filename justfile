# The commands of CONTRIBUTING.md, which explains them, for `just`. A test compares the two: a command here is on that page, and a
# command of the page is here, with the default of a parameter in its place.

# All checks of a change
check:
    .ci/run

# The same with large figures (an hour)
full:
    .ci/full

# Installs what the tests run, and runs all tests
test:
    tests/real-broker/install && tests/conformance/install && cargo test --workspace --locked

# The tests of one package
test-package package='broker-model':
    cargo test -p {{package}} --locked

# The tests of one behaviour, by the area and a part of the name
test-behaviour area='mcp' filter='cancel':
    cargo test --test {{area}} {{filter}}

# Tests with rules of access in every broker
test-access:
    MCP_BROKER_TEST_ACCESS=1 cargo test --test faults --test drift --locked

lint:
    cargo clippy --workspace --all-targets --locked -- -D warnings

format:
    cargo fmt --all

# The broker on the smoke config
run:
    cargo build --locked && target/debug/mcp-broker 127.0.0.1:8100

# Locks the smoke config again
lock:
    cargo build -p broker-gen -p toolbox-mcp && target/debug/broker-gen lock

# Shows the files that a build compiles in
generate:
    cargo build -p broker-gen && target/debug/broker-gen generate --out target/generated

# Renews the output in docs/tutorial.md
tutorial:
    cargo build -p broker-gen && UPDATE_EXPECT=1 cargo test --test cli tutorial

# Fuzzes the readers of foreign input
fuzz seconds='30':
    FUZZ_SECONDS={{seconds}} cargo test -p fuzz --locked

# A million calls under faults
soak:
    cargo build --release --locked -p soak -p chaos-mcp && target/release/soak

# Counts the instructions of a search
search-cost:
    cargo bench --locked -p broker-build --bench search_cost

# Compares the changes of a job with a bare insert into a SQLite file
job-cost:
    cargo bench --locked -p broker-store --bench job_cost

# Counts the instructions of a call without optimisation
call-cost:
    cargo bench --locked --bench instructions --workspace --profile dev

# Counts the instructions of a call of a release build
call-cost-release:
    cargo bench --locked --bench instructions -p hot-path

# Counts the allocations of a call
allocations:
    cargo test -p hot-path --locked

# Compares the crates with security advisories offline
advisories:
    cargo test -p repository --locked advisories

# Compares the crates with the present advisories
deny:
    cargo deny check

# Compares two builds
reproducible:
    tests/reproducible

# Runs a broker that was built without features
without-features:
    CARGO_TARGET_DIR=target/beside tests/without_features

# Takes the pictures of the web page again
web-pictures:
    cargo build -p broker-gen -p chaos-mcp && UPDATE_EXPECT=1 cargo test --test web pictures

# Calls a broker from a page in Chromium
browser:
    cargo build -p broker-gen -p chaos-mcp && tests/clients/browser

# Counts the lines of product code of each package
count-product-lines:
    tests/count_product_lines

# Checks that the library tests fail for each listed mutant
mutants:
    tests/mutants/run

# Checks a random sample of mutants
mutants-sample:
    tests/mutants/run --sample 300 --seed 1
