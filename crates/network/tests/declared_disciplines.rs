//! What queue disciplines declare: each name is accepted by the language, read into settings of its own, and built under
//! that name.

#[path = "../../schema/tests/least/mod.rs"]
mod least;

use fullpipe_network::discipline::settings::{Capacity, Device, Discipline, DisciplineContext};
use fullpipe_network::discipline::table::{DISCIPLINE, DISCIPLINES};
use fullpipe_schema::component::{Declaration, Reader};
use fullpipe_schema::{Check, Errors, load};
use fullpipe_units::Rate;
use std::collections::BTreeMap;

const DEVICE: Device = Device { rate: Rate::from_megabits_per_second(10), mtu_bytes: 1500, framing_bytes: 18 };

fn read(text: &str) -> Result<Option<Discipline>, Errors> {
    let loaded = load(&DISCIPLINE, text, "discipline.toml", &[])?;
    let mut check = Check::new(&loaded.sources);
    let settings = DISCIPLINES.read(&mut Reader { tree: &loaded.root, path: "discipline", check: &mut check }, &DEVICE);
    check.done()?;
    Ok(settings.expect("without an error there are settings"))
}

/// A table with this name and whatever must be given with it.
fn least(declaration: &Declaration) -> String {
    least::texts("kind", declaration).remove(0)
}

#[test]
fn each_declared_name_is_read_into_its_own_settings_and_built_under_it() {
    let bands = BTreeMap::new();
    let context = DisciplineContext { seed: 1, interface: "link", bands: &bands };
    let mut without_a_queue = Vec::new();
    for declaration in DISCIPLINES.declarations() {
        let name = declaration.name;
        match read(&least(declaration)).unwrap_or_else(|errors| panic!("{name}: {errors}")) {
            None => without_a_queue.push(name),
            Some(settings) => {
                assert_eq!(settings.name(), name);
                assert_eq!(settings.build(&context).name(), name);
                // Reading it again gives equal settings, and other settings are not equal.
                assert_eq!(read(&least(declaration)).unwrap(), Some(settings.clone()));
                assert_ne!(read("kind = 'fifo'\nlimit = '6packets'").unwrap(), Some(settings));
            }
        }
    }
    assert_eq!(without_a_queue, ["none"]);
}

#[test]
fn names_differ_and_a_wrong_one_suggests_the_nearest() {
    let names: Vec<&str> = DISCIPLINES.declarations().map(|declaration| declaration.name).collect();
    for (index, name) in names.iter().enumerate() {
        assert!(!names[..index].contains(name), "{name} is declared twice");
        let errors = read(&format!("kind = '{name}x'")).unwrap_err();
        assert_eq!(errors.0[0].suggestion, Some(format!("\"{name}\"")));
        assert_eq!(errors.0[0].expected.len(), names.len());
    }
}

#[test]
fn a_band_without_a_queue_and_contradicting_thresholds_are_errors_at_their_place() {
    let error = |text: &str| read(text).unwrap_err().0.remove(0);
    let band = error("kind = 'priority'\nbands = [{ kind = 'codel' }, { kind = 'none' }]");
    assert_eq!((band.path.as_str(), band.line, band.column), ("discipline.bands.1.kind", 2, 39));
    let red = error("kind = 'red'\nmin = '20packets'");
    assert_eq!((red.path.as_str(), red.line), ("discipline.min", 2));
    let sizes = error("kind = 'priority'\nby = 'size'\nbands = [{ kind = 'codel' }]\nsizes = ['100B']");
    assert_eq!((sizes.path.as_str(), sizes.message.as_str()), ("discipline.sizes", "1 sizes do not divide 1 bands"));
}

#[test]
fn the_capacity_of_bands_is_their_sum_where_all_limit_the_same() {
    let capacity = |text: &str| read(text).unwrap().unwrap().capacity();
    let fifo = |limit: &str| format!("{{ kind = 'fifo', limit = '{limit}' }}");
    let bands = |a: &str, b: &str| capacity(&format!("kind = 'priority'\nbands = [{}, {}]", fifo(a), fifo(b)));
    assert_eq!(bands("5packets", "7packets"), Capacity { packets: Some(12), bytes: None });
    // 8 ms at 10 Mbit/s are 10 000 bytes.
    assert_eq!(bands("8ms", "1kB"), Capacity { packets: None, bytes: Some(11_000) });
    assert_eq!(bands("5packets", "1kB"), Capacity { packets: None, bytes: None });
}
