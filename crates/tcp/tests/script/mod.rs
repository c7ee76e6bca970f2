//! Tests as text scripts, similar to packetdrill (Cardwell et al., USENIX ATC 2013): incoming packets, expected outgoing packets, calls
//! and values, each with its time. The script is the application and the peer of one connection.
//!
//! # Format
//!
//! One item per line; `#` starts a comment. Settings come first:
//!
//! ```text
//! preset linux             # or ns3; the preset that the rest changes
//! set nagle false          # any field of `Config` by its name: numbers, true/false, durations (40ms, 1.5s), none
//! set keep_alive 10s/1s/3  # idle time, interval, probes; or `default`
//! control halving          # the tests' own control, or one of the catalogue's (newreno, cubic, ...)
//! side client              # or server
//! cookie 0a1b2c3d          # Fast Open: a client's, with a cached MSS of 1460, or the one that a server issues
//! ```
//!
//! Then lines with a time: `25ms` since the start, `+5ms` after the previous line, none for the same time, and `*` (for `>` only) for any
//! time. Timers of the connection that are due before that time are executed first, at their own time.
//!
//! ```text
//! +10ms  < S. 0:0(0) ack 1 win 65535 <mss 1460, sackOK, TS val 7 ecr 1, wscale 7>     an incoming packet
//! 20ms   > [ect0] . 1:1001(1000) ack 1 win 500                                        an expected outgoing packet
//! +1ms   write 5000 | write 5000 takes 3000 | read 1000 | read all | finish | abort   calls
//! +0     toobig 1400 seq 1              a router with an MTU of 1400 for IPv4 could not forward the packet with this number
//! +0     assert state FIN-WAIT-2, cwnd 14480, ssthresh >= 2000, rto 1s                values, see `measure`
//! +0     events connected readable          exactly these events occurred since the last such line
//! +0     handshake 10ms win 8000 <mss 1460> a handshake of this duration; window and options of the peer's SYN
//! ```
//!
//! Every outgoing packet must be listed at its exact time. The script fails at the first packet that is not listed, and if it ends before
//! a listed packet was sent. Calls at the time of the previous line are executed before the output of that time, as when an application
//! reads data immediately on arrival. Numbers are relative: the SYN is 0, the first byte 1. Flags are `S F R P . U E W A` (`.` is ACK, A
//! is AE). The number of bytes in parentheses repeats `end - start` and is checked. A packet without a codepoint in brackets is not ECT.
//!
//! **Options.** `mss N`, `wscale N`, `sackOK`, `TS val N ecr N`, `sack 5:9 20:30`, `FO` (a request), `FO 0a1b2c3d` (a cookie), `ECN0 e0
//! ce e1` or `ECN1 e1 ce e0` (Accurate ECN counters: kind 172 or 174, as many as in the segment), `noTS`. An expected list must be
//! complete; an omitted value, as in `<mss, TS>`, matches any. Without an expected list, a SYN may have any options, and any other packet
//! only the negotiated timestamps. On incoming packets, negotiated timestamps are added unless they are given: the peer's clock is 1000
//! plus the milliseconds since the start, and it echoes the newest timestamp that was sent. Our clock is 1 plus the milliseconds. `win`
//! is the value of the field in the segment. If it is omitted, it is not checked, or has the value of the previous packet.

#![allow(unreachable_pub, reason = "a module of a test")]

mod parse;
mod run;
mod settings;

pub use run::run;
