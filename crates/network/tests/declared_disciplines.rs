//! The declarations of queue disciplines: each name is accepted by the scenario language, is read into distinct settings, and is built
//! under that name.

#[path = "../../schema/tests/least/mod.rs"]
mod least;

use fullpipe_network::discipline::settings::{Discipline, DisciplineContext, LinkParameters, QueueCapacity};
use fullpipe_network::discipline::table::{DISCIPLINE, DISCIPLINES};
use fullpipe_network::packet::Arena;
use fullpipe_network::{Packet, PacketContent, QueuedPacket};
use fullpipe_schema::component::{Declaration, SettingsReader};
use fullpipe_schema::{Diagnostics, Errors, Override, ValueData, load};
use fullpipe_units::{Duration, FlowId, Instant, NodeId, QueueLimit, Rate};
use std::collections::BTreeMap;

/// A bandwidth-delay product of 10 Mbit/s x 40 ms = 50 000 bytes.
const DEVICE: LinkParameters = LinkParameters {
    rate: Rate::from_megabits_per_second(10),
    bdp: (Rate::from_megabits_per_second(10), Duration::from_millis(40)),
    mtu_bytes: 1500,
    framing_bytes: 18,
};

fn read(text: &str) -> Result<Option<Discipline>, Errors> {
    let loaded = load(&DISCIPLINE, text, "discipline.toml", &[])?;
    let mut check = Diagnostics::new(&loaded.sources);
    let settings =
        DISCIPLINES.read(&mut SettingsReader { tree: &loaded.root, path: "discipline", check: &mut check }, &DEVICE);
    check.finish()?;
    Ok(settings.expect("a table without errors has settings"))
}

/// Returns a table with this name and its required keys.
fn least(declaration: &Declaration) -> String {
    least::texts("kind", declaration).remove(0)
}

#[test]
fn each_declared_name_has_distinct_settings_and_is_built_under_it() {
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
                // Reading the table again gives equal settings; different tables give different settings.
                assert_eq!(read(&least(declaration)).unwrap(), Some(settings.clone()));
                assert_ne!(read("kind = 'fifo'\nlimit = '6packets'").unwrap(), Some(settings));
            }
        }
    }
    assert_eq!(without_a_queue, ["none"]);
}

/// Every discipline has the same key for its limit, in any unit, and holds no more than the limit.
#[test]
fn each_discipline_obeys_the_common_limit_key() {
    let bands = BTreeMap::new();
    let context = DisciplineContext { seed: 1, interface: "link", bands: &bands };
    // Frames of 1518 bytes. 12.144 ms at 10 Mbit/s are 15 180 bytes, ten frames, and so are 0.3036 x 50 000 bytes.
    let limits = [("7packets", 7), ("15180B", 10), ("12.144ms", 10), ("0.3036BDP", 10), ("15179B", 9)];
    for declaration in DISCIPLINES.declarations() {
        for (limit, frames) in limits {
            let name = declaration.name;
            let more = if name == "priority" { "bands = [{ kind = 'codel', limit = 'unlimited' }]" } else { "" };
            let settings = read(&format!("kind = '{name}'\nlimit = '{limit}'\n{more}"));
            let Some(settings) = settings.unwrap_or_else(|errors| panic!("{name}: {errors}")) else {
                // The device queue has the limit instead: see the tests of the scenario language.
                assert_eq!(name, "none");
                continue;
            };
            let most = if limit == "7packets" { settings.capacity().packets } else { settings.capacity().bytes };
            assert_eq!(most, Some(if limit == "7packets" { 7 } else { 15_180 - u64::from(frames == 9) }), "{name}");
            let mut queue = settings.build(&context);
            let mut dropped = Vec::new();
            let mut arena = Arena::default();
            for _ in 0..20 {
                let packet = Packet::new(FlowId(0), NodeId(1), 1500, PacketContent::Udp { payload_bytes: 1472 });
                let frame = QueuedPacket::new(arena.insert(packet), &packet, 1518, Instant::ZERO);
                let refused = queue.enqueue(Instant::ZERO, frame, &mut dropped).err();
                dropped.extend(refused);
                assert!(queue.packets() <= frames, "{name}: {limit}");
            }
            assert_eq!((queue.packets(), dropped.len() as u64), (frames, 20 - frames), "{name}: {limit}");
        }
    }
}

#[test]
fn the_former_limit_key_of_fq_codel_gives_a_hint() {
    let load = |text: &str| load(&DISCIPLINE, text, "discipline.toml", &[]);
    let [former, present] = ["limit_packets = 600", "limit = '600packets'"].map(|key| {
        let loaded = load(&format!("kind = 'fq-codel'\n{key}")).unwrap();
        (loaded.root, loaded.hints.iter().map(ToString::to_string).collect::<Vec<_>>())
    });
    assert_eq!(former.0, present.0);
    assert_eq!(present.1, [""; 0]);
    let hint = "discipline.toml:2: limit_packets is now called limit: write limit = \"600packets\" (limit_packets is \
                accepted until the next version)";
    assert_eq!(former.1, [hint]);
    let both = load("kind = 'fq-codel'\nlimit = '5packets'\nlimit_packets = 5").unwrap_err();
    assert_eq!(both.0[0].message, "limit_packets is the former spelling of limit, which the table also has");
    // The former key did not accept zero or another unit either.
    assert!(load("kind = 'fq-codel'\nlimit_packets = 0").is_err());
    assert!(load("kind = 'codel'\nlimit_packets = 5").is_err());
}

#[test]
fn an_override_replaces_a_value_with_another_spelling() {
    let load = |key: &str, set: &str| {
        let set = [Override::parse(set).unwrap()];
        load(&DISCIPLINE, &format!("kind = 'fq-codel'\n{key}"), "discipline.toml", &set).unwrap()
    };
    let limit = |packets| ValueData::LinkQueueLimit(QueueLimit::Packets(packets).into());
    let present = load("limit_packets = 600", "limit=5packets");
    assert_eq!((&present.root.get("limit").unwrap().data, present.hints.len()), (&limit(5), 0));
    let former = load("limit = '600packets'", "limit_packets=7");
    assert_eq!(former.root.get("limit").unwrap().data, limit(7));
    assert!(former.hints[0].to_string().starts_with("--set limit_packets=7: limit_packets is now called limit"));
}

#[test]
fn names_are_unique_and_a_misspelled_one_suggests_the_nearest() {
    let names: Vec<&str> = DISCIPLINES.declarations().map(|declaration| declaration.name).collect();
    for (index, name) in names.iter().enumerate() {
        assert!(!names[..index].contains(name), "{name} is declared twice");
        let errors = read(&format!("kind = '{name}x'")).unwrap_err();
        assert_eq!(errors.0[0].suggestion, Some(format!("\"{name}\"")));
        assert_eq!(errors.0[0].expected.len(), names.len());
    }
}

#[test]
fn a_band_without_a_queue_and_contradicting_thresholds_are_located_errors() {
    let error = |text: &str| read(text).unwrap_err().0.remove(0);
    let band = error("kind = 'priority'\nbands = [{ kind = 'codel' }, { kind = 'none' }]");
    assert_eq!((band.path.as_str(), band.line, band.column), ("discipline.bands.1.kind", 2, 39));
    let red = error("kind = 'red'\nmin = '20packets'");
    assert_eq!((red.path.as_str(), red.line), ("discipline.min", 2));
    let sizes = error("kind = 'priority'\nby = 'size'\nbands = [{ kind = 'codel' }]\nsizes = ['100B']");
    assert_eq!((sizes.path.as_str(), sizes.message.as_str()), ("discipline.sizes", "1 sizes do not separate 1 bands"));
}

#[test]
fn the_capacity_of_bands_is_their_sum_if_all_limits_have_the_same_unit() {
    let capacity = |text: &str| read(text).unwrap().unwrap().capacity();
    let fifo = |limit: &str| format!("{{ kind = 'fifo', limit = '{limit}' }}");
    let bands = |a: &str, b: &str| capacity(&format!("kind = 'priority'\nbands = [{}, {}]", fifo(a), fifo(b)));
    assert_eq!(bands("5packets", "7packets"), QueueCapacity { packets: Some(12), bytes: None });
    // 8 ms at 10 Mbit/s are 10 000 bytes.
    assert_eq!(bands("8ms", "1kB"), QueueCapacity { packets: None, bytes: Some(11_000) });
    assert_eq!(bands("5packets", "1kB"), QueueCapacity { packets: None, bytes: None });
}
