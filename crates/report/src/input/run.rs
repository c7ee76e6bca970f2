//! `run.json` of one run: build, seed, duration, counts, audit, lateness. What the report does not know in it it leaves
//! alone, so that runs can say more.

use crate::error::ReportError;
use crate::markup::shorten;
use crate::numbers::{fixed, trimmed};
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

/// What a run says about itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Run {
    pub(crate) key: String,
    pub(crate) folder: PathBuf,
    pub(crate) build: String,
    pub(crate) seed: String,
    pub(crate) title: Option<String>,
    /// Simulated, or in real time passed, seconds.
    pub(crate) duration_s: Option<f64>,
    /// "virtual" or "real", where the run says it.
    pub(crate) clock: Option<String>,
    pub(crate) quick: bool,
    /// Packet counts by name.
    pub(crate) packets: Vec<(String, f64)>,
    pub(crate) warm_up: Option<String>,
    /// When the measurement of links begins, seconds.
    pub(crate) measured_from_s: Option<f64>,
    pub(crate) audit: Option<Audit>,
    pub(crate) lateness: Option<Lateness>,
    /// Why the run says that it is not to be trusted, or that it failed.
    pub(crate) complaints: Vec<String>,
}

/// What the auditor said.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Audit {
    pub(crate) passed: bool,
    /// What was checked, and how often.
    pub(crate) checks: Vec<(String, f64)>,
    pub(crate) failures: Vec<String>,
}

/// How late a real-time run was.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Lateness {
    pub(crate) trusted: bool,
    /// Why it is not trusted, where it says so.
    reasons: Vec<String>,
    /// Packets on their way out, stalls and own drops in words, or all figures by name.
    pub(crate) figures: String,
}

impl Run {
    /// Reads `folder/run.json`.
    pub(crate) fn read(folder: &Path, key: &str) -> Result<Self, ReportError> {
        let file = folder.join("run.json");
        let bytes = std::fs::read(&file).map_err(|cause| ReportError::read(&file, cause))?;
        let value: Value = serde_json::from_slice(&bytes).map_err(|error| {
            let problem = if error.is_eof() { "ends in the middle of its JSON" } else { "is not valid JSON" };
            ReportError::corrupt_at(&file, error.line() as u64, problem)
        })?;
        let Value::Object(root) = value else {
            return Err(ReportError::corrupt(&file, "expected a JSON object"));
        };
        let text = |name: &str| {
            root.get(name)
                .and_then(|v| if v.is_null() { None } else { Some(shown(v)) })
                .ok_or_else(|| ReportError::corrupt(&file, format!("has no `{name}`")))
        };
        let scenario = root.get("scenario").and_then(Value::as_object);
        let optional = |name: &str| {
            [Some(&root), scenario].into_iter().flatten().find_map(|o| o.get(name)).filter(|v| !v.is_null()).map(shown)
        };
        let audit = match root.get("audit") {
            None | Some(Value::Null) => None,
            Some(Value::Object(audit)) => Some(read_audit(audit, &file)?),
            Some(_) => return Err(ReportError::corrupt(&file, "`audit` is not an object")),
        };
        let lateness = root.get("lateness").and_then(Value::as_object).map(read_lateness);
        let mut complaints = Vec::new();
        for name in ["distrust", "error"] {
            match root.get(name) {
                Some(Value::String(why)) if !why.is_empty() => complaints.push(why.clone()),
                Some(Value::Array(list)) => complaints.extend(list.iter().map(shown)),
                _ => {}
            }
        }
        if ["valid", "trusted"].iter().any(|name| root.get(*name) == Some(&Value::Bool(false))) && complaints.is_empty()
        {
            complaints.push("the run says that it is not to be trusted".to_owned());
        }
        let packets = match root.get("packets").or_else(|| root.get("counts")) {
            Some(Value::Object(counts)) => numbers(counts),
            Some(count) => count.as_f64().map(|n| ("packets".to_owned(), n)).into_iter().collect(),
            None => Vec::new(),
        };
        Ok(Self {
            key: key.to_owned(),
            folder: folder.to_path_buf(),
            build: text("build")?,
            seed: text("seed")?,
            title: optional("title"),
            duration_s: ["duration_s", "simulated_s", "duration"].iter().find_map(|n| root.get(*n).and_then(finite)),
            clock: optional("clock"),
            quick: root.get("quick") == Some(&Value::Bool(true)),
            packets,
            warm_up: ["warm_up_s", "warm_up", "warmup"].iter().find_map(|n| optional(n)),
            measured_from_s: root.get("measurement_from_s").and_then(finite),
            audit,
            lateness,
            complaints,
        })
    }

    /// Why the run is not to be trusted; empty if it is.
    pub(crate) fn distrust(&self) -> Vec<String> {
        let mut reasons = self.complaints.clone();
        if let Some(audit) = &self.audit
            && !audit.passed
        {
            match audit.failures.as_slice() {
                [] => reasons.push("the audit failed".to_owned()),
                // The run's own complaints may name them already.
                failures => {
                    let audit = failures.iter().map(|f| format!("audit: {f}"));
                    reasons.extend(audit.filter(|f| !self.complaints.contains(f)));
                }
            }
        }
        if let Some(lateness) = &self.lateness
            && !lateness.trusted
        {
            let why = if lateness.reasons.is_empty() { lateness.figures.clone() } else { lateness.reasons.join("; ") };
            reasons.push(format!("fell behind real time: {why}"));
        }
        reasons
    }
}

fn read_audit(audit: &Map<String, Value>, file: &Path) -> Result<Audit, ReportError> {
    let failures: Vec<String> = match audit.get("failures") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(list)) => list.iter().map(failure).collect(),
        Some(_) => return Err(ReportError::corrupt(file, "`audit.failures` is not a list")),
    };
    let mut checks = numbers(audit);
    if let Some(Value::Object(inner)) = audit.get("checks") {
        checks.extend(numbers(inner));
    }
    let not_kept = checks.iter().any(|(name, n)| name == "failures_not_kept" && *n > 0.0);
    checks.retain(|(name, _)| !name.starts_with("failures"));
    // Only a clear yes counts: an audit that does not say that it passed has not.
    let passed = audit.get("passed") == Some(&Value::Bool(true)) && failures.is_empty() && !not_kept;
    Ok(Audit { passed, checks, failures })
}

/// A failure as a sentence: a string as it is; of an object its message with who and when.
fn failure(value: &Value) -> String {
    let Value::Object(object) = value else { return shown(value) };
    let part = |name: &str| object.get(name).filter(|v| !v.is_null()).map(shown).filter(|t| !t.is_empty());
    // "link-rate: link 3 (access) at 2.5 s: a frame of ... (12 times)"
    let mut out = String::new();
    if let Some(rule) = part("rule") {
        out.push_str(&format!("{rule}: "));
    }
    let who = [part("subject"), part("name").map(|n| format!("({n})")), part("at_s").map(|t| format!("at {t} s"))];
    let who: Vec<String> = who.into_iter().flatten().collect();
    if !who.is_empty() {
        out.push_str(&format!("{}: ", who.join(" ")));
    }
    out.push_str(&part("message").or_else(|| part("reason")).unwrap_or_else(|| shorten(&value.to_string())));
    if let Some(count) = object.get("count").and_then(Value::as_u64).filter(|c| *c > 1) {
        out.push_str(&format!(" ({count} times)"));
    }
    out
}

fn read_lateness(lateness: &Map<String, Value>) -> Lateness {
    let verdict = ["trusted", "passed", "ok", "on_time"].iter().find_map(|n| lateness.get(*n).and_then(Value::as_bool));
    let reasons = lateness.get("reasons").and_then(Value::as_array);
    Lateness {
        trusted: verdict.unwrap_or(false),
        reasons: reasons.into_iter().flatten().map(shown).collect(),
        figures: lateness_in_words(lateness).unwrap_or_else(|| {
            let figures = lateness.iter().filter(|(_, v)| v.is_number() || v.is_string());
            let figures: Vec<_> = figures.map(|(n, v)| format!("{} {}", n.replace('_', " "), shown(v))).collect();
            figures.join(", ")
        }),
    }
}

/// The account that Fullpipe itself writes, as a sentence with units.
fn lateness_in_words(lateness: &Map<String, Value>) -> Option<String> {
    let figure = |value: &Value, name: &str| value.get(name).and_then(Value::as_f64);
    let own = |name: &str| lateness.get(name).and_then(Value::as_f64);
    let packets = lateness.get("packets")?;
    let micros = |name: &str| Some(fixed(figure(packets, name)? * 1e6, 0));
    let stalls = match own("stall_count")? {
        0.0 => "no stalls".to_owned(),
        n => format!("{} stalls, the longest {} ms", fixed(n, 0), fixed(own("longest_stall_s")? * 1e3, 0)),
    };
    Some(format!(
        "{} packets late by {} µs (median), {} µs (99 %), {} µs at most; {} by more than {} ms; {stalls}; own drops: {}",
        fixed(figure(packets, "count")?, 0),
        micros("p50_s")?,
        micros("p99_s")?,
        micros("max_s")?,
        fixed(figure(packets, "late")?, 0),
        trimmed(own("late_after_s")? * 1e3, 3),
        fixed(own("own_drops")?, 0),
    ))
}

fn finite(value: &Value) -> Option<f64> {
    value.as_f64().filter(|v| v.abs() <= 1e200)
}

fn numbers(object: &Map<String, Value>) -> Vec<(String, f64)> {
    object.iter().filter_map(|(name, value)| Some((name.clone(), finite(value)?))).collect()
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(list) => list.iter().map(shown).collect::<Vec<_>>().join(", "),
        Value::Object(object) => {
            object.iter().map(|(name, v)| format!("{name} {}", shown(v))).collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    }
}
