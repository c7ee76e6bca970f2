//! Names are names: with other names for hosts and routers, and no random model named after them, the records are the same.

mod common;

use common::{flows_csv, outcome};

#[test]
fn hosts_renamed_give_the_same_records() {
    let text = "processing_jitter = '0s'
        duration = '5s'
        host = [{ name = 'alpha' }, { name = 'beta' }, { name = 'gamma' }]
        router = [{ name = 'middle' }]
        link = [
            { name = 'one', from = 'alpha', to = 'middle', rate = '100Mbit/s', delay = '1ms' },
            { name = 'two', from = 'beta', to = 'middle', rate = '100Mbit/s', delay = '3ms' },
            { name = 'three', from = 'middle', to = 'gamma', rate = '10Mbit/s', delay = '5ms', queue = '20packets' },
        ]
        flow = [
            { name = 'a', from = 'alpha', to = 'gamma' },
            { name = 'b', from = 'beta', to = 'gamma', congestion = 'newreno' },
        ]";
    let renames = [("alpha", "zeta"), ("beta", "x1"), ("gamma", "a-host"), ("middle", "router9")];
    let renamed = |text: &str| renames.iter().fold(text.to_string(), |text, (from, to)| text.replace(from, to));
    let before = flows_csv(&outcome(text));
    assert!(before.contains("gamma") && before.lines().count() == 5, "{before}");
    assert_eq!(flows_csv(&outcome(&renamed(text))), renamed(&before));
}
