//! A run: its record, its folder, and whether it is valid.

use crate::error::ReportError;
use crate::numbers::{fixed, trimmed};
use fullpipe_archive::{AuditRecord, LatenessRecord, RunRecord};
use std::path::{Path, PathBuf};

/// A run.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Run {
    pub(crate) record: RunRecord,
    /// The name of the folder of the run.
    pub(crate) key: String,
    pub(crate) folder: PathBuf,
}

impl Run {
    /// Reads `folder/run.json`.
    pub(crate) fn read(folder: &Path, key: &str) -> Result<Self, ReportError> {
        let record = RunRecord::read(&folder.join(RunRecord::FILE))?;
        Ok(Self { record, key: key.to_owned(), folder: folder.to_path_buf() })
    }

    /// Returns whether the run was in virtual time.
    pub(crate) fn is_virtual(&self) -> bool {
        self.record.clock == "virtual"
    }

    /// Returns the reasons why the run is invalid; empty if it is valid.
    pub(crate) fn distrust(&self) -> Vec<String> {
        let mut reasons = self.record.distrust.clone();
        if !passed(&self.record.audit) {
            match self.record.audit.failures.as_slice() {
                [] => reasons.push("the audit failed".to_owned()),
                // The reasons in the record may already include the failures.
                failures => {
                    let audit = failures.iter().map(|f| format!("audit: {f}"));
                    reasons.extend(audit.filter(|f| !self.record.distrust.contains(f)));
                }
            }
        }
        if let Some(lateness) = self.record.lateness.as_ref().filter(|lateness| !lateness.on_time) {
            let why =
                if lateness.reasons.is_empty() { lateness_in_words(lateness) } else { lateness.reasons.join("; ") };
            reasons.push(format!("fell behind real time: {why}"));
        }
        reasons
    }
}

/// Returns whether the audit passed. Only an explicit pass counts.
pub(crate) fn passed(audit: &AuditRecord) -> bool {
    audit.passed && audit.failures.is_empty() && audit.failures_not_kept == 0
}

/// Describes the lateness of departing packets, stalls and the emulator's own drops as a sentence with units.
pub(crate) fn lateness_in_words(lateness: &LatenessRecord) -> String {
    let micros = |seconds: f64| fixed(seconds * 1e6, 0);
    let packets = &lateness.packets;
    let stalls = match lateness.stall_count {
        0 => "no stalls".to_owned(),
        n => format!("{} stalls, the longest {} ms", fixed(n as f64, 0), fixed(lateness.longest_stall_s * 1e3, 0)),
    };
    format!(
        "{} packets late by {} µs (median), {} µs (99 %), {} µs at most; {} by more than {} ms; {stalls}; own drops: {}",
        fixed(packets.count as f64, 0),
        micros(packets.p50_s),
        micros(packets.p99_s),
        micros(packets.max_s),
        fixed(packets.late as f64, 0),
        trimmed(lateness.late_after_s * 1e3, 3),
        fixed(lateness.own_drops as f64, 0),
    )
}
