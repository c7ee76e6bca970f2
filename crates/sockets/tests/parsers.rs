//! Tests of every entry point of `fuzz/` with its seeds, with damaged seeds, and with random bytes, without libFuzzer.

#[allow(unreachable_pub, reason = "fuzz targets call these")]
#[path = "../../../fuzz/src/lib.rs"]
mod parsers;

use proptest::prelude::*;
use std::fs;
use std::path::{Path, PathBuf};

/// The seeds of an entry point.
fn seeds(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name);
    let mut files: Vec<PathBuf> = fs::read_dir(folder).map_or_else(
        |_| Vec::new(),
        |files| files.map(|file| file.expect("the folder can be listed").path()).collect(),
    );
    files.sort();
    files.iter().map(|file| fs::read(file).expect("the seed can be read")).collect()
}

#[test]
fn seeds_are_parsed() {
    let mut count = 0;
    for (name, parse) in parsers::PARSERS {
        for seed in seeds(name) {
            parse(&seed);
            count += 1;
        }
    }
    assert!(count >= 30, "only {count} seeds");
}

#[test]
fn every_entry_point_has_a_fuzz_target() {
    for (name, _) in parsers::PARSERS {
        let target = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../fuzz/targets/{name}.rs"));
        assert!(target.is_file(), "{name}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn arbitrary_bytes_are_parsed_or_rejected(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        for (_, parse) in parsers::PARSERS {
            parse(&bytes);
        }
    }

    #[test]
    fn damaged_seeds_are_parsed_or_rejected(which in any::<prop::sample::Index>(), at in any::<prop::sample::Index>(), byte in any::<u8>(), keep in any::<prop::sample::Index>()) {
        for (name, parse) in parsers::PARSERS {
            let seeds = seeds(name);
            if seeds.is_empty() {
                continue;
            }
            let mut seed = which.get(&seeds).clone();
            if seed.is_empty() {
                continue;
            }
            let place = at.index(seed.len());
            seed[place] = byte;
            parse(&seed);
            seed.truncate(keep.index(seed.len()));
            parse(&seed);
        }
    }
}
