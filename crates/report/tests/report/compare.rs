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
    let [one] = built.differences.as_slice() else { panic!("{:?}", built.differences) };
    assert_eq!((one.metric.as_str(), one.pairs, one.direction()), ("goodput_bps", 3, None));
    let near = |a: f64, b: f64| (a - b).abs() < 1.0;
    // The means are those of the pairs: 39 / 3 = 13 and 31 / 3.
    assert!(near(one.mean, 13e6) && near(one.other_mean, 31e6 / 3.0) && near(one.difference, 8e6 / 3.0), "{one:?}");
    assert!((one.ci95.unwrap() - 5.171_20e6).abs() < 100.0, "{one:?}");
    assert_eq!(rows(&here)[2], ["13", "10.33", "+2.7 ± 5.2", "+25.8 %", "3", "includes zero"]);
    let page = here.text("report.html");
    assert!(page.contains("Without a partner: 1 run here, 2 runs there."), "unpaired runs");
    let csv = here.text("comparison.csv");
    assert!(
        csv.starts_with(
            "point,metric,unit,pairs,mean,other_mean,difference,ci95,low,high,relative\n,goodput_bps,bps,3,13000000,"
        ),
        "{csv}"
    );
    // A report without a comparison removes the file of an earlier one.
    here.build();
    assert!(!here.0.join("comparison.csv").exists() && !here.text("report.html").contains("Compared with another"));
}

#[test]
fn paired_interval_detects_a_difference_smaller_than_the_spread_of_runs() {
    // Runs between 10 and 90 Mbit/s. Differences of 1, 2 and 3 give 2 ± 4.302653 / sqrt(3) = 2 ± 2.484. Differences of
    // 1, 1.1 and 1.2 give 1.1 ± 4.302653 × 0.1 / sqrt(3) = 1.1 ± 0.248, which excludes zero.
    let there = folder(&[(1, 10.0), (2, 50.0), (3, 90.0)]);
    let here = folder(&[(1, 11.0), (2, 51.1), (3, 91.2)]);
    assert_eq!(compare(&here, &there).unwrap().differences[0].direction(), Some(Ordering::Greater));
    assert_eq!(rows(&here)[2][2..], ["+1.10 ± 0.25", "+2.20 %", "3", "higher"]);
    assert_eq!(compare(&there, &here).unwrap().differences[0].direction(), Some(Ordering::Less));
    let here = folder(&[(1, 11.0), (2, 52.0), (3, 93.0)]);
    assert_eq!(compare(&here, &there).unwrap().differences[0].direction(), None);
}

#[test]
fn single_pair_has_no_interval_and_equal_folders_have_no_difference() {
    let (here, there) = (folder(&[(1, 11.0)]), folder(&[(1, 10.0)]));
    let built = compare(&here, &there).unwrap();
    assert_eq!((built.differences[0].pairs, built.differences[0].ci95), (1, None));
    assert_eq!(rows(&here)[2][2..], ["+1", "+10.0 %", "1", "none: one pair"]);
    compare(&here, &here).unwrap();
    assert_eq!(rows(&here)[2][2..], ["0", "0 %", "1", "no difference"]);
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
    assert!(here.text("report.html").contains("Left out because a run is not to be trusted: 1 pair."));
}
