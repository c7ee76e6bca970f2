//! What a scenario states of an impairment: the settings as an object, the model that is built from them, and what an
//! impairment declares of itself.

use crate::loss::LossModel;
pub use crate::selection::Frame;
use fullpipe_schema::component::{Comparable, Invalid, Reader};
use fullpipe_schema::{Field, Tree, Value};
use fullpipe_units::{Instant, Stream};
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// An impairment as a component.
#[derive(Debug)]
pub struct ImpairmentComponent {
    /// The key of a direction of a link that asks for it.
    pub field: Field,
    /// Fills in defaults in the table of the direction.
    pub fill: fn(&mut Tree),
    /// Converts the value of the key into settings, one or several. The reader is that of the direction.
    pub read: fn(&mut Reader<'_, '_>, &Value) -> Result<Vec<Impairment>, Invalid>,
}

/// The settings of an impairment.
pub trait ImpairmentSettings: Comparable + fmt::Debug + Send + Sync {
    /// The model at the beginning of a run.
    fn build(&self, context: &ImpairmentContext<'_>) -> ImpairmentModel;

    /// What else may happen to frames than that some are lost or corrupted.
    fn effects(&self) -> Effects {
        Effects::default()
    }
}

/// The settings of an impairment, whichever it is.
pub type Impairment = Arc<dyn ImpairmentSettings>;

impl PartialEq for dyn ImpairmentSettings {
    fn eq(&self, other: &Self) -> bool {
        self.equals(other as &dyn Any)
    }
}

/// What an impairment is built for.
#[derive(Clone, Copy, Debug)]
pub struct ImpairmentContext<'a> {
    /// Seed of the run.
    pub seed: u64,
    /// Name of the direction of the link.
    pub link: &'a str,
}

impl ImpairmentContext<'_> {
    /// The random stream of this link for a purpose.
    pub fn random(&self, purpose: &str) -> Stream {
        Stream::new(self.seed, self.link, purpose)
    }
}

/// What may happen to frames that arrive. The auditor excludes the rest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    /// They may arrive later than the link's delay says.
    pub delays: bool,
    /// They may overtake each other.
    pub reorders: bool,
    /// They may arrive more than once.
    pub duplicates: bool,
}

impl Effects {
    /// The effects of two impairments together.
    pub fn plus(self, other: Self) -> Self {
        Effects {
            delays: self.delays || other.delays,
            reorders: self.reorders || other.reorders,
            duplicates: self.duplicates || other.duplicates,
        }
    }
}

/// A model with its state.
#[derive(Debug)]
pub enum ImpairmentModel {
    /// Loss that a link without other models computes.
    Loss(LossModel),
    /// Any other.
    Frames(Stage, Box<dyn FrameModel>),
}

impl ImpairmentModel {
    /// A model of a stage. It is called for every frame, in order, also for those that are lost already.
    pub fn new(stage: Stage, process: impl FnMut(&Frame, &mut FrameOutcome) + Send + 'static) -> Self {
        ImpairmentModel::Frames(stage, Box::new(process))
    }
}

/// When a model processes a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// At the end of transmission, before the link restores the order of frames.
    Transmission,
    /// After that.
    Reordering,
    /// When the time of arrival is known.
    Arrival,
}

/// What an impairment does to frames: a function with its state, or a type if it changes payloads.
pub trait FrameModel: Send {
    /// Processes the next frame. It is called for every frame, in order, also for those that are lost already.
    fn process(&mut self, frame: &Frame, outcome: &mut FrameOutcome);

    /// The place of a byte in a payload of this length, and what is added to the byte modulo 256, if this model changes
    /// payloads. It is called for frames with [`FrameOutcome::damaged`].
    fn damage(&mut self, _payload_bytes: usize) -> Option<(usize, u8)> {
        None
    }
}

impl<F: FnMut(&Frame, &mut FrameOutcome) + Send> FrameModel for F {
    fn process(&mut self, frame: &Frame, outcome: &mut FrameOutcome) {
        self(frame, outcome);
    }
}

impl fmt::Debug for dyn FrameModel {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("FrameModel")
    }
}

/// What happens to a transmitted frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameOutcome {
    /// When its transmission ended.
    pub finish: Instant,
    /// When it arrives.
    pub arrival: Instant,
    /// Whether it may arrive before the frame ahead of it.
    pub overtakes: bool,
    /// Whether it is lost.
    pub lost: bool,
    /// If bits are flipped: where it is dropped.
    pub corrupted: Option<Detection>,
    /// If a byte of its payload is changed: where it is dropped.
    pub damaged: Option<Detection>,
    /// Whether it arrives twice.
    pub copied: bool,
}

impl FrameOutcome {
    /// A frame that arrives unchanged.
    pub fn new(finish: Instant, arrival: Instant) -> Self {
        FrameOutcome { finish, arrival, overtakes: false, lost: false, corrupted: None, damaged: None, copied: false }
    }

    /// Lets it arrive with the frame before it instead of earlier, unless it may overtake; `last` is the latest arrival of
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
pub enum Detection {
    /// At the far end of the link, which drops the frame.
    Link,
    /// At the destination.
    Destination,
}

impl Detection {
    /// Where they are detected if such frames are delivered or not.
    pub(super) fn delivered(delivered: bool) -> Self {
        if delivered { Detection::Destination } else { Detection::Link }
    }
}
