//! Tests the conversion of the library's errors: `?` converts them into boxed errors, and into those of `anyhow`.

use fullpipe::{Simulation, lab, scenario};
use std::error::Error;

type Boxed = Box<dyn Error + Send + Sync>;

fn run(path: &str) -> Result<u64, Boxed> {
    let simulation = Simulation::open(path)?;
    simulation.scenario()?;
    Ok(simulation.run()?.totals().data_packets)
}

/// The bound of `impl From<E> for anyhow::Error`, and of `Box<dyn Error + Send + Sync>`.
fn is_convertible<E: Error + Send + Sync + 'static>() {}

#[test]
fn errors_convert_into_boxed_errors_of_threads() {
    is_convertible::<fullpipe::Error>();
    is_convertible::<scenario::Errors>();
    is_convertible::<scenario::Error>();
    is_convertible::<lab::RunError>();
    let error = run("no/such/file.toml").expect_err("there is no such file");
    assert!(error.to_string().starts_with("cannot read no/such/file.toml: "), "{error}");
    assert!(error.downcast_ref::<fullpipe::Error>().is_some());
    // From another thread.
    let error = std::thread::spawn(|| run("no/such/file.toml")).join().expect("no panic").expect_err("no file");
    assert!(error.source().is_none());
}
