//! Bit errors, per frame or per bit.

use super::settings::{
    ErrorDetection, ImpairmentComponent, ImpairmentContext, ImpairmentModel, ImpairmentSettings, ImpairmentStage,
};
use fullpipe_schema::component::InvalidSettings;
use fullpipe_schema::{Field, FieldKind, Table, keys};
use fullpipe_units::math;
use std::sync::Arc;

pub(super) static CORRUPTION: ImpairmentComponent = ImpairmentComponent {
    field: Field::optional("corruption", FieldKind::Table(&TABLE), "none", "Bit errors."),
    fill: |_| (),
    read: |reader, value| {
        let tree = value.table();
        let errors = match (tree.get("probability"), tree.get("bit_error_rate")) {
            (Some(probability), None) => ErrorRate::PerFrame(probability.number()),
            (None, Some(rate)) => ErrorRate::PerBit(rate.number()),
            (one, _) => {
                let path = reader.path_of("corruption");
                let what = if one.is_some() { "both probability and" } else { "neither probability nor" };
                let expected = vec!["exactly one of them".into()];
                reader.check.add_error(tree.place, &path, format!("{path} has {what} bit_error_rate"), expected);
                return Err(InvalidSettings);
            }
        };
        Ok(vec![Arc::new(Corruption { errors, delivered: tree.boolean("delivered") })])
    },
};

static TABLE: Table = Table {
    name: "corruption",
    text: "Bit errors. Exactly one of `probability` and `bit_error_rate` must be given.",
    fields: &[keys! {
        /// Probability that a frame has bit errors.
        "probability": FieldKind::PROBABILITY, optional "from `bit_error_rate`";
        /// Probability that a bit on the wire is wrong.
        "bit_error_rate": FieldKind::PROBABILITY, optional "from `probability`";
        /// Whether a corrupted frame is forwarded to its destination, whose checksum rejects it; otherwise the far end
        /// of the link drops it.
        "delivered": FieldKind::Boolean, default "false";
    }],
    ..Table::EMPTY
};

/// Bit errors in transmitted frames.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Corruption {
    /// The error probability, per frame or per bit.
    pub errors: ErrorRate,
    /// Whether a corrupted frame is forwarded to its destination host, which drops it because its transport checksum is
    /// wrong. Otherwise, the far end of the link drops the frame because its frame check sequence is wrong.
    pub delivered: bool,
}

/// The error probability, per frame or per bit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ErrorRate {
    /// Each frame is corrupted with this probability.
    PerFrame(f64),
    /// Each bit on the wire is flipped with this probability, independently of the others.
    PerBit(f64),
}

impl ErrorRate {
    /// Returns the probability that a frame of this size is corrupted. For n bits on the wire and probability b per
    /// bit, this is 1 - (1 - b)^n.
    pub fn frame_error_probability(self, wire_bytes: u32) -> f64 {
        match self {
            ErrorRate::PerFrame(probability) => probability,
            // Keeps precision for small probabilities: -expm1(bits x log1p(-b)).
            ErrorRate::PerBit(bit) if bit < 1.0 => -math::exp_m1(8.0 * f64::from(wire_bytes) * math::ln_1p(-bit)),
            ErrorRate::PerBit(_) => 1.0,
        }
    }
}

impl ImpairmentSettings for Corruption {
    fn build(&self, context: &ImpairmentContext<'_>) -> ImpairmentModel {
        let (Corruption { errors, delivered }, mut stream) = (*self, context.random_stream("corruption"));
        ImpairmentModel::new(ImpairmentStage::Transmission, move |frame, outcome| {
            if stream.bernoulli(errors.frame_error_probability(frame.wire_bytes)) {
                outcome.corrupted = Some(ErrorDetection::delivered(delivered));
            }
        })
    }
}
