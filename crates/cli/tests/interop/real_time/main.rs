//! Real time as users have it: the built command, real programs, an ordinary user without any capability, and what is left
//! behind however a run ends.
//!
//! Nothing here skips: where the machine forbids namespaces, the tests fail with what `fullpipe doctor` says about it. Run by
//! the superuser they become uid 65534 for what an ordinary user does; run by an ordinary user they stay who they are.

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
