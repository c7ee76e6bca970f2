//! Tests of real time with the built command, real programs and an ordinary user without capabilities. After every kind
//! of end they check that the run leaves nothing on the machine.
//!
//! No test is skipped: if the machine does not permit namespaces, the tests fail with the output of `fullpipe doctor`.
//! If the superuser runs them, they switch to uid 65534 for the operations of an ordinary user. If an ordinary user
//! runs them, they do not switch.

mod bench;
mod clients;
mod hostile;
mod icmp;
mod interfaces;
mod killed;
mod nat;
mod ordinary;
mod programs;
mod replay;
mod shell;
mod world;
