#!/bin/sh
# Runs libFuzzer on targets (all by default) for SECONDS each (60 by default), with any toolchain, cargo-fuzz or not:
# ./run.sh [-s SECONDS] [TARGET...]
set -e
cd "$(dirname "$0")"
seconds=60
if [ "$1" = -s ]; then seconds=$2; shift 2; fi
[ $# -gt 0 ] || set -- $(ls targets | sed 's/\.rs$//')
export RUSTFLAGS="--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
 -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1"
# A target of its own keeps build scripts and macros free of these flags.
host=$(rustc -vV | sed -n 's/^host: //p')
cargo build --release --bins --target "$host"
for target; do
    mkdir -p "found/$target" "corpus/$target" artifacts
    echo "== $target"
    "${CARGO_TARGET_DIR:-target}/$host/release/$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 \
        -print_final_stats=1 -artifact_prefix="artifacts/$target-" "found/$target" "corpus/$target" 2>&1 | tail -12
done
