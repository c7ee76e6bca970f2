//! The requirements of the TCP RFCs, `requirements.csv`, in the format that [`crate::table`] describes.
//!
//! `cargo test -p fullpipe-tcp --test all requirements -- --nocapture` prints the counts.

use crate::table::Requirements;

const TABLE: Requirements = Requirements {
    table: include_str!("requirements.csv"),
    home: env!("CARGO_MANIFEST_DIR"),
    name: "tcp",
    about: "Names with a slash are scripts in `crates/tcp/tests/scripts`, which list received and sent packets with their times. \
            Other names are test functions of `crates/tcp`.",
};

#[test]
fn requirements_page_is_up_to_date() {
    TABLE.check_page();
}

#[test]
fn requirements_table_is_consistent() {
    TABLE.check();
}

#[test]
fn every_numbered_must_of_rfc_9293_is_in_the_table() {
    // Appendix B numbers them from MUST-1 to MUST-69.
    let rows = TABLE.rows();
    for number in 1..=69 {
        let level = format!("MUST-{number}");
        assert!(rows.iter().any(|row| row[0] == "9293" && row[2] == level), "{level} is missing");
    }
}
