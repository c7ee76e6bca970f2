//! Tests of the declarations of stream schedulers: each name is accepted in scenarios, read into its own settings, and creates a
//! scheduler with that name.

use fullpipe_quic::scheduler::{Edf, NAMES, SCHEDULERS, StreamScheduler};
use fullpipe_quic::settings::{QUIC, SETTINGS};
use fullpipe_schema::component::SettingsReader;
use fullpipe_schema::{Diagnostics, Errors, load};
use fullpipe_units::Duration;

fn read(text: &str) -> Result<StreamScheduler, Errors> {
    let loaded = load(&QUIC, text, "quic.toml", &[])?;
    let (mut check, mut tree) = (Diagnostics::new(&loaded.sources), loaded.root.clone());
    SETTINGS.fill(&mut tree, None, |_| true);
    let settings = SETTINGS.read(&mut SettingsReader { tree: &tree, path: "quic", check: &mut check });
    check.finish()?;
    Ok(settings.expect("without an error there are settings").connection.scheduler)
}

#[test]
fn each_scheduler_is_read_and_built_under_its_declared_name() {
    let all: Vec<StreamScheduler> = SCHEDULERS
        .declarations()
        .map(|declaration| {
            let text = format!("scheduler = '{}'", declaration.name);
            let settings = read(&text).unwrap_or_else(|errors| panic!("{text}: {errors}"));
            assert_eq!(settings.create().name(), declaration.name);
            // Reading it again gives equal settings.
            assert_eq!(read(&text).unwrap(), settings);
            settings
        })
        .collect();
    for (index, settings) in all.iter().enumerate() {
        assert!(!all[..index].contains(settings), "{settings:?} is there twice");
    }
}

#[test]
fn names_differ_and_an_unknown_name_suggests_the_nearest() {
    for (index, choice) in NAMES.iter().enumerate() {
        assert!(NAMES[..index].iter().all(|other| other.name != choice.name), "{} is declared twice", choice.name);
        let errors = read(&format!("scheduler = '{}x'", choice.name)).unwrap_err();
        assert_eq!(errors.0[0].suggestion, Some(format!("\"{}\"", choice.name)));
    }
}

#[test]
fn edf_latency_is_optional_in_the_file() {
    let edf = |milliseconds| -> StreamScheduler {
        StreamScheduler::new(Edf { latency: Duration::from_millis(milliseconds) })
    };
    assert_eq!(read("scheduler = 'edf'").unwrap(), edf(100));
    assert_eq!(read("scheduler = 'edf'\nscheduler_latency = '30ms'").unwrap(), edf(30));
}
