//! Packets, links, queues, loss, shared Ethernet, routing and topologies.

pub mod packet;
