//! A policer: a token bucket, without a queue, that drops nonconforming frames.
//!
//! It is the single-rate policer of Linux (`tc-police(8)`: `rate`, `burst`, action drop), which is the meter of RFC
//! 2697 with one bucket. The bucket initially holds `burst` bytes and is refilled at `rate` up to `burst`. Each frame
//! consumes its number of bytes on the wire. If the bucket holds fewer bytes, the frame is dropped and consumes none.

use super::settings::{ImpairmentComponent, ImpairmentContext, ImpairmentModel, ImpairmentSettings, ImpairmentStage};
use fullpipe_schema::{Field, FieldKind, Table, keys};
use fullpipe_units::{Instant, Rate};
use std::sync::Arc;

pub(super) static POLICER: ImpairmentComponent = ImpairmentComponent {
    field: Field::optional(
        "policer",
        FieldKind::Table(&TABLE),
        "none",
        "A token bucket after the transmission that drops the frames that exceed it.",
    ),
    fill: |_| (),
    read: |_, value| {
        let tree = value.table();
        Ok(vec![Arc::new(Policer { rate: tree.rate("rate"), burst_bytes: tree.size("burst") })])
    },
};

static TABLE: Table = Table {
    name: "policer",
    text: "A token bucket without a queue at the end of the transmission, as `tc-police(8)`. The bucket starts full. A frame takes \
           its bytes on the wire, including framing. A frame for which the bucket has too few is dropped, takes nothing and is \
           counted in `losses`.",
    fields: &[keys! {
        /// Rate at which the bucket fills.
        "rate": FieldKind::RATE, required;
        /// Size of the bucket. A larger frame is always dropped.
        "burst": FieldKind::SIZE, required;
    }],
    ..Table::EMPTY
};

/// A token bucket that drops nonconforming frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policer {
    /// Rate at which the bucket fills.
    pub rate: Rate,
    /// Size of the bucket in bytes on the wire.
    pub burst_bytes: u64,
}

/// Tokens per bit, chosen so that the bucket gains exactly `rate` tokens per nanosecond.
const TOKENS_PER_BIT: u128 = 1_000_000_000;

/// The bucket of a [`Policer`].
#[derive(Debug)]
struct Bucket {
    policer: Policer,
    tokens: u128,
    last: Instant,
}

impl Bucket {
    /// Returns whether a frame whose transmission ends at `at` passes. Must be called in order of time.
    fn passes(&mut self, at: Instant, wire_bytes: u32) -> bool {
        let gained =
            u128::from(at.saturating_since(self.last).as_nanos()) * u128::from(self.policer.rate.bits_per_second());
        self.tokens = (self.tokens + gained).min(size(self.policer.burst_bytes));
        self.last = at;
        let needed = size(u64::from(wire_bytes));
        let passes = needed <= self.tokens;
        if passes {
            self.tokens -= needed;
        }
        passes
    }
}

fn size(bytes: u64) -> u128 {
    u128::from(bytes) * 8 * TOKENS_PER_BIT
}

impl ImpairmentSettings for Policer {
    fn build(&self, _: &ImpairmentContext<'_>) -> ImpairmentModel {
        let mut bucket = Bucket { policer: *self, tokens: size(self.burst_bytes), last: Instant::ZERO };
        ImpairmentModel::new(ImpairmentStage::Transmission, move |frame, outcome| {
            outcome.policed |= !bucket.passes(outcome.finish, frame.wire_bytes);
        })
    }
}
