//! The declaration of an impairment, the trait for its settings in a scenario, and the model that is built from them.

use super::held::HeldBurst;
use crate::loss::LossModel;
pub use crate::selection::FrameInfo;
use fullpipe_schema::component::{DynPartialEq, InvalidSettings, SettingsReader};
use fullpipe_schema::{Field, Tree, Value};
use fullpipe_units::{Instant, RandomStream};
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// A component that declares an impairment.
#[derive(Debug)]
pub struct ImpairmentComponent {
    /// The key of a direction of a link that enables the impairment.
    pub field: Field,
    /// Fills in defaults in the table of the direction.
    pub fill: fn(&mut Tree),
    /// Converts the value of the key to the settings of one or more impairments. The reader is that of the direction.
    /// If the value is invalid, adds errors to the reader's diagnostics and returns [`InvalidSettings`].
    pub read: fn(&mut SettingsReader<'_, '_>, &Value) -> Result<Vec<Impairment>, InvalidSettings>,
}

/// The settings of an impairment.
pub trait ImpairmentSettings: DynPartialEq + fmt::Debug + Send + Sync {
    /// Builds the model in its initial state.
    fn build(&self, context: &ImpairmentContext<'_>) -> ImpairmentModel;

    /// Returns the possible effects on frames, except loss and corruption.
    fn effects(&self) -> ImpairmentEffects {
        ImpairmentEffects::default()
    }
}

/// The settings of an impairment of any kind.
pub type Impairment = Arc<dyn ImpairmentSettings>;

impl PartialEq for dyn ImpairmentSettings {
    fn eq(&self, other: &Self) -> bool {
        self.dyn_eq(other as &dyn Any)
    }
}

/// The context in which an impairment is built.
#[derive(Clone, Copy, Debug)]
pub struct ImpairmentContext<'a> {
    /// Seed of the run.
    pub seed: u64,
    /// Name of the direction of the link.
    pub link: &'a str,
}

impl ImpairmentContext<'_> {
    /// Returns the random stream of this link for a purpose.
    pub fn random_stream(&self, purpose: &str) -> RandomStream {
        RandomStream::new(self.seed, self.link, purpose)
    }
}

/// The possible effects on frames that arrive. The auditor reports any other effect as a violation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImpairmentEffects {
    /// Whether frames can take longer than the link's delay.
    pub delays: bool,
    /// Whether frames can overtake each other.
    pub reorders: bool,
    /// Whether frames can arrive more than once.
    pub duplicates: bool,
    /// Whether the arrival times of frames can depend on later frames.
    pub holds: bool,
}

impl ImpairmentEffects {
    /// Returns the combined effects of two impairments.
    pub fn union(self, other: Self) -> Self {
        ImpairmentEffects {
            delays: self.delays || other.delays,
            reorders: self.reorders || other.reorders,
            duplicates: self.duplicates || other.duplicates,
            holds: self.holds || other.holds,
        }
    }

    /// Returns whether the next link can be computed together with this one. This requires that no arrival time depends
    /// on later frames, and that frames arrive at most once and in order.
    pub fn permit_chains(self) -> bool {
        !self.reorders && !self.duplicates && !self.holds
    }
}

/// The model of an impairment, with its state.
#[derive(Debug)]
pub enum ImpairmentModel {
    /// A loss model, which a link without other models applies itself.
    Loss(LossModel),
    /// Any other model, with its stage.
    Frames(ImpairmentStage, Box<dyn FrameModel>),
    /// A model that holds frames in bursts, so that their arrival times depend on later frames.
    Hold(HeldBurst),
}

impl ImpairmentModel {
    /// Returns a model of a stage. `process` is called for every frame, in order, including lost frames.
    pub fn new(stage: ImpairmentStage, process: impl FnMut(&FrameInfo, &mut FrameOutcome) + Send + 'static) -> Self {
        ImpairmentModel::Frames(stage, Box::new(process))
    }
}

/// The stage at which a model processes a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ImpairmentStage {
    /// At the end of transmission, before the link restores the order of frames.
    Transmission,
    /// After the link has restored the order.
    Reordering,
    /// When the arrival time is known.
    Arrival,
}

/// The effect of an impairment on frames: a closure, or a separate type if the impairment changes payloads.
pub trait FrameModel: Send {
    /// Processes the next frame. The link calls this method for every frame, in order, including lost frames.
    fn process(&mut self, frame: &FrameInfo, outcome: &mut FrameOutcome);

    /// Selects the byte to change in a payload of this length. Returns the position of the byte and the number that is
    /// added to it modulo 256; `None` if this model does not change payloads. The link calls this method for frames
    /// with [`FrameOutcome::damaged`].
    fn corrupt_payload(&mut self, _payload_bytes: usize) -> Option<(usize, u8)> {
        None
    }
}

impl<F: FnMut(&FrameInfo, &mut FrameOutcome) + Send> FrameModel for F {
    fn process(&mut self, frame: &FrameInfo, outcome: &mut FrameOutcome) {
        self(frame, outcome);
    }
}

impl fmt::Debug for dyn FrameModel {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("FrameModel")
    }
}

/// The outcome of a transmitted frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameOutcome {
    /// When the transmission of the frame ended.
    pub finish: Instant,
    /// When the frame arrives.
    pub arrival: Instant,
    /// Whether the frame can arrive before the previous frame.
    pub overtakes: bool,
    /// Whether the frame is lost.
    pub lost: bool,
    /// Whether a policer drops the frame.
    pub policed: bool,
    /// Where flipped bits are detected; `None` if no bits are flipped.
    pub corrupted: Option<ErrorDetection>,
    /// Where a changed byte of the payload is detected; `None` if no byte is changed.
    pub damaged: Option<ErrorDetection>,
    /// Whether the frame arrives twice.
    pub copied: bool,
}

impl FrameOutcome {
    /// Returns the outcome of a frame that arrives unchanged.
    pub fn new(finish: Instant, arrival: Instant) -> Self {
        FrameOutcome {
            finish,
            arrival,
            overtakes: false,
            lost: false,
            policed: false,
            corrupted: None,
            damaged: None,
            copied: false,
        }
    }

    /// Delays the arrival to that of the previous frame, unless the frame may overtake; `last` is the latest arrival of
    /// frames that keep their order.
    pub(crate) fn keep_order(&mut self, last: &mut Instant) {
        if !self.overtakes {
            self.arrival = self.arrival.max(*last);
            *last = self.arrival;
        }
    }
}

/// Where errors in a frame are detected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorDetection {
    /// At the far end of the link, which drops the frame.
    Link,
    /// At the destination.
    Destination,
}

impl ErrorDetection {
    /// Returns where errors are detected, depending on whether such frames are delivered.
    pub(super) fn delivered(delivered: bool) -> Self {
        if delivered { ErrorDetection::Destination } else { ErrorDetection::Link }
    }
}
