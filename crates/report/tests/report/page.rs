//! Tests of the content of the page, for the records of the fixtures and for records with special properties.

use crate::records::{Folder, parse, text_of};
use fullpipe_archive::json::JsonValue;
use fullpipe_archive::{LatenessRecord, LatenessSpread};
use std::fs;

/// Numbers in the page, without the spaces for groups and alignment.
fn squeezed(text: &str) -> String {
    text.chars().filter(|c| !['\u{202f}', '\u{2007}', '\u{2008}'].contains(c)).collect()
}

/// The rows of all tables, each as a list of the texts of its fields.
fn rows(page: &str) -> Vec<Vec<String>> {
    let document = parse(page);
    let row =
        |r: roxmltree::Node<'_, '_>| r.children().filter(|c| c.is_element()).map(|c| squeezed(&text_of(c))).collect();
    document.descendants().filter(|n| n.has_tag_name("tr")).map(row).collect()
}

#[test]
fn every_published_value_is_in_the_row_of_a_measured_one() {
    let folder = Folder::copy_of("study");
    let rows = rows(&folder.build());
    let table = csv::Reader::from_path(folder.0.join("summary.csv"))
        .unwrap()
        .into_records()
        .map(Result::unwrap)
        .collect::<Vec<_>>();
    let mut seen = 0;
    for record in table.iter().filter(|r| !r[9].is_empty()) {
        // Transport (udp or tcp), packets, and the published value in the unit of its group.
        let point: Vec<&str> = record[0].split([';', '=']).collect();
        let scale = match &record[1] {
            "mean_delay_s" => 1e3,
            "mean_jitter_s" => 1e6,
            _ => 1.0,
        };
        let published = format!("{:.7}", record[9].parse::<f64>().unwrap() * scale);
        let published = published.trim_end_matches('0').trim_end_matches('.');
        // In the table of its experiment: packets, draw, published.
        let found = rows.iter().any(|row| {
            row.len() > 6
                && row[0] == point[3]
                && row[1] == point[5]
                && row[2] == published
                && row.contains(&record[11].to_owned())
        });
        assert!(found, "{record:?} as {published}");
        seen += 1;
    }
    // 10 sizes, 2 transports and 4 metrics.
    assert_eq!(seen, 80);
}

#[test]
fn differences_are_measured_minus_published() {
    let folder = Folder::copy_of("study");
    let table = folder.text("summary.csv");
    let line = |start: &str| table.lines().find(|l| l.starts_with(start)).unwrap().to_owned();
    let jitter = line("experiment=tcp;packets=10000;draw=published,mean_jitter_s");
    let received = line("experiment=tcp;packets=90000;draw=published,rx_packets");
    // (18 - 15) / 15 = 20 %. 26337 - 26338 = -1 if the tolerance is in packets.
    let changed = "experiment=tcp;packets=10000;draw=published,mean_jitter_s,s,3,18e-6,1e-7,,,,15e-6,10%,differs,,";
    folder.replace("summary.csv", &jitter, changed);
    let changed = "experiment=tcp;packets=90000;draw=published,rx_packets,packets,3,26337,0,,,,26338,0,differs,,";
    folder.replace("summary.csv", &received, changed);
    let rows = rows(&folder.build());
    let find = |published: &str| rows.iter().find(|r| r.get(3).is_some_and(|f| f == published)).unwrap()[4..9].to_vec();
    assert_eq!(find("15"), ["18.00", "0.10", "3", "+20.0 %", "10 %"]);
    assert_eq!(find("26338"), ["26337", "0", "3", "−1", "0"]);
}

#[test]
fn every_claim_has_its_text_verdict_and_note() {
    let folder = Folder::copy_of("study");
    let rows = rows(&folder.build());
    let refuted = rows
        .iter()
        .find(|r| r.len() > 2 && r[0].starts_with("The size of the application's writes has no effect."))
        .unwrap();
    assert_eq!(
        refuted[1..],
        ["refuted", "30", "Tso 2021, section 5", "64 KiB writes fill the link: run write-size=64KiB, full duplex"]
    );
    let claims: Vec<&str> =
        rows.iter().filter(|r| r.get(3).is_some_and(|s| s == "Tso 2021, section 5")).map(|r| r[1].as_str()).collect();
    assert_eq!(claims, ["match", "match", "match", "match", "refuted", "explained"]);
    let udp = rows.iter().find(|r| r.len() > 2 && r[0].starts_with("UDP's throughput is about twice")).unwrap();
    assert!(udp[0].contains("> 1.8 * metric("), "{udp:?}");
}

#[test]
fn claims_and_plots_of_experiments_that_were_not_selected_are_counted() {
    let folder = Folder::copy_of("study");
    folder.replace("study.toml", "experiments = [\"udp\", \"tcp\"]", "experiments = [\"udp\"]");
    let of_tcp = "[[claim]]\nname = \"of-tcp\"\ntext = \"A claim on TCP alone.\"\nexpression = \"metric('tcp', 'mean_jitter_s') > 1\"\n";
    folder.replace(
        "study.toml",
        "[[claim]]\nname = \"udp-twice-tcp\"",
        &format!("{of_tcp}\n[[claim]]\nname = \"udp-twice-tcp\""),
    );
    let summary = std::fs::read_to_string(folder.0.join("summary.csv")).unwrap();
    let first = summary.lines().find(|line| line.contains("claim:udp-loses")).unwrap();
    let commas = ",".repeat(summary.lines().next().unwrap().matches(',').count() - 1);
    folder.replace("summary.csv", first, &format!("{first}\n,claim:of-tcp{commas}"));
    let plot = "[[plot]]\nname = \"of-tcp\"\nkind = \"table\"\nmetrics = [\"mean_jitter_s\"]\nrows = \"packets\"\nwhere = { experiment = \"tcp\" }\n";
    folder.replace("study.toml", "[[claim]]\nname = \"of-tcp\"", &format!("{plot}\n[[claim]]\nname = \"of-tcp\""));
    let page = folder.build();
    assert!(!rows(&page).iter().any(|row| row[0].starts_with("A claim on TCP alone")));
    assert!(page.contains("1 plot of experiments that were not selected."));
    assert!(!page.contains("id=\"plot-of-tcp\""));
    assert!(page.contains("1 claim on experiments that were not selected."));
    assert!(!page.contains("no verdict"));
}

#[test]
fn note_does_not_repeat_its_claim() {
    let folder = Folder::copy_of("study");
    let note = "\"The size of the application's writes has no effect.; no: see run 7\"";
    folder.replace("summary.csv", "\"64 KiB writes fill the link: run write-size=64KiB, full duplex\"", note);
    let rows = rows(&folder.build());
    let claim = rows.iter().find(|r| r.len() > 2 && r[0].starts_with("The size of the application")).unwrap();
    assert_eq!(claim[4], "no: see run 7");
}

#[test]
fn results_have_a_row_per_point_with_mean_and_interval() {
    let folder = Folder::copy_of("study");
    // The two significant digits of 0.123 are 0.12, so the mean has two decimals. The other metric is unchanged.
    let table = folder.text("summary.csv");
    let line =
        table.lines().find(|l| l.starts_with("experiment=udp;packets=50000;draw=random,throughput_mibps")).unwrap();
    let changed = "experiment=udp;packets=50000;draw=random,throughput_mibps,Mibit/s,30,779.2345,0.123,1,2,3,,,,,";
    folder.replace("summary.csv", line, changed);
    let rows = rows(&folder.build());
    let row =
        rows.iter().find(|r| r.len() == 7 && r[0] == "50000" && r[1] == "random" && r[3] == "779.23 ± 0.12").unwrap();
    assert_eq!(row[6], "30");
    // 40 points in two experiments.
    assert_eq!(rows.iter().filter(|r| r.len() == 7 && (r[1] == "random" || r[1] == "published")).count(), 40);
}

#[test]
fn page_loads_no_resource_and_runs_no_script() {
    for fixture in ["study", "run", "suite"] {
        let page = Folder::copy_of(fixture).build();
        let document = parse(&page);
        for node in document.descendants().filter(|n| n.is_element()) {
            let name = node.tag_name().name();
            assert!(
                !["script", "link", "iframe", "img", "object", "embed", "image", "foreignObject"].contains(&name),
                "{name}"
            );
            for attribute in node.attributes() {
                assert!(!attribute.name().starts_with("on") && attribute.name() != "src", "{attribute:?}");
                if attribute.name() == "href" && name != "a" {
                    assert!(attribute.value().starts_with('#'), "{attribute:?}");
                }
            }
        }
        assert!(!page.contains("@import") && !page.contains("url(h") && page.contains("default-src 'none'"));
    }
}

#[test]
fn ids_are_unique_and_headings_have_scope() {
    let page = Folder::copy_of("study").build();
    let document = parse(&page);
    let mut ids: Vec<&str> = document.descendants().filter_map(|n| n.attribute("id")).collect();
    let all = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), all);
    for link in document.descendants().filter_map(|n| n.attribute("href")).filter_map(|h| h.strip_prefix('#')) {
        assert!(ids.contains(&link), "nothing at #{link}");
    }
    assert!(document.descendants().filter(|n| n.has_tag_name("th")).all(|n| n.attribute("scope").is_some()));
    for picture in document.descendants().filter(|n| n.attribute("role") == Some("img")) {
        let first: Vec<_> = picture.children().filter(|n| n.is_element()).take(2).collect();
        assert!(first[0].has_tag_name(("http://www.w3.org/2000/svg", "title")) && !text_of(first[0]).is_empty());
        assert!(first[1].has_tag_name(("http://www.w3.org/2000/svg", "desc")) && !text_of(first[1]).is_empty());
    }
}

#[test]
fn hostile_names_are_escaped() {
    let evil = "</title></style><script>alert(1)</script><b onclick=\"x\">'&amp;\u{0}";
    let quoted = evil.replace('"', "\"\"");
    let folder = Folder::copy_of("study");
    let toml = format!("'''{}'''", evil.replace('\u{0}', ""));
    for old in [
        "\"TCP versus UDP over a shared Ethernet\"",
        "\"Throughput over packets offered\"",
        "\"Packets offered\"",
        "\"half\"",
        "\"UDP loses packets (35 to 77 %), TCP none.\"",
        "\"Throughput\"",
        "\"Constant-rate UDP, a 1472 B payload each 2 µs.\"",
    ] {
        folder.replace("study.toml", old, &toml);
    }
    folder.replace("summary.csv", "Tso 2021, table 2", &quoted.replace(',', ""));
    folder.replace("summary.csv", "draw=random", &format!("draw={}", evil.replace(['=', ';', '"', ','], "")));
    folder.replace("summary.csv", "claim:udp-loses", "claim:<script>");
    folder.replace("summary.csv", "Mibit/s", "<script>");
    let key =
        folder.records().iter().find_map(|r| r.strip_prefix("runs/")?.split('/').next().map(str::to_owned)).unwrap();
    folder.replace(&format!("runs/{key}/run.json"), "0.1.0+5f1c2a90d3e4", "<script>build</script>");
    folder.replace(
        &format!("runs/{key}/run.json"),
        "\"failures\": []",
        "\"failures\": [\"<script>late</script>\", \"<script>\"]",
    );
    let page = folder.build();
    let document = parse(&page);
    assert!(
        document.descendants().all(|n| !n.has_tag_name("script") && !n.has_tag_name("b") || n.attributes().len() == 0)
    );
    assert!(document.descendants().all(|n| n.tag_name().name() != "script"));
    let title = document.descendants().find(|n| n.has_tag_name("title")).unwrap();
    assert_eq!(text_of(title), evil.replace('\u{0}', ""));
    assert!(text_of(document.root()).contains("<script>build</script>"));
    assert!(text_of(document.root()).contains("audit: <script>late</script>"));
    for file in fs::read_dir(folder.0.join("plots")).unwrap() {
        let path = file.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        // The data files of plots are not markup.
        if path.extension().is_some_and(|ending| ending == "csv") {
            continue;
        }
        assert!(parse(&text).descendants().all(|n| n.tag_name().name() != "script"));
    }
}

#[test]
fn failed_audit_is_reported_in_banner_and_validity() {
    let folder = Folder::copy_of("study");
    let key =
        folder.records().iter().find_map(|r| r.strip_prefix("runs/")?.split('/').next().map(str::to_owned)).unwrap();
    let failure = r#""failures": ["link-rate: link 0 (segment) at 2.5 s: too fast (3 times)"]"#;
    folder.replace(&format!("runs/{key}/run.json"), "\"failures\": []", failure);
    let built = fullpipe_report::write_report(&folder.0).unwrap();
    let reason = "audit: link-rate: link 0 (segment) at 2.5 s: too fast (3 times)";
    assert_eq!(built.distrust, [format!("run {key}: {reason}")]);
    let page = folder.text("report.html");
    assert!(page.contains("Not to be trusted.</strong> 1 run of 2 is not valid"), "banner");
    assert_eq!(page.matches(reason).count(), 2, "in the banner and in the section on validity");
    assert!(rows(&page).iter().any(|r| r[0] == key[..12] && r.contains(&"✗ failed".to_owned())));
    assert!(page.contains("1 of 2 runs passed, 1 failed."));
}

#[test]
fn repeated_reason_of_a_run_is_reported_once() {
    let folder = Folder::copy_of("run");
    let file = "runs/c0ffee0123456789abcdef01/run.json";
    folder.replace(file, "\"failures\": []", "\"failures\": [\"too fast\"]");
    folder.replace(file, "\"distrust\": []", "\"distrust\": [\"audit: too fast\"]");
    assert_eq!(
        fullpipe_report::write_report(&folder.0).unwrap().distrust,
        ["run c0ffee0123456789abcdef01: audit: too fast"]
    );
}

#[test]
fn audit_without_an_explicit_pass_has_failed() {
    let file = "runs/c0ffee0123456789abcdef01/run.json";
    for (old, new) in
        [("\"passed\": true", "\"passed\": false"), ("\"failures_not_kept\": 0", "\"failures_not_kept\": 3")]
    {
        let folder = Folder::copy_of("run");
        folder.replace(file, old, new);
        let built = fullpipe_report::write_report(&folder.0).unwrap();
        assert_eq!(built.distrust, ["run c0ffee0123456789abcdef01: the audit failed"], "{new}");
        let page = folder.text("report.html");
        assert!(page.contains("0 of 1 runs passed, 1 failed.") && !page.contains("✓ passed"), "{new}");
    }
    // Neither passed nor failed: no page is written that could suggest a pass.
    for (old, new, expected) in [
        ("\"passed\": true", "\"passed\": \"yes\"", "`audit.passed`: expected a boolean, found \"yes\""),
        ("\"passed\": true,", "", "has no `audit.passed`"),
        ("\"audit\": {", "\"audits\": {", "has no `audit`"),
    ] {
        let folder = Folder::copy_of("run");
        folder.replace(file, old, new);
        let error = match fullpipe_report::write_report(&folder.0) {
            Ok(_) => panic!("{new} was accepted"),
            Err(error) => error.to_string(),
        };
        assert!(error.contains(file) && error.contains(expected), "{error} is not: {expected}");
    }
}

/// Replaces the clock of the run `KEY` by the lateness record of a real run.
fn set_lateness(folder: &Folder, key: &str, lateness: &LatenessRecord) {
    let lateness = lateness.to_json().unwrap();
    let late = format!("\"clock\": \"real\", \"lateness\": {lateness}");
    let file = format!("runs/{key}/run.json");
    if folder.text(&file).contains("\"lateness\": null,") {
        folder.replace(&file, "\"lateness\": null,", "");
    }
    folder.replace(&file, "\"clock\": \"virtual\"", &late);
}

#[test]
fn late_run_is_reported_as_fell_behind() {
    let folder = Folder::copy_of("run");
    let packets = LatenessSpread { count: 5, late: 2, p99_s: 0.004, ..LatenessSpread::default() };
    let lateness = LatenessRecord { packets, late_after_s: 0.001, ..LatenessRecord::default() };
    set_lateness(&folder, "c0ffee0123456789abcdef01", &lateness);
    let built = fullpipe_report::write_report(&folder.0).unwrap();
    assert_eq!(built.distrust.len(), 1);
    let reason = "run c0ffee0123456789abcdef01: fell behind real time: 5 packets late by 0 µs (median), 4000 µs (99 %)";
    let found = built.distrust[0].replace(['\u{a0}', '\u{202f}', '\u{2009}'], " ");
    assert!(found.starts_with(reason), "{found}");
    let page = folder.text("report.html");
    assert!(page.contains("✗ fell behind; 5 packets late") && page.contains("do not repeat to the bit"));
}

#[test]
fn lateness_has_units_and_reasons() {
    let folder = Folder::copy_of("run");
    let packets = LatenessSpread {
        count: 30853,
        late: 889,
        p50_s: 1.4e-05,
        p99_s: 0.003109,
        max_s: 0.008749,
        ..LatenessSpread::default()
    };
    let lateness = LatenessRecord {
        reasons: vec!["the emulator stalled 1 time".to_owned()],
        stall_count: 1,
        longest_stall_s: 0.0504,
        own_drops: 3,
        late_after_s: 0.001,
        packets,
        ..LatenessRecord::default()
    };
    set_lateness(&folder, "c0ffee0123456789abcdef01", &lateness);
    let built = fullpipe_report::write_report(&folder.0).unwrap();
    let banner = "run c0ffee0123456789abcdef01: fell behind real time: the emulator stalled 1 time";
    assert_eq!(built.distrust, [banner]);
    let page = folder.text("report.html").replace(['\u{a0}', '\u{202f}', '\u{2009}'], " ");
    let told = "✗ fell behind; 30 853 packets late by 14 µs (median), 3109 µs (99 %), 8749 µs at most; 889 by more than 1 ms; \
                1 stalls, the longest 50 ms; own drops: 3";
    assert!(page.contains(told), "{page}");
}

#[test]
fn results_of_untrusted_runs_are_marked_in_verdict_table_and_plot() {
    let folder = Folder::copy_of("study");
    let text = folder.text("summary.csv");
    let line = text.lines().find(|line| line.contains(",match,")).unwrap().to_owned();
    folder.replace("summary.csv", &line, &line.replace(",match,", ",untrusted,"));
    for key in ["9285573e1797ab80b1171e14", "9ec2be3121ca496abab17bb0"] {
        set_lateness(&folder, key, &LatenessRecord::default());
    }
    fullpipe_report::write_report(&folder.0).unwrap();
    let page = squeezed(&folder.text("report.html"));
    assert!(page.contains("<use href=\"#v-untrusted\"/></svg>untrusted</span>"), "no verdict");
    assert!(page.contains("fewer than half of its runs are left"), "no sentence");
    assert!(page.contains("1, none to be trusted"), "no mark in the table");
    assert!(page.contains("runs behind this plot are not valid"), "no caption");
}

#[test]
fn run_shared_by_several_points_counts_once() {
    let folder = Folder::copy_of("study");
    let table = folder.text("results.csv");
    let line = table.lines().find(|l| l.starts_with("udp,100000,published")).unwrap();
    folder.write("results.csv", &format!("{table}{}\n", line.replace("published", "random")));
    assert!(squeezed(&folder.build()).contains("<dd>2 runs at 3 points</dd>"));
}

#[test]
fn caption_of_a_quick_study_is_that_of_the_whole_study() {
    let folder = Folder::copy_of("study");
    folder.replace("study.toml", "y = \"mean_jitter_s\"", "y = \"mean_jitter_s\"\ncaption = \"Means of 30 runs.\"");
    assert!(!folder.build().contains("Caption of the whole study"));
    folder.replace("study.toml", "quick = false", "quick = true");
    assert!(folder.build().contains("Caption of the whole study: Means of 30 runs. In this quick run: "));
}

#[test]
fn deterministic_point_is_marked_beside_points_with_several_runs() {
    let folder = Folder::copy_of("study");
    let run = folder.text("runs/9285573e1797ab80b1171e14/run.json");
    let page = folder.build();
    assert!(!page.contains("(deterministic)"));
    folder.write("runs/9285573e1797ab80b1171e14/run.json", &run.replacen("{", "{\n  \"random_streams\": {},", 1));
    let page = folder.build();
    // The run of 100 000 packets with the published seed draws nothing; the run by TCP may.
    assert_eq!(page.matches("1 (deterministic)").count(), 1);
    assert!(page.contains("a deterministic point draws no random numbers, so one run is exact"));
}

#[test]
fn quick_study_has_a_banner() {
    let folder = Folder::copy_of("study");
    assert!(!folder.build().contains("Quick run."));
    folder.replace("study.toml", "quick = false", "quick = true");
    assert!(folder.build().contains("Quick run."));
}

#[test]
fn single_run_has_its_flows_and_a_plot_for_each_metric() {
    let folder = Folder::copy_of("run");
    let built = fullpipe_report::write_report(&folder.0).unwrap();
    let names: Vec<_> = built.plots.iter().map(|p| p.file_name().unwrap().to_string_lossy().into_owned()).collect();
    assert_eq!(names, ["cwnd-bytes.svg", "queue-bytes.svg", "srtt-s.svg"]);
    let rows = rows(&folder.text("report.html"));
    // The first screen has both directions in one row: 46.902 Mbit/s, 26 ms and 22 lost packets; 840.6 kbit/s and no
    // lost packets.
    let first = rows.iter().find(|r| r[0] == "bulk.2").unwrap();
    assert_eq!(first[1..], ["left → right", "tcp, cubic", "46.9 Mbit/s", "26.00 ms", "22", "840.6 kbit/s", "0"]);
    let flow = rows.iter().find(|r| r[0] == "bulk.2" && r.len() == 10).unwrap();
    // 6299.54 s over 242 290 packets are 26.0000 ms; 46.902 Mbit/s.
    assert_eq!((flow[6].as_str(), flow[8].as_str(), flow[9].as_str()), ("46.9 Mbit/s", "26", "51.59"));
    // Each direction has a row in both tables: its performance, and its counters.
    assert_eq!(rows.iter().filter(|r| r[0].starts_with("bulk.")).count(), 2 + 2 * 4);
}

#[test]
fn table_of_flows_has_both_directions_with_the_main_one_first() {
    let folder = Folder::copy_of("run");
    // The second flow is treated as a download.
    let file = "runs/c0ffee0123456789abcdef01/flows.csv";
    let text = folder.text(file);
    let swapped = text.lines().map(|line| match line {
        line if line.starts_with("bulk.2.reverse,") => format!("{},1,,,\n", line.strip_suffix(",0,,,").unwrap()),
        line if line.starts_with("bulk.2,") => format!("{},0,,,\n", line.strip_suffix(",1,,,").unwrap()),
        line => format!("{line}\n"),
    });
    folder.write(file, &swapped.collect::<String>());
    let rows = rows(&folder.build());
    let flows: Vec<[&str; 2]> = rows
        .iter()
        .filter(|row| row[0].starts_with("bulk.") && row.len() == 10)
        .map(|row| [row[0].as_str(), row[3].as_str()])
        .collect();
    let expected =
        [["bulk.1", "main"], ["bulk.1.reverse", "opposite"], ["bulk.2.reverse", "main"], ["bulk.2", "opposite"]];
    assert_eq!(flows, expected);
    // Bits received between 0.0211 s, the first reception, and 60 s: 8 x 363 435 000 / 59.9789 s, 48.475 Mbit/s.
    let first = rows.iter().find(|row| row[0] == "bulk.1" && row.len() == 10).unwrap();
    assert_eq!(first[7], "48.48 Mbit/s");
}

#[test]
fn limitations_are_shown_if_given() {
    let folder = Folder::copy_of("run");
    assert!(folder.build().contains("docs/limitations.md"));
    let options = fullpipe_report::Options { limitations: Some("Routes are <static>."), ..Default::default() };
    fullpipe_report::write_report_with(&folder.0, options).unwrap();
    assert!(folder.text("report.html").contains("<p>Routes are &lt;static&gt;.</p>"));
}

#[test]
fn equal_records_give_equal_bytes_in_any_folder() {
    for fixture in ["study", "run", "suite"] {
        let (a, b) = (Folder::copy_of(fixture), Folder::copy_of(fixture));
        assert_eq!(a.build(), b.build());
        let once: Vec<_> = a.records().iter().map(|f| a.text(f)).collect();
        a.build();
        assert_eq!(a.records().iter().map(|f| a.text(f)).collect::<Vec<_>>(), once);
        assert_eq!(b.records().iter().map(|f| b.text(f)).collect::<Vec<_>>(), once);
    }
}

/// The rows of a study for a web client and a game.
const FLOW_SUMMARY: &str = "point,flow,host,metric,unit,n,mean,ci95,low,high,min,median,max\n\
    ,browser,left1,pages,,1,20,,,,20,20,20\n\
    ,browser,left1,page_load_mean_s,s,1,1.25,,,,1.25,1.25,1.25\n\
    ,browser,left1,delay_p50_s,s,1,0.025,,,,0.025,0.025,0.025\n\
    ,browser,left1,delay_p95_s,s,1,0.031,,,,0.031,0.031,0.031\n\
    ,browser,left1,delay_p99_s,s,1,0.0445,,,,0.0445,0.0445,0.0445\n";

#[test]
fn application_metrics_have_tables_and_completions_a_distribution() {
    let folder = Folder::copy_of("run");
    let before = folder.build();
    assert!(!before.contains("Application metrics") && !before.contains("plots/completion-times.svg"));
    folder.write("flow_summary.csv", FLOW_SUMMARY);
    let run = "runs/c0ffee0123456789abcdef01";
    folder.write(
        &format!("{run}/completions.csv"),
        "flow,number,started_s,completed_s,bytes\nbrowser,1,0,1,9\nbrowser,2,1,4,9\nbrowser,3,5,7,9\n",
    );
    let page = folder.build();
    let rows = rows(&page);
    let found = |wanted: &[&str]| rows.iter().any(|row| row == wanted);
    assert!(found(&["browser", "left1", "Page load mean", "1.250", "s"]), "{rows:?}");
    assert!(found(&["browser", "left1", "25.0", "31.0", "44.5"]), "{rows:?}");
    assert!(page.contains("Delay p95 (ms)"));
    // The durations are 1, 3 and 2 s. The figure is described in words for screen readers.
    assert!(page.contains("browser: 3 values, median 2."), "{page}");
    assert!(folder.0.join("plots/completion-times.svg").exists());
}

#[test]
fn warnings_are_in_validity_and_a_run_without_delivery_in_the_head() {
    let folder = Folder::copy_of("run");
    let run = "runs/c0ffee0123456789abcdef01/run.json";
    let warning = |name: &str, place: &str, text: &str| {
        format!("{{ \"name\": \"{name}\", \"place\": \"{place}\", \"text\": \"{text}\" }}")
    };
    let small = warning("small-queue", "core", "room for less than one packet");
    let insert = |folder: &Folder, warnings: &str| {
        folder.replace(run, "\"distrust\": []", &format!("\"distrust\": [], \"warnings\": [{warnings}]"));
    };
    assert!(!folder.build().contains("small-queue"));
    insert(&folder, &small);
    let page = folder.build();
    let row = ["small-queue", "core", "room for less than one packet", "1"];
    assert!(rows(&page).iter().any(|found| found == &row));
    assert!(page.contains("There are warnings (small-queue)") && !page.contains("Nothing was delivered"));
    assert!(fullpipe_report::write_report(&folder.0).unwrap().distrust.is_empty());
    let folder = Folder::copy_of("run");
    insert(&folder, &warning("nothing-delivered", "", "no application received any payload; no packet was sent"));
    let page = folder.build();
    assert!(page.contains("<strong>Nothing was delivered.</strong> no application received any payload"), "{page}");
    let built = fullpipe_report::write_report(&folder.0).unwrap();
    assert_eq!(built.distrust, ["no application received any payload; no packet was sent"]);
}

#[test]
fn first_screen_has_verdicts_main_figure_and_main_table() {
    for (fixture, figure, table) in [
        ("study", "plot-throughput", "Claims"),
        ("run", "plot-cwnd-bytes", "Flows; packets lost are those dropped in the network"),
    ] {
        let page = Folder::copy_of(fixture).build();
        let document = parse(&page);
        let main = document.descendants().find(|n| n.has_tag_name("main")).unwrap();
        let first = main.children().find(|n| n.is_element()).unwrap();
        assert_eq!(first.attribute("class"), Some("first"), "{fixture}");
        let figures: Vec<_> = first.descendants().filter(|n| n.has_tag_name("figure")).collect();
        assert_eq!(figures.iter().map(|n| n.attribute("id")).collect::<Vec<_>>(), [Some(figure)]);
        let caption = first.descendants().find(|n| n.has_tag_name("caption")).unwrap();
        assert_eq!(text_of(caption), table);
        // The figure occurs once.
        assert_eq!(page.matches(&format!("id=\"{figure}\"")).count(), 1);
        let header = document.descendants().find(|n| n.has_tag_name("header")).unwrap();
        let tally = header.descendants().find(|n| n.attribute("class") == Some("tally")).unwrap();
        let expected = if fixture == "run" { "1 run, valid · 60 s simulated" } else { "match" };
        assert!(text_of(tally).contains(expected), "{}", text_of(tally));
    }
}

#[test]
fn sentence_shared_by_captions_is_above_the_plots_once() {
    let page = Folder::copy_of("study").build();
    let document = parse(&page);
    let shared = "Open markers: published values.";
    let captions = document.descendants().filter(|n| n.has_tag_name("figcaption") && text_of(*n).contains(shared));
    // The main figure is separate and has its own sentence; the figures below share the sentence above them.
    assert_eq!((captions.count(), page.matches(shared).count()), (1, 2));
}
