//! Segmentation, classification and buffer status reports against vectors of ns-3's own tests
//! (`data/bearer_vectors.csv`: inputs and expected values as `key=value; key=value`, all exact).

use fullpipe_lte::bearer::{
    Addresses, Classifier, Headers, PacketFilter, Ports, buffer_status_bytes, buffer_status_index,
};
use fullpipe_lte::rlc::{Bearer, Limits, Mode, Sdu, Way};
use fullpipe_units::Instant;
use std::collections::BTreeMap;
use std::net::IpAddr;

type Values = BTreeMap<&'static str, &'static str>;

/// Inputs and expected values of a group's vectors, by their id.
fn vectors(group: &str) -> Vec<(&'static str, Values, Values)> {
    let values = |text: &'static str| text.split("; ").map(|pair| pair.split_once('=').unwrap()).collect();
    let rows = include_str!("data/bearer_vectors.csv").lines().map(|line| line.split(',').collect::<Vec<_>>());
    rows.filter(|row| row[1] == group).map(|row| (row[0], values(row[2]), values(row[3]))).collect()
}

#[test]
fn buffer_status_reports() {
    let vectors = vectors("bsr");
    assert_eq!(vectors.len(), 12);
    for (id, inputs, expected) in vectors {
        let index = buffer_status_index(inputs["bytes"].parse().unwrap());
        assert_eq!(index.to_string(), expected["index"], "{id}");
        assert_eq!(buffer_status_bytes(index).to_string(), expected["scheduler_sees"], "{id}");
    }
}

#[test]
fn segmentation() {
    let vectors = vectors("rlc_segmentation");
    assert_eq!(vectors.len(), 4);
    for (id, inputs, expected) in vectors {
        let mode = if inputs["mode"] == "UM" { Mode::Unacknowledged } else { Mode::Acknowledged };
        let mut bearer = Bearer::new(mode, Limits::of(mode));
        // "26-byte SDU" or "SDUs 10 9 7".
        let sizes = inputs["queue"].split([' ', '-']).filter_map(|word| word.parse::<u32>().ok());
        for (token, bytes) in (0..).zip(sizes) {
            assert!(bearer.offer(Way::Downlink, Sdu { bytes, token, arrived: Instant::ZERO }));
        }
        let payloads: Vec<String> = inputs["tx_opportunities_bytes"]
            .split(' ')
            .map(|bytes| bearer.opportunity(Way::Downlink, Instant::ZERO, bytes.parse().unwrap()).unwrap())
            .map(|pdu| pdu.payload_bytes.to_string())
            .collect();
        assert_eq!(payloads.join(" "), expected["payload_bytes"], "{id}");
    }
}

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// The rules of ns-3's test, see the reference's section 14.
fn classifier(name: &str) -> Classifier {
    let net = |text: &str, bits| Some(Addresses::prefix(address(text), bits).unwrap());
    let remote = |ports| PacketFilter { remote_ports: ports, ..PacketFilter::ANY };
    let local = |ports| PacketFilter { local_ports: ports, ..PacketFilter::ANY };
    let nets = [
        PacketFilter { remote: net("1.0.0.0", 8), local: net("2.0.0.0", 8), ..PacketFilter::ANY },
        PacketFilter { remote: net("3.3.3.0", 24), local: net("4.4.4.0", 24), ..PacketFilter::ANY },
    ];
    let ports = [
        remote(Ports::new(1024, 1035).unwrap()),
        local(Ports::new(3456, 3489).unwrap()),
        local(Ports::one(7895)),
        remote(Ports::one(5897)),
    ];
    let any = [PacketFilter::ANY];
    let bearers: &[(u8, &[PacketFilter])] = match name {
        "c1" => &[(1, &nets), (2, &ports)],
        "c2" => &[(1, &any)],
        "c3" => &[(1, &any), (2, &nets), (3, &ports)],
        "c4" => &[(1, &ports[2..3]), (2, &ports[3..])],
        other => panic!("{other}"),
    };
    let mut classifier = Classifier::new();
    for (bearer, filters) in bearers {
        classifier.add(*bearer, filters).unwrap();
    }
    classifier
}

#[test]
fn classification() {
    let vectors = vectors("tft");
    assert_eq!(vectors.len(), 47);
    for (id, inputs, expected) in vectors {
        let way = if inputs["direction"] == "uplink" { Way::Uplink } else { Way::Downlink };
        let headers = Headers {
            source: (address(inputs["src"]), inputs["sport"].parse().unwrap()),
            destination: (address(inputs["dst"]), inputs["dport"].parse().unwrap()),
            type_of_service: inputs["tos"].parse().unwrap(),
        };
        let bearer = classifier(inputs["classifier"]).classify(way, &headers);
        assert_eq!(bearer.unwrap_or(0).to_string(), expected["bearer"], "{id}");
    }
}
