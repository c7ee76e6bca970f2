//! The table of QUIC requirements, `requirements.csv`; the module describes it.
//!
//! `cargo test -p fullpipe-quic --test all requirements -- --nocapture` prints the counts.

#[path = "../../tcp/tests/table/mod.rs"]
mod table;

use table::Requirements;

const TABLE: Requirements = Requirements {
    table: include_str!("requirements.csv"),
    home: env!("CARGO_MANIFEST_DIR"),
    name: "quic",
    about: "The model has no cryptography and does not encode packets as bytes. The table omits requirements for keys, token \
            contents, encodings and versions, or states why they are not met or do not apply. Names are test functions of `crates/quic`.",
};

#[test]
fn requirements_page_is_up_to_date() {
    TABLE.check_page();
}

#[test]
fn requirements_table_is_consistent() {
    assert!(TABLE.rows().len() > 100);
    TABLE.check();
}
