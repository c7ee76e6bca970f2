//! Hosts, their endpoints of every kind, and the applications above them, with the interface for observers.
//!
//! The modules build on each other in this order, and none uses a later one: the tables of each kind of endpoint
//! ([`tcp`], [`quic_model`], [`quic_stack`], [`tunnel`], [`kernel`]), the table of all endpoints ([`endpoints`]), the
//! state of all hosts ([`state`]), the opening of endpoints ([`open`]), the interface of applications ([`at_host`]),
//! the service of endpoints ([`service`], [`programs`]), packets and timers that reach hosts ([`hosts`]), inspection and
//! changes between the steps of a run ([`steps`]).

mod answers;
mod at_host;
mod binding;
mod endpoints;
mod flow;
pub(crate) mod footprint;
mod hosts;
mod icmp;
mod kernel;
mod open;
mod ports;
mod programs;
mod quic_model;
mod quic_stack;
mod service;
mod slots;
mod state;
mod steps;
mod streams;
mod tcp;
#[cfg(test)]
mod tests;
mod timers;
mod tunnel;
mod wakeups;
mod watch;

pub(crate) use binding::ConversationEnd;
pub(crate) use endpoints::ConnectionMut;
pub(crate) use flow::{EndpointFactory, Flow, ends};
pub(crate) use kernel::{ETHERNET_HEADER_BYTES, ETHERTYPE_ARP, ETHERTYPE_IPV4, ETHERTYPE_IPV6, RealHost, RealHosts};
pub(crate) use state::World;
pub(crate) use tcp::TcpFactory;
pub(crate) use tunnel::TunnelFactory;
pub(crate) use watch::sender;
