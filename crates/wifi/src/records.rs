//! The table of a Wi-Fi network: counters of each station (`stations.csv`).

use crate::report::LinkCounters;
use fullpipe_archive::table;
use fullpipe_units::Duration;

table! {
    /// One row of `stations.csv`: one direction of a station.
    pub struct StationRecord;
    /// The stations of a run.
    pub static STATIONS = "stations.csv": "One row for each direction of each station of a Wi-Fi network.";
    network: String, "", "Name of the access network.";
    station: String, "", "Host that is the station.";
    direction: String, "", "`downlink` or `uplink`.";
    packets: u64, "packets", "Packets offered.";
    delivered_packets: u64, "packets", "Packets delivered.";
    delivered_bytes: u64, "bytes", "Bytes of the packets delivered.";
    buffer_drops: u64, "packets", "Packets dropped because the queue was full.";
    early_drops: u64, "packets", "Packets dropped by FQ-CoDel although there was room.";
    lost_packets: u64, "packets", "Packets given up after the last transmission.";
    ppdus: u64, "", "Data PPDUs transmitted.";
    mpdus: u64, "", "MPDUs in these PPDUs, retries included.";
    retries: u64, "", "MPDUs transmitted again.";
    collisions: u64, "", "Transmissions that collided with another node.";
    failures: u64, "", "Transmissions without a collision that got no response.";
    airtime_s: Duration, "s", "Time on the air of the data PPDUs.";
    mean_aggregate: Option<f64>, "", "Mean number of MPDUs in a PPDU.";
    mean_access_delay_s: Option<f64>, "s", "Mean time in the queue until the first transmission, over the delivered packets.";
    mean_air_delay_s: Option<f64>, "s", "Mean time from the first transmission to the delivery, over the delivered packets.";
}

impl StationRecord {
    /// Returns a row with the counters of one direction. The names of network, station and direction are empty.
    pub fn from_counters(counters: &LinkCounters) -> Self {
        let mean = |sum: f64, count: u64| (count > 0).then(|| sum / count as f64);
        StationRecord {
            packets: counters.packets,
            delivered_packets: counters.delivered_packets,
            delivered_bytes: counters.delivered_bytes,
            buffer_drops: counters.buffer_drops,
            early_drops: counters.early_drops,
            lost_packets: counters.lost_packets,
            ppdus: counters.ppdus,
            mpdus: counters.mpdus,
            retries: counters.retries,
            collisions: counters.collisions,
            failures: counters.failures,
            airtime_s: counters.airtime,
            mean_aggregate: mean(counters.mpdus as f64, counters.ppdus),
            mean_access_delay_s: mean(counters.queue_delay.as_secs_f64(), counters.delivered_packets),
            mean_air_delay_s: mean(counters.air_delay.as_secs_f64(), counters.delivered_packets),
            ..StationRecord::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_has_the_unit_of_its_name() {
        assert_eq!(STATIONS.reference().declaration_errors(), Vec::<String>::new());
    }

    #[test]
    fn means_are_over_ppdus_and_delivered_packets() {
        let counters = LinkCounters {
            ppdus: 4,
            mpdus: 10,
            delivered_packets: 8,
            queue_delay: Duration::from_millis(16),
            air_delay: Duration::from_millis(4),
            ..LinkCounters::default()
        };
        // 10 / 4 MPDUs, 16 / 8 ms and 4 / 8 ms.
        let record = StationRecord::from_counters(&counters);
        assert_eq!(record.mean_aggregate, Some(2.5));
        assert_eq!((record.mean_access_delay_s, record.mean_air_delay_s), (Some(0.002), Some(0.0005)));
        let empty = StationRecord::from_counters(&LinkCounters::default());
        assert_eq!((empty.mean_aggregate, empty.mean_air_delay_s), (None, None));
    }
}
