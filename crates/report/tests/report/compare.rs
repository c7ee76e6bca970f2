//! Tests the comparison of two folders: paired differences, their file, and folders that cannot be compared.

use crate::records::{Folder, parse, text_of};
use fullpipe_report::{Options, ReportError, ReportFiles, write_report_with};
use std::cmp::Ordering;

const KEY: &str = "c0ffee0123456789abcdef01";

/// A folder with runs of these seeds and goodputs in Mbit/s.
fn folder(runs: &[(u64, f64)]) -> Folder {
    let folder = Folder::copy_of("run");
    let mut table = "seed,key,goodput_bps\n".to_owned();
    for (seed, goodput) in runs {
        table.push_str(&format!("{seed},{KEY},{}\n", goodput * 1e6));
    }
    folder.write("results.csv", &table);
    folder
}

fn compare(here: &Folder, there: &Folder) -> Result<ReportFiles, ReportError> {
    write_report_with(&here.0, Options { compare: Some(&there.0), ..Options::default() })
}

/// The rows of the table of differences.
fn rows(folder: &Folder) -> Vec<Vec<String>> {
    let page = folder.text("report.html");
    let document = parse(&page);
    let caption =
        document.descendants().find(|n| n.has_tag_name("caption") && text_of(*n).starts_with("Differences")).unwrap();
    let table = caption.parent().unwrap();
    let squeeze = |text: String| text.replace(['\u{202f}', '\u{2007}', '\u{2008}'], "");
    let fields =
        |row: roxmltree::Node<'_, '_>| row.children().filter(|c| c.is_element()).map(|c| squeeze(text_of(c))).collect();
    table.descendants().filter(|n| n.has_tag_name("tr")).map(fields).collect()
}

#[test]
fn differences_of_pairs_have_the_interval_of_a_paired_t_test() {
    // Pairs by seed, in any order: 10 - 9, 12 - 10 and 17 - 12 Mbit/s, which are 1, 2 and 5, with mean 8/3. The squared
    // deviations are 25/9 + 4/9 + 49/9 = 26/3; divided by 2, s² = 13/3. The interval is 8/3 ± t(2) sqrt(13/3 / 3), with
    // t(2) = 4.302653 (tables): ± 5.17120.
    let here = folder(&[(1, 10.0), (2, 12.0), (3, 17.0), (4, 1.0)]);
    let there = folder(&[(3, 12.0), (2, 10.0), (1, 9.0), (7, 99.0), (8, 99.0)]);
    let built = compare(&here, &there).unwrap();
    let [one, ..] = built.differences.as_slice() else { panic!("{:?}", built.differences) };
    assert_eq!((one.metric.as_str(), one.pairs, one.direction()), ("goodput_bps", 3, None));
    let near = |a: f64, b: f64| (a - b).abs() < 1.0;
    // The means are those of the pairs: 39 / 3 = 13 and 31 / 3.
    assert!(near(one.mean, 13e6) && near(one.other_mean, 31e6 / 3.0) && near(one.difference, 8e6 / 3.0), "{one:?}");
    assert!((one.ci95.unwrap() - 5.171_20e6).abs() < 100.0, "{one:?}");
    assert_eq!(rows(&here)[2], ["all flows", "13", "10.33", "+2.7 ± 5.2", "includes zero", "+25.8 %"]);
    let page = here.text("report.html");
    assert!(page.contains("Without a counterpart: 1 run here, 2 runs there."), "unpaired runs");
    let csv = here.text("comparison.csv");
    assert!(
        csv.starts_with(
            "point,flow,metric,unit,pairs,mean,other_mean,difference,ci95,low,high,relative\n,,goodput_bps,bps,3,13000000,"
        ),
        "{csv}"
    );
    // A report without a comparison removes the file of an earlier one.
    here.build();
    assert!(!here.0.join("comparison.csv").exists() && !here.text("report.html").contains("id=\"comparison\""));
}

#[test]
fn paired_interval_detects_a_difference_smaller_than_the_spread_of_runs() {
    // Runs between 10 and 90 Mbit/s. Differences of 1, 2 and 3 give 2 ± 4.302653 / sqrt(3) = 2 ± 2.484. Differences of
    // 1, 1.1 and 1.2 give 1.1 ± 4.302653 × 0.1 / sqrt(3) = 1.1 ± 0.248, which excludes zero.
    let there = folder(&[(1, 10.0), (2, 50.0), (3, 90.0)]);
    let here = folder(&[(1, 11.0), (2, 51.1), (3, 91.2)]);
    assert_eq!(compare(&here, &there).unwrap().differences[0].direction(), Some(Ordering::Greater));
    assert_eq!(rows(&here)[2][3..], ["+1.10 ± 0.25", "higher", "+2.20 %"]);
    assert_eq!(compare(&there, &here).unwrap().differences[0].direction(), Some(Ordering::Less));
    let here = folder(&[(1, 11.0), (2, 52.0), (3, 93.0)]);
    assert_eq!(compare(&here, &there).unwrap().differences[0].direction(), None);
}

#[test]
fn single_pair_has_no_interval_and_equal_folders_have_no_difference() {
    let (here, there) = (folder(&[(1, 11.0)]), folder(&[(1, 10.0)]));
    let built = compare(&here, &there).unwrap();
    assert_eq!((built.differences[0].pairs, built.differences[0].ci95), (1, None));
    assert_eq!(rows(&here)[2][3..], ["+1", "+10.0 %"]);
    compare(&here, &here).unwrap();
    assert_eq!(rows(&here)[2][3..], ["0", "0 %"]);
}

#[test]
fn folders_without_a_common_run_give_an_error_with_their_runs() {
    let error = compare(&folder(&[(1, 1.0), (2, 1.0)]), &folder(&[(3, 1.0)])).unwrap_err().to_string();
    assert!(error.contains("results.csv") && error.contains("which has seed 1 and 1 more; found seed 3"), "{error}");
}

#[test]
fn pairs_with_an_invalid_run_are_excluded() {
    let (here, there) = (folder(&[(1, 11.0), (2, 12.0)]), folder(&[(1, 10.0), (2, 10.0)]));
    let run = there.text(&format!("runs/{KEY}/run.json"));
    std::fs::create_dir(there.0.join("runs/bad")).unwrap();
    std::fs::copy(there.0.join(format!("runs/{KEY}/flows.csv")), there.0.join("runs/bad/flows.csv")).unwrap();
    there.write("runs/bad/run.json", &run.replace("\"passed\": true", "\"passed\": false").replace(KEY, "bad"));
    there.replace("results.csv", &format!("2,{KEY}"), "2,bad");
    let built = compare(&here, &there).unwrap();
    assert_eq!((built.differences[0].pairs, built.differences[0].difference), (1, 1e6));
    let note = "Excluded because a run is not to be trusted: 1 pair.";
    assert!(here.text("report.html").contains(note));
    assert!(built.comparison_notes.iter().any(|known| known == note), "{:?}", built.comparison_notes);
}

/// A folder with a run for each goodput of the flow `bulk.1` in Mbit/s, with the seeds 1, 2 and so on.
fn folder_of_runs(goodputs: &[f64]) -> Folder {
    let folder = Folder::copy_of("run");
    let mut table = "seed,key,goodput_bps\n".to_owned();
    let text = |file: &str| folder.text(&format!("runs/{KEY}/{file}"));
    let (run, flows) = (text("run.json"), text("flows.csv"));
    for (place, goodput) in goodputs.iter().enumerate() {
        let key = format!("run{place}");
        table.push_str(&format!("{},{key},{}\n", place + 1, goodput * 1e6));
        std::fs::create_dir(folder.0.join("runs").join(&key)).unwrap();
        folder.write(&format!("runs/{key}/run.json"), &run.replace(KEY, &key));
        // The column after the goodput is the completion time.
        let flows = flows.replace(",60,46901000,,", &format!(",60,{},{place}.5,", goodput * 1e6));
        folder.write(&format!("runs/{key}/flows.csv"), &flows);
    }
    folder.write("results.csv", &table);
    folder
}

#[test]
fn flows_that_both_folders_have_are_compared_one_by_one() {
    let (here, there) = (folder_of_runs(&[50.0, 52.0, 57.0]), folder_of_runs(&[49.0, 50.0, 52.0]));
    for place in 0..3 {
        there.replace(&format!("runs/run{place}/flows.csv"), "bulk.2", "other");
    }
    here.replace("study.toml", "'goodput_bps[\"*\"]'", "'mean(present(goodput_bps[\"*.main\"]))'");
    let built = compare(&here, &there).unwrap();
    let found: Vec<_> =
        built.differences.iter().map(|one| (one.metric.as_str(), one.flow.as_deref(), one.total, one.pairs)).collect();
    // Only bulk.1 is in both folders; its reverse direction carries acknowledgments and is not compared. The runs have no
    // percentiles of delay.
    assert_eq!(
        found,
        [
            ("goodput_bps", None, Some("mean over flows"), 3),
            ("goodput_bps", Some("bulk.1"), None, 3),
            ("completion_s", Some("bulk.1"), None, 3)
        ]
    );
    // Differences of 1, 2 and 5 Mbit/s have the mean 8/3 and the interval ± 5.17120 of the test above. The completion times
    // are 0.5, 1.5 and 2.5 s in both folders.
    let [_, goodput, completion] = built.differences.as_slice() else { panic!("{found:?}") };
    assert!((goodput.difference - 8e6 / 3.0).abs() < 1.0 && (goodput.mean - 53e6).abs() < 1.0, "{goodput:?}");
    assert!((goodput.ci95.unwrap() - 5.171_20e6).abs() < 100.0, "{goodput:?}");
    assert_eq!((completion.mean, completion.difference), (1.5, 0.0));
    let rows = rows(&here);
    assert_eq!(rows[1], ["Goodput, mean over flows (Mbit/s)"]);
    assert_eq!(rows[3], ["Goodput of each flow (Mbit/s)"]);
    assert_eq!(rows[4][..4], ["bulk.1", "53", "50.33", "+2.7 ± 5.2"]);
    let csv = here.text("comparison.csv");
    assert!(csv.lines().any(|line| line.starts_with(",bulk.1,completion_s,s,3,1.5,1.5,0,")), "{csv}");
}

#[test]
fn comparison_names_the_folders_and_the_settings_that_differ() {
    let (here, there) = (folder(&[(1, 11.0)]), folder(&[(1, 10.0)]));
    let scenario = |limit: &str| {
        format!("\\n[[link]]\\nname = \\\"access\\\"\\nlimit = \\\"{limit}\\\"\\nrate = 5\\n\"\n\n[[experiment]]")
    };
    for (folder, limit) in [(&here, "200packets"), (&there, "30packets")] {
        folder.replace("study.toml", "\\n\"\n\n[[experiment]]", &scenario(limit));
    }
    let built = compare(&here, &there).unwrap();
    let note = "Settings that differ: link.access.limit: 200packets here, 30packets there.";
    assert_eq!(built.comparison_notes, [note]);
    let page = here.text("report.html");
    let folders = format!("{} compared with {}", here.0.display(), there.0.display());
    for text in [note, &format!("<h2 id=\"comparison\">Comparison: {folders}</h2>"), &format!(": {folders}</title>")] {
        assert!(page.contains(text), "{text}");
    }
    assert!(compare(&here, &here).unwrap().comparison_notes.contains(&"No setting differs.".to_owned()));
}

#[test]
fn totals_of_a_run_have_a_label() {
    let folder = Folder::copy_of("run");
    folder.replace("study.toml", "'goodput_bps[\"*\"]'", "'mean(present(goodput_bps[\"*.main\"]))'");
    assert!(folder.build().contains("<td>mean over flows</td>"), "no label");
}
