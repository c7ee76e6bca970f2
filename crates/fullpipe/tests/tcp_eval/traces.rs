//! Tests that Tmix traces can be read from a folder. Synthetic traces that are written to files and read again give the
//! same run.

use crate::issues::access_link;
use fullpipe::tmix::{SyntheticTrace, TraceFormat, generate, write_connection};
use fullpipe::units::Duration;

#[test]
fn folder_of_written_traces_gives_the_same_run() {
    const SECONDS: u64 = 30;
    let folder = std::env::temp_dir().join(format!("fullpipe-tcp-eval-{}-traces", std::process::id()));
    std::fs::create_dir_all(&folder).expect("the folder can be created");
    let endings = ["org", "orig", "alt", "cvec"];
    let suite = SyntheticTrace::suite(1, Duration::from_secs(SECONDS));
    for (number, (trace, name)) in suite.iter().zip(generate::TRACE_NAMES).enumerate() {
        let (ending, format) =
            (endings[number % 4], if number % 2 == 0 { TraceFormat::Original } else { TraceFormat::Alternate });
        let mut text = Vec::new();
        for connection in (0..SECONDS).flat_map(|second| trace.connections_in_second(second)) {
            write_connection(&mut text, &connection, format, name).expect("writing to memory cannot fail");
        }
        std::fs::write(folder.join(format!("{name}.{ending}")), text).expect("the folder is writable");
    }
    let rows = |from_folder: bool| {
        let run = access_link()
            .set("flow.*.trace_length", format!("{SECONDS}s"))
            .set("duration", "60s")
            .set("measurement", "{}")
            .set("probe", "[]");
        let run = if from_folder { run.set("flow.*.folder", format!("'{}'", folder.display())) } else { run };
        let outcome = run.run().expect("the run succeeds");
        let figures: Vec<String> = outcome.figure_rows().map(|row| format!("{:?}", row)).collect();
        let flows: Vec<String> = outcome.flow_rows().map(|row| format!("{:?}", row)).collect();
        (figures, flows)
    };
    let (synthetic, read) = (rows(false), rows(true));
    std::fs::remove_dir_all(&folder).expect("the folder can be removed");
    assert!(
        synthetic.1.len() == 18 && synthetic.1.iter().all(|row| !row.contains("rx_packets: 0,")),
        "{:?}",
        synthetic.1
    );
    assert_eq!(read, synthetic);
}
