//! The tables of an LTE access network: radio counters of each UE (`ues.csv`) and RLC counters of each bearer
//! (`bearers.csv`).

use crate::rlc;
use crate::ue::DirectionCounters;
use fullpipe_archive::table;
use fullpipe_units::Instant;

table! {
    /// One row of `ues.csv`: one direction of a UE.
    pub struct UeRecord;
    /// The UEs of a run.
    pub static UES = "ues.csv": "One row for each direction of each UE of an LTE access network.";
    network: String, "", "Name of the access network.";
    ue: String, "", "Host that is the UE.";
    cell: String, "", "Name of its cell.";
    direction: String, "", "`downlink` or `uplink`.";
    packets: u64, "packets", "Packets offered to the UE's bearers.";
    delivered_packets: u64, "packets", "Packets delivered.";
    delivered_bytes: u64, "bytes", "Bytes of the packets delivered.";
    buffer_drops: u64, "packets", "Packets dropped because the RLC buffer was full.";
    lost_packets: u64, "packets", "Packets lost on the air.";
    blocks: u64, "", "Transport blocks sent for the first time.";
    block_bytes: u64, "bytes", "Bytes of those transport blocks.";
    retransmissions: u64, "", "Transport blocks retransmitted by HARQ.";
    tb_errors: u64, "", "Receptions of transport blocks that could not be decoded.";
    lost_blocks: u64, "", "Transport blocks given up after the last HARQ retransmission.";
    control_errors: u64, "", "Subframes in which the UE could not decode the control region (PCFICH and PDCCH).";
    mean_mcs: Option<f64>, "", "Mean MCS of the transport blocks sent for the first time.";
    blocks_by_mcs: Vec<u64>, "", "Transport blocks sent for the first time, by MCS from 0, joined with semicolons.";
    early_packets: u64, "packets", "Packets dropped because they arrived before the UE had its bearers.";
    connected_s: Instant, "s", "Time at which the UE was connected (RRC).";
    bearers_ready_s: Instant, "s", "Time at which the UE had all its bearers.";
}

table! {
    /// One row of `bearers.csv`: one direction of a bearer.
    pub struct BearerRecord;
    /// The bearers of a run.
    pub static BEARERS = "bearers.csv": "One row for each direction of each bearer of each UE of an LTE access network.";
    network: String, "", "Name of the access network.";
    ue: String, "", "Host that is the UE.";
    bearer: u64, "", "Number of the bearer: 0 is the default bearer, then dedicated ones in the order of the scenario.";
    qci: u64, "", "QoS class identifier.";
    mode: String, "", "RLC mode: `um`, `am`, or `saturated` (the buffer is always full).";
    direction: String, "", "`downlink` or `uplink`.";
    packets: u64, "packets", "Packets (SDUs) offered to RLC.";
    delivered_packets: u64, "packets", "Packets delivered.";
    delivered_bytes: u64, "bytes", "Bytes of the packets delivered.";
    buffer_drops: u64, "packets", "Packets dropped because the buffer was full.";
    discarded_packets: u64, "packets", "Packets dropped by the discard timer.";
    lost_packets: u64, "packets", "Packets lost on the air.";
    pdus: u64, "", "RLC PDUs sent: data, RLC retransmissions and status reports.";
    pdu_bytes: u64, "bytes", "Bytes of those PDUs.";
    retransmitted_pdus: u64, "", "Of these, data PDUs retransmitted by RLC.";
    status_pdus: u64, "", "Of these, status reports.";
    exhausted_pdus: u64, "", "Number of times that a PDU was still missing after `maxRetxThreshold` retransmissions.";
}

impl UeRecord {
    /// Returns a row with the counters of one direction. The names of network, UE, cell and direction and the times are
    /// empty.
    pub fn from_counters(counters: &DirectionCounters) -> Self {
        let sum: u64 = (0..).zip(counters.blocks_by_mcs).map(|(mcs, blocks): (u64, u64)| mcs * blocks).sum();
        UeRecord {
            packets: counters.packets,
            delivered_packets: counters.delivered_packets,
            delivered_bytes: counters.delivered_bytes,
            buffer_drops: counters.buffer_drops,
            lost_packets: counters.lost_packets,
            blocks: counters.blocks,
            block_bytes: counters.block_bytes,
            retransmissions: counters.retransmissions,
            tb_errors: counters.errors,
            lost_blocks: counters.lost_blocks,
            control_errors: counters.control_errors,
            mean_mcs: (counters.blocks > 0).then(|| sum as f64 / counters.blocks as f64),
            blocks_by_mcs: counters.blocks_by_mcs.to_vec(),
            early_packets: counters.early_packets,
            ..UeRecord::default()
        }
    }
}

impl BearerRecord {
    /// Returns a row with the counters of one direction. The columns that identify the bearer are empty.
    pub fn from_counters(counters: &rlc::Counters) -> Self {
        BearerRecord {
            packets: counters.sdus_offered,
            delivered_packets: counters.sdus_delivered,
            delivered_bytes: counters.bytes_delivered,
            buffer_drops: counters.sdus_dropped,
            discarded_packets: counters.sdus_discarded,
            lost_packets: counters.sdus_lost,
            pdus: counters.pdus,
            pdu_bytes: counters.pdu_bytes,
            retransmitted_pdus: counters.pdus_retransmitted,
            status_pdus: counters.status_pdus,
            exhausted_pdus: counters.retransmissions_exhausted,
            ..BearerRecord::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_has_the_unit_of_its_name() {
        for table in [UES.reference(), BEARERS.reference()] {
            assert_eq!(table.declaration_errors(), Vec::<String>::new());
        }
    }

    #[test]
    fn mean_mcs_is_weighted_by_blocks() {
        let mut counters = DirectionCounters { blocks: 4, ..DirectionCounters::default() };
        counters.blocks_by_mcs[2] = 1;
        counters.blocks_by_mcs[10] = 3;
        // (2 + 3 * 10) / 4.
        let record = UeRecord::from_counters(&counters);
        assert_eq!(record.mean_mcs, Some(8.0));
        let text = String::from_utf8(UES.to_bytes([record])).expect("it is text");
        let by_mcs = "0;0;1;0;0;0;0;0;0;0;3;0;0;0;0;0;0;0;0;0;0;0;0;0;0;0;0;0;0";
        assert!(text.contains(&format!(",8,{by_mcs},")), "{text}");
        assert_eq!(UeRecord::from_counters(&DirectionCounters::default()).mean_mcs, None);
    }
}
