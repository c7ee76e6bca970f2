//! Writes a study out with nothing left to defaults, scenarios and published values included: the `study.toml` of a folder
//! of records. It is a study file itself: running it repeats the study.

use crate::published::point_label;
use crate::study::{Experiment, LateRuns, Level, Seeds, Setting, Study};
use fullpipe_scenario::schema::Node;
use fullpipe_scenario::schema::node::{quote, quote_key};

/// First line of every `study.toml` among records; a folder without it is not ours.
pub const FIRST_LINE: &str =
    "# The records of a Fullpipe study: this file says what was run, with every default written out.";

/// The study as text; `build` made, or will make, its records.
pub fn resolved(study: &Study, build: &str) -> String {
    let mut text = format!("{FIRST_LINE}\n");
    let mut line = |key: &str, value: String| text.push_str(&format!("{key} = {value}\n"));
    line("name", quote(&study.name));
    line("title", quote(&study.title));
    line("source", quote(&study.source));
    line("description", quote(&study.description));
    line("seed", study.seeds.number().to_string());
    if matches!(study.seeds, Seeds::Exactly(_)) {
        line("exact_seed", "true".to_owned());
    }
    line("clock", quote("virtual"));
    line("experiments", list(&study.selected));
    line("quick", study.quick.to_string());
    line("build", quote(build));
    for (name, source) in &study.scenarios {
        text.push_str(&format!("\n[scenarios.{}]\norigin = {}\n", quote_key(name), quote(&source.origin)));
        text.push_str(&format!("text = {}\n", long_text(&source.text)));
    }
    for parameter in &study.parameters {
        text.push_str(&format!("\n[parameters.{}]\n", quote_key(&parameter.name)));
        if let Some(value) = &parameter.value {
            text.push_str(&format!("default = {}\n", value.to_toml()));
        }
        if let Some(quick) = &parameter.quick {
            text.push_str(&format!("quick = {}\n", quick.to_toml()));
        }
        text.push_str(&format!("text = {}\npaths = {}\n", quote(&parameter.text), list(&parameter.paths)));
        text.push_str(&format!("scenarios = {}\n", list(&parameter.scenarios)));
    }
    for (scenario, setting) in &study.scenario_settings {
        text.push_str(&format!(
            "\n[[scenario_setting]]\nscenario = {}\npath = {}\nvalue = {}\n",
            quote(scenario),
            quote(&setting.path),
            setting.value.to_toml()
        ));
    }
    for left_out in &study.left_out {
        text.push_str(&format!(
            "\n[[left_out]]\nexperiment = {}\naxis = {}\nvalues = {}\n",
            quote(&left_out.experiment),
            quote(&left_out.axis),
            list(&left_out.values)
        ));
    }
    for experiment in &study.experiments {
        write_experiment(experiment, &mut text);
    }
    for name in study.axis_names() {
        let axes = || study.experiments.iter().flat_map(|experiment| &experiment.axes).filter(|axis| axis.name == name);
        let mut values: Vec<String> = Vec::new();
        for level in axes().flat_map(|axis| &axis.levels) {
            if !values.contains(&level.label) {
                values.push(level.label.clone());
            }
        }
        let words = axes().map(|axis| axis.text.as_str()).find(|text| !text.is_empty()).unwrap_or("");
        text.push_str(&format!(
            "\n[[axis]]\nname = {}\ntext = {}\nvalues = {}\n",
            quote(name),
            quote(words),
            list(&values)
        ));
    }
    for metric in &study.metrics {
        text.push_str(&format!(
            "\n[[metric]]\nname = {}\nunit = {}\ntext = {}\nexpression = {}\nexperiments = {}\n",
            quote(&metric.name),
            quote(&metric.unit),
            quote(&metric.text),
            quote(metric.expression.text()),
            list(&metric.experiments)
        ));
    }
    for plot in &study.plots {
        text.push_str(&format!("\n[[plot]]\nname = {}\n", quote(&plot.name)));
        for (key, value) in &plot.keys {
            text.push_str(&format!("{} = {}\n", quote_key(key), value.to_toml()));
        }
    }
    for claim in &study.claims {
        text.push_str(&format!(
            "\n[[claim]]\nname = {}\ntext = {}\nsource = {}\nexpression = {}\nexplained_by = {}\n",
            quote(&claim.name),
            quote(&claim.text),
            quote(&claim.source),
            quote(claim.expression.text()),
            quote(&claim.explained_by)
        ));
    }
    for row in present(study) {
        text.push_str(&format!(
            "\n[[published]]\nexperiment = {}\npoint = {}\nmetric = {}\nvalue = {:?}\ntolerance = {}\nsource = {}\nnote = {}\n\
             explained_by = {}\n",
            quote(&row.experiment),
            quote(&row.point),
            quote(&row.metric),
            row.value,
            quote(&row.tolerance.to_string()),
            quote(&row.source),
            quote(&row.note),
            quote(&row.explained_by)
        ));
    }
    if study.published.is_empty() || present(study).next().is_none() {
        // So that a published.csv that happens to lie beside the records is not read.
        let at = text.find("\n[").unwrap_or(text.len());
        text.insert_str(at, "published = []\n");
    }
    text
}

/// Published values whose points are still there after the user's settings.
fn present(study: &Study) -> impl Iterator<Item = &crate::study::Published> {
    study.published.iter().filter(|row| {
        study.experiment(&row.experiment).is_some_and(|experiment| {
            experiment.combinations().iter().any(|levels| point_label(experiment, levels) == row.point)
        })
    })
}

fn write_experiment(experiment: &Experiment, text: &mut String) {
    text.push_str(&format!(
        "\n[[experiment]]\nname = {}\nscenario = {}\ntext = {}\nruns = {}\n",
        quote(&experiment.name),
        quote(&experiment.scenario),
        quote(&experiment.text),
        experiment.runs
    ));
    if let Some(quick_runs) = experiment.quick_runs {
        text.push_str(&format!("quick_runs = {quick_runs}\n"));
    }
    if experiment.late_runs == LateRuns::Count {
        text.push_str("late_runs = \"count\"\n");
    }
    text.push_str(&format!("set = {}\n", settings(&experiment.set)));
    if !experiment.quick_set.is_empty() {
        text.push_str(&format!("quick_set = {}\n", settings(&experiment.quick_set)));
    }
    for (key, points) in [("points", &experiment.points), ("quick_points", &experiment.quick_points)] {
        if let Some(points) = points {
            text.push_str(&format!("{key} = [\n"));
            for point in points {
                let pairs: Vec<String> = experiment
                    .axes
                    .iter()
                    .zip(point)
                    .map(|(axis, level)| format!("{} = {}", quote_key(&axis.name), plain(&axis.levels[*level])))
                    .collect();
                text.push_str(&format!("  {{ {} }},\n", pairs.join(", ")));
            }
            text.push_str("]\n");
        }
    }
    for axis in &experiment.axes {
        let values: Vec<String> = axis.levels.iter().map(level).collect();
        text.push_str(&format!(
            "\n[[experiment.axis]]\nname = {}\ntext = {}\npaths = {}\nvalues = [{}]\n",
            quote(&axis.name),
            quote(&axis.text),
            list(&axis.paths),
            values.join(", ")
        ));
        if let Some(quick) = &axis.quick {
            let values: Vec<String> =
                axis.levels.iter().filter(|level| quick.contains(&level.label)).map(plain).collect();
            text.push_str(&format!("quick = [{}]\n", values.join(", ")));
        }
    }
}

/// A level where its label is enough.
fn plain(level: &Level) -> String {
    match &level.value {
        Some(value) if is_plain(level, value) => value.to_toml(),
        _ => quote(&level.label),
    }
}

fn is_plain(level: &Level, value: &Node) -> bool {
    level.set.is_empty() && crate::level::level_of(value).is_ok_and(|plain| plain.label == level.label)
}

fn level(level: &Level) -> String {
    match &level.value {
        Some(value) if is_plain(level, value) => value.to_toml(),
        value => {
            let value = value.as_ref().map_or_else(String::new, |value| format!(", value = {}", value.to_toml()));
            let set = if level.set.is_empty() { String::new() } else { format!(", set = {}", settings(&level.set)) };
            format!("{{ label = {}{value}{set} }}", quote(&level.label))
        }
    }
}

fn settings(settings: &[Setting]) -> String {
    if settings.is_empty() {
        return "{}".to_owned();
    }
    let pairs: Vec<String> =
        settings.iter().map(|setting| format!("{} = {}", quote(&setting.path), setting.value.to_toml())).collect();
    format!("{{ {} }}", pairs.join(", "))
}

fn list(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| quote(name)).collect();
    format!("[{}]", names.join(", "))
}

/// A text of several lines, readable if it can be.
fn long_text(text: &str) -> String {
    let plain = text.chars().all(|c| c == '\n' || c == '\t' || !c.is_control());
    if plain && text.contains('\n') && !text.contains("'''") && !text.ends_with('\'') {
        format!("'''\n{text}'''")
    } else {
        quote(text)
    }
}
