//! Tests of the plots that an evaluation suite needs (ellipses, trade-off curves, profiles, summary tables, long
//! series) and of the table of links.

use crate::records::{Folder, parse, text_of};
use std::fmt::Write;

const SVG: &str = "http://www.w3.org/2000/svg";

/// The folder of the run at a point of the fixture.
fn run_of(folder: &Folder, experiment: &str, control: &str, buffer: &str) -> String {
    let table = folder.text("results.csv");
    let start = format!("{experiment},{control},{buffer},");
    let line = table.lines().find(|line| line.starts_with(&start)).unwrap();
    format!("runs/{}", line.split(',').nth(4).unwrap())
}

fn texts(svg: &str) -> Vec<String> {
    parse(svg).descendants().filter(|n| n.has_tag_name((SVG, "text"))).map(text_of).collect()
}

/// A scale that is derived from the ticks of an axis. It maps a value to its position.
struct Ruler {
    low: (f64, f64),
    high: (f64, f64),
}

impl Ruler {
    /// Texts of horizontal ticks are centered. Texts of vertical ticks end at the axis, a third of their height below
    /// their position.
    fn of(svg: &str, anchor: &str) -> Self {
        let document = parse(svg);
        let tick = |n: roxmltree::Node<'_, '_>| {
            let value: f64 = text_of(n).parse().ok()?;
            let (place, shift) = if anchor == "end" { ("y", 13.0 * 0.35) } else { ("x", 0.0) };
            Some((value, n.attribute(place)?.parse::<f64>().ok()? - shift))
        };
        let texts = document.descendants().filter(|n| n.has_tag_name((SVG, "text")));
        let ticks: Vec<_> = texts.filter(|n| n.attribute("text-anchor") == Some(anchor)).filter_map(tick).collect();
        let by_value = |a: &&(f64, f64), b: &&(f64, f64)| a.0.total_cmp(&b.0);
        Self { low: *ticks.iter().min_by(by_value).unwrap(), high: *ticks.iter().max_by(by_value).unwrap() }
    }

    fn place(&self, value: f64) -> f64 {
        let share = (value - self.low.0) / (self.high.0 - self.low.0);
        self.low.1 + share * (self.high.1 - self.low.1)
    }
}

/// The points of all paths with a stroke of this width.
fn paths(svg: &str, width: &str) -> Vec<Vec<(f64, f64)>> {
    let points = |d: &str| {
        let pairs = d.trim_end_matches('Z').split(['M', 'L']).filter_map(|p| p.split_once(','));
        pairs.map(|(x, y)| (x.parse().unwrap(), y.parse().unwrap())).collect()
    };
    let document = parse(svg);
    let paths = document.descendants().filter(|n| n.attribute("stroke-width") == Some(width));
    // Paths of the legend are above the plot.
    let all: Vec<Vec<(f64, f64)>> = paths.filter_map(|n| n.attribute("d")).map(points).collect();
    all.into_iter().filter(|points| points.iter().any(|p| p.1 > 40.0)).collect()
}

fn extent(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::MAX, f64::MIN), |(low, high), v| (low.min(v), high.max(v)))
}

/// Three intervals of 100 ms with two samples each: means (10 ms, 4 Mbit/s), (20 ms, 6 Mbit/s), (30 ms, 5 Mbit/s).
/// Samples before the measured interval, of another link and of another metric must not count.
fn samples() -> String {
    let mut text = "time_s,subject,metric,value\n".to_owned();
    for (time, delay, rate) in [
        ("0.3", 9.0, 900e6),
        ("0.49", 9.0, 900e6),
        ("0.5", 0.005, 3e6),
        ("0.55", 0.015, 5e6),
        ("0.6", 0.02, 6e6),
        ("0.69", 0.02, 6e6),
        ("0.7", 0.04, 5e6),
        ("0.799999999", 0.02, 5e6),
    ] {
        let _ = writeln!(text, "{time},central,queue_delay_s,{delay}\n{time},central,throughput_bps,{rate}");
        let _ =
            writeln!(text, "{time},central,queue_bytes,1\n{time},other,queue_delay_s,5\n{time},other,throughput_bps,1");
    }
    // An interval in which only one of the two metrics was sampled gives no pair.
    text + "0.85,central,queue_delay_s,3\n0.85,central,throughput_bps,\n"
}

#[test]
fn ellipse_extends_by_one_standard_deviation() {
    let folder = Folder::copy_of("suite");
    for control in ["reno", "vegas"] {
        folder.write(&format!("{}/series.csv", run_of(&folder, "access", control, "50")), &samples());
    }
    let page = folder.build();
    let svg = folder.text("plots/ellipse.svg");
    let (across, upwards) = (Ruler::of(&svg, "middle"), Ruler::of(&svg, "end"));
    // The mean of 10, 20, 30 is 20, and their sample deviation is 10. For 4, 6, 5 they are 5 and 1.
    let outlines = paths(&svg, "1.6");
    assert_eq!(outlines.len(), 2);
    for outline in &outlines {
        let (left, right) = extent(outline.iter().map(|p| p.0));
        let (top, bottom) = extent(outline.iter().map(|p| p.1));
        let near = |a: f64, b: f64| (a - b).abs() < 0.1;
        // The axis is reversed: the longer delay is on the left.
        assert!(near(left, across.place(30.0)) && near(right, across.place(10.0)), "{left} {right}");
        assert!(near(top, upwards.place(6.0)) && near(bottom, upwards.place(4.0)), "{top} {bottom}");
    }
    assert!(across.place(10.0) > across.place(30.0));
    // The center has a marker and a label.
    let document = parse(&svg);
    let circle = document.descendants().find(|n| n.has_tag_name((SVG, "circle")) && n.attribute("cy") != Some("13"));
    let at = |name: &str| circle.unwrap().attribute(name).unwrap().parse::<f64>().unwrap();
    assert!((at("cx") - across.place(20.0)).abs() < 0.02 && (at("cy") - upwards.place(5.0)).abs() < 0.02);
    let small = |name: &str| {
        document.descendants().filter(|n| n.attribute("font-size") == Some("11") && text_of(*n) == name).count()
    };
    assert_eq!((small("reno"), small("vegas")), (2, 2), "a background and a text for each");
    assert!(
        texts(&svg).contains(&"Queue delay (ms)".to_owned()) && texts(&svg).contains(&"Throughput (Mbit/s)".to_owned())
    );
    assert!(page.contains("n = 3 intervals.") && page.contains("means over 100 ms (central)"));
}

#[test]
fn ellipse_of_degenerate_samples_is_a_point_or_a_line() {
    let folder = Folder::copy_of("suite");
    let write = |control: &str, pairs: &[(f64, f64)]| {
        let mut text = "time_s,subject,metric,value\n".to_owned();
        for (i, (delay, rate)) in pairs.iter().enumerate() {
            let time = 1.0 + 0.1 * i as f64;
            let _ = writeln!(text, "{time},central,queue_delay_s,{delay}\n{time},central,throughput_bps,{rate}");
        }
        folder.write(&format!("{}/series.csv", run_of(&folder, "access", control, "50")), &text);
    };
    write("reno", &[(0.01, 1e6), (0.02, 2e6), (0.03, 3e6)]);
    write("vegas", &[(0.02, 2e6)]);
    let page = folder.build();
    let svg = folder.text("plots/ellipse.svg");
    let [line, point] = &paths(&svg, "1.6")[..] else { panic!("there must be two outlines") };
    let (across, upwards) = (Ruler::of(&svg, "middle"), Ruler::of(&svg, "end"));
    let on_line = |(x, y): &(f64, f64)| {
        let share = (x - across.place(10.0)) / (across.place(30.0) - across.place(10.0));
        (y - upwards.place(1.0 + 2.0 * share)).abs() < 0.1
    };
    assert!(line.iter().all(on_line) && point.iter().all(|p| *p == point[0]));
    assert!(page.contains("A single interval has no spread and is drawn as a point."));
}

#[test]
fn ellipse_without_samples_has_a_reason() {
    let folder = Folder::copy_of("suite");
    folder.replace(
        "study.toml",
        "subject = \"central\"\nseries = [\"control\"]\nwhere = { experiment = \"access\", buffer = 50 }\nx_rev",
        "subject = \"centre\"\nx_rev",
    );
    assert!(folder.build().contains("has samples of queue_delay_s and throughput_bps of centre"));
}

#[test]
fn ellipse_excludes_invalid_runs() {
    let folder = Folder::copy_of("suite");
    let bad = run_of(&folder, "slow", "reno", "");
    folder.replace(&format!("{bad}/run.json"), "\"passed\": true", "\"passed\": false");
    // Points of both experiments together: if half of the runs are valid, only these count.
    folder.replace(
        "study.toml",
        "series = [\"control\"]\nwhere = { experiment = \"access\", buffer = 50 }\nx_rev",
        "series = [\"control\"]\nwhere = { control = \"reno\" }\nx_rev",
    );
    folder.write(
        &format!("{bad}/series.csv"),
        "time_s,subject,metric,value\n1,central,queue_delay_s,1000\n1,central,throughput_bps,1\n",
    );
    folder.build();
    assert!(
        texts(&folder.text("plots/ellipse.svg")).contains(&"Queue delay (ms)".to_owned()),
        "invalid samples of 1000 s count"
    );
}

#[test]
fn curve_follows_its_axis_and_labels_its_values() {
    let folder = Folder::copy_of("suite");
    // Three buffers that are listed out of order: 200, 10, 50.
    let mut table = folder.text("summary.csv");
    let reno = "experiment=access;control=reno;buffer=";
    let more = format!("{reno}200,throughput_bps,bit/s,1,9.8e6,,,,,,,,,\n{reno}200,queue_delay_s,s,1,0.1,,,,,,,,,\n");
    let at = table.find('\n').unwrap() + 1;
    table.insert_str(at, &more);
    folder.write("summary.csv", &table);
    let page = folder.build();
    let svg = folder.text("plots/trade-off.svg");
    let across = Ruler::of(&svg, "middle");
    let lines = paths(&svg, "1.7");
    let longest = lines.iter().max_by_key(|l| l.len()).unwrap();
    let expected = [4.0, 31.0, 100.0].map(|ms| across.place(ms));
    assert!(longest.len() == 3 && longest.iter().zip(expected).all(|(p, x)| (p.0 - x).abs() < 0.05), "{lines:?}");
    let document = parse(&svg);
    let mut labels: Vec<String> =
        document.descendants().filter(|n| n.attribute("font-size") == Some("11")).map(text_of).collect();
    labels.sort();
    labels.dedup();
    assert_eq!(labels, ["10", "200", "50"]);
    assert!(page.contains("Beside the points: buffer."));
}

#[test]
fn profile_connects_its_metrics_in_their_order() {
    let folder = Folder::copy_of("suite");
    folder.build();
    let svg = folder.text("plots/profile.svg");
    let texts = texts(&svg);
    for text in ["1 kB", "10 kB", "Size", "Response (ms)", "reno", "vegas"] {
        assert!(texts.contains(&text.to_owned()), "{text} in {texts:?}");
    }
    let lines = paths(&svg, "1.7");
    assert!(lines.len() == 2 && lines.iter().all(|l| l.len() == 2 && l[0].0 < l[1].0 && l[0].1 > l[1].1), "{lines:?}");
    // Metrics with different units cannot share an axis.
    folder.replace(
        "study.toml",
        "metrics = [\"response_1kB_s\", \"response_10kB_s\"]",
        "metrics = [\"response_1kB_s\", \"throughput_bps\"]",
    );
    assert!(folder.build().contains("the metrics have different units, s and bit/s"));
}

/// The rows of the table with this caption, each as a list of the texts of its fields.
fn rows(page: &str, caption: &str) -> Vec<Vec<String>> {
    let document = parse(page);
    let is = |n: &roxmltree::Node<'_, '_>| n.has_tag_name("caption") && text_of(*n).starts_with(caption);
    let table = document.descendants().find(is).unwrap().parent().unwrap();
    let squeeze = |text: String| text.replace(['\u{202f}', '\u{2007}', '\u{2008}'], "").replace('\u{a0}', " ");
    let fields =
        |row: roxmltree::Node<'_, '_>| row.children().filter(|c| c.is_element()).map(|c| squeeze(text_of(c))).collect();
    table.descendants().filter(|n| n.has_tag_name("tr")).map(fields).collect()
}

#[test]
fn summary_table_has_one_axis_as_rows_and_one_as_columns() {
    let folder = Folder::copy_of("suite");
    folder.replace(
        "study.toml",
        "columns = \"experiment\"",
        "columns = \"experiment\"\nwhere = { control = [\"reno\", \"vegas\"] }",
    );
    // One cell is missing, and one has an interval.
    let table = folder.text("summary.csv");
    let line = table.lines().find(|l| l.starts_with("experiment=slow;control=vegas,queue_delay_s")).unwrap();
    let changed = table.replace(&format!("{line}\n"), "");
    let line =
        table.lines().find(|l| l.starts_with("experiment=access;control=reno;buffer=10,throughput_bps")).unwrap();
    let with_interval = "experiment=access;control=reno;buffer=10,throughput_bps,bit/s,5,9100000,123000,,,,,,,,";
    folder.write("summary.csv", &changed.replace(line, with_interval));
    let page = folder.build();
    let rows = rows(&page, "All controls over all links");
    assert_eq!(rows[0], ["Congestion control", "access", "slow"]);
    // A metric has the same unit in all columns.
    assert_eq!(
        rows[1],
        [
            "Throughput (Mbit/s)",
            "Queue delay (ms)",
            "Dropped share",
            "Throughput (Mbit/s)",
            "Queue delay (ms)",
            "Dropped share",
        ]
    );
    // A group for each buffer, and one for the experiment without buffers.
    let of = |group: &str| rows.iter().position(|r| *r == [group]).unwrap();
    let ten = of("buffer 10");
    assert_eq!(rows[ten + 1], ["reno", "★ 9.10 ± 0.12", "4.000", "0.02000", "–", "–", "–"]);
    assert_eq!(rows[ten + 2], ["vegas", "8.800", "★ 3.000", "★ 0.004000", "–", "–", "–"]);
    let slow = rows.iter().rposition(|r| r[0] == "reno").unwrap();
    // No value is the best if all are equal or there is only one.
    assert_eq!(rows[slow], ["reno", "–", "–", "–", "★ 0.06300", "810.0", "0.05000"]);
    assert_eq!(rows[slow + 1], ["vegas", "–", "–", "–", "0.06100", "–", "0.05000"]);
    assert!(page.contains("★ best of its column: highest throughput, lowest queue delay, lowest dropped share."));
    assert!(!folder.0.join("plots/summary.svg").exists());
}

#[test]
fn time_plot_of_sixty_thousand_samples_keeps_their_extremes() {
    let folder = Folder::copy_of("suite");
    let mut expected = Vec::new();
    for (control, spike_ms) in [("reno", 90), ("vegas", 70)] {
        let mut text = "time_s,subject,metric,value\n".to_owned();
        for i in 0..60_000_u32 {
            let delay = if i == 31_234 { spike_ms } else { 10 + i * 7919 % 13 };
            let _ = writeln!(text, "{}.{:02},central,queue_delay_s,0.{delay:03}", i / 100, i % 100);
            let _ = writeln!(text, "{}.{:02},central,throughput_bps,1e6", i / 100, i % 100);
        }
        folder.write(&format!("{}/series.csv", run_of(&folder, "access", control, "50")), &text);
        expected.push((10.0, f64::from(spike_ms)));
    }
    folder.build();
    let svg = folder.text("plots/delay.svg");
    let (across, upwards) = (Ruler::of(&svg, "middle"), Ruler::of(&svg, "end"));
    let mut curves = paths(&svg, "0.9");
    curves.retain(|c| c.len() > 2);
    assert_eq!(curves.len(), 2);
    for (curve, (low, high)) in curves.iter().zip(expected) {
        // At most four points for each of the pixel columns, of which there are two per unit of at most 480 units.
        assert!(curve.len() <= 4 * 2 * 480, "{}", curve.len());
        let (top, bottom) = extent(curve.iter().map(|p| p.1));
        assert!(
            (top - upwards.place(high)).abs() < 0.05 && (bottom - upwards.place(low)).abs() < 0.05,
            "{top} {bottom}"
        );
        let spike = curve.iter().find(|p| (p.1 - top).abs() < 0.02).unwrap();
        assert!((spike.0 - across.place(312.34)).abs() < 0.05, "{spike:?}");
        // Each column spans all values: 10 to 22 ms repeat every 13 samples, and a column has 70 samples.
        let columns = curve.chunk_by(|a, b| (a.0 * 2.0).floor() == (b.0 * 2.0).floor());
        for column in columns.filter(|c| c.len() == 4) {
            let (top, bottom) = extent(column.iter().map(|p| p.1));
            assert!(top - 0.05 <= upwards.place(22.0) && (bottom - upwards.place(low)).abs() < 0.05, "{column:?}");
        }
    }
    // A part of the time, with means over one second: 13 values and 100 samples, so every mean is near 16.
    folder.replace(
        "study.toml",
        "y = \"queue_delay_s\"\nsubject",
        "y = \"queue_delay_s\"\ngroup = \"1s\"\nx_min = 100\nx_max = 110\nsubject",
    );
    assert!(folder.build().contains("Means over 1 s."));
    let svg = folder.text("plots/delay.svg");
    let upwards = Ruler::of(&svg, "end");
    for curve in paths(&svg, "1.4").iter().filter(|c| c.len() > 2) {
        // Ten seconds plus one at each end.
        assert_eq!(curve.len(), 12);
        assert!(curve.iter().all(|p| p.1 < upwards.place(15.0) && p.1 > upwards.place(17.0)), "{curve:?}");
    }
}

#[test]
fn table_of_links_has_means_over_the_runs_of_each_point() {
    let folder = Folder::copy_of("suite");
    // A second run at a point: the values are averaged.
    let table = folder.text("results.csv");
    let line = table.lines().find(|l| l.starts_with("slow,reno")).unwrap();
    let key = line.split(',').nth(4).unwrap();
    folder.write("results.csv", &table.replace(line, &format!("{line}\n{}", line.replace(key, "second"))));
    let first = run_of(&folder, "slow", "reno", "");
    std::fs::create_dir(folder.0.join("runs/second")).unwrap();
    folder.write("runs/second/run.json", &folder.text(&format!("{first}/run.json")).replace(key, "second"));
    let links = folder.text(&format!("{first}/links.csv"));
    let header = links.lines().next().unwrap();
    // 0.05 and 0.15 of the arrivals: 10 %. 63 and 61 kbit/s: 62. 810 and 790 ms: 800. 2430 and 2370: 2400.
    let second = "central,0.5,2,1.5,0,0,1,1,1,1,0,0,0.15,0.002,61000,0.5,0.79,,2.37,1,1";
    folder.write("runs/second/links.csv", &format!("{header}\n{second}\n"));
    let page = folder.build();
    let rows = rows(&page, "What measured links carried");
    assert_eq!(
        rows[0][3..],
        [
            "Link",
            "Throughput (Mbit/s)",
            "Utilisation (%)",
            "Mean queue delay (ms)",
            "99 % queue delay (s)",
            "Dropped (%)",
            "Marked (%)",
            "Runs",
        ]
    );
    let find = |start: [&str; 4]| rows.iter().find(|r| r[..4] == start).unwrap()[4..].to_vec();
    // 63 / 64 is 98.4375 %; the mean with 50 % is half of 148.4375 %.
    assert_eq!(find(["slow", "reno", "", "central"]), ["0.06200", "74.22", "800.0", "2.400", "10", "0.1", "2"]);
    assert_eq!(find(["access", "vegas", "50", "central"]), ["9.300", "93", "8.500", "0.02550", "0", "0", "1"]);
    // A value that a link does not have is not shown as zero.
    assert_eq!(find(["access", "reno", "10", "central.reverse"])[2..], ["–", "–", "–", "–", "1"]);
    assert!(page.contains("are of the time from 0.5 s on"));
    // Without measured links there is no such table.
    assert!(!Folder::copy_of("study").build().contains("What measured links carried"));
}

#[test]
fn texts_of_a_study_render_code() {
    let page = Folder::copy_of("suite").build();
    assert!(page.contains("<code>run.json</code> says since when"), "description");
    assert!(page.contains("shorter queue (<code>queue_delay_s</code>)."), "claim");
    assert!(page.contains("not all of the study&#39;s points were run"), "note");
    assert!(page.contains("Compared with: A study made up for tests"));
}

#[test]
fn keys_of_plot_kinds_are_checked() {
    for (old, new, expected) in [
        ("group = \"200ms\"", "group = \"200\"", "plot.1.group = \"200\" has no unit"),
        ("scaling = \"n3\"", "scaling = \"ns3\"", "did you mean \"n3\"? (expected \"sigma\" or \"n3\")"),
        ("drop_ratio = \"low\" }", "drop_ratio = \"least\" }", "expected \"high\" or \"low\""),
    ] {
        let folder = Folder::copy_of("suite");
        folder.replace("study.toml", old, new);
        let error = fullpipe_report::write_report(&folder.0).unwrap_err().to_string();
        assert!(error.contains("study.toml") && error.contains(expected), "{error}");
    }
    for (old, new, expected) in [
        ("along = \"buffer\"\n", "", "the plot needs <code>along</code>"),
        ("rows = \"control\"\n", "", "the table needs <code>rows</code>"),
        ("rows = \"control\"\n", "rows = \"colour\"\n", "by colour and experiment"),
        ("metrics = [\"response_1kB_s\", \"response_10kB_s\"]\n", "", "the plot needs <code>metrics</code>"),
        ("subject = \"central\"\ngroup", "group", "and <code>subject</code> (a flow or link)"),
    ] {
        let folder = Folder::copy_of("suite");
        folder.replace("study.toml", old, new);
        let page = folder.build();
        assert!(page.contains(expected), "{expected}");
    }
}
