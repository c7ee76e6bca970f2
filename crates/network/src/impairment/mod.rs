//! Impairments of a link after transmission: loss, loss schedules, black holes, policers, corruption, duplication,
//! jitter, reordering and aggregation. Each kind has its own random streams, named after the link.
//!
//! Each kind is declared in its own file. To add a kind, add a file and two lines here; for a loss model, add the lines
//! in `loss/mod.rs`.
//!
//! Every kind processes every transmitted frame, even if an earlier kind has removed the frame. Therefore the effect of
//! one kind on the n-th frame does not depend on the others. A frame is lost if any kind removes it. A frame that is
//! not lost can be corrupted, and a frame that arrives can arrive twice.
//!
//! **Order.** Frames keep their order unless the link has [`Reordering`] or a [`Jitter`] that is not `in_order`: a
//! frame that would overtake the previous frame arrives together with it. The extra delay of reordering is added
//! afterwards.
//!
//! **Copies** arrive at the same time as the original frame and are processed after it. Fragments of a larger packet
//! are not copied.

pub mod aggregation;
pub mod blackhole;
pub mod corruption;
pub mod duplication;
pub mod held;
pub mod jitter;
pub mod loss;
pub mod loss_schedule;
pub mod payload_corruption;
pub mod policer;
pub mod reordering;
pub mod settings;

pub use aggregation::Aggregation;
pub use blackhole::Blackhole;
pub use corruption::{Corruption, ErrorRate};
pub use duplication::Duplication;
pub use jitter::{Jitter, JitterDistribution};
pub use loss::bernoulli::BernoulliLoss;
pub use loss::droplist::Droplist;
pub use loss::gilbert_elliott::GilbertElliott;
pub use loss::periodic::PeriodicLoss;
pub use loss_schedule::{LossSchedule, LossStep};
pub use payload_corruption::PayloadCorruption;
pub use policer::Policer;
pub use reordering::Reordering;

use crate::loss::LossModel;
use crate::rebinding::Rebinding;
use fullpipe_schema::component::SettingsReader;
use fullpipe_schema::{Field, FieldKind, Tree};
use fullpipe_units::{Duration, Instant, RandomStream};
use held::HeldBurst;
use settings::{
    FrameInfo, FrameModel, FrameOutcome, Impairment, ImpairmentComponent, ImpairmentContext, ImpairmentEffects,
    ImpairmentModel, ImpairmentSettings, ImpairmentStage,
};
use std::any::Any;
use std::sync::Arc;

/// All impairments, in the order of the reference page.
pub const IMPAIRMENTS: &[&ImpairmentComponent] = &[
    &loss::LOSS,
    &loss_schedule::LOSS_SCHEDULE,
    &blackhole::BLACKHOLES,
    &policer::POLICER,
    &corruption::CORRUPTION,
    &payload_corruption::PAYLOAD_CORRUPTION,
    &duplication::DUPLICATION,
    &jitter::JITTER,
    &reordering::REORDERING,
    &aggregation::AGGREGATION,
];

/// The keys of all impairments in the table of a direction of a link.
pub static KEYS: [Field; IMPAIRMENTS.len()] = {
    let mut keys = [IMPAIRMENTS[0].field; IMPAIRMENTS.len()];
    let mut n = 0;
    while n < keys.len() {
        keys[n] = IMPAIRMENTS[n].field;
        n += 1;
    }
    keys
};

/// A frame number, limited so that sums stay far below 2^64.
const FRAME_NUMBER: FieldKind = FieldKind::Integer { min: 1, max: 1_000_000_000_000_000 };

/// Fills in defaults in the table of a direction of a link.
pub fn fill(direction: &mut Tree) {
    IMPAIRMENTS.iter().for_each(|component| (component.fill)(direction));
}

/// The impairments of a direction of a link. The default has none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Impairments {
    /// The settings of the impairments.
    pub list: Vec<Impairment>,
    /// The rebinding NAT that translates the datagrams of this direction; `None` if there is none.
    pub rebinding: Option<Rebinding>,
}

impl Impairments {
    /// Converts the checked keys of a direction. Keys that contradict each other are reported as errors to the reader
    /// and add no settings.
    pub fn read(reader: &mut SettingsReader<'_, '_>) -> Self {
        let tree = reader.tree;
        let given = IMPAIRMENTS.iter().filter_map(|component| Some((component, tree.get(component.field.key)?)));
        let list = given.flat_map(|(component, value)| (component.read)(reader, value).unwrap_or_default()).collect();
        Impairments { list, rebinding: None }
    }

    /// Adds an impairment.
    #[must_use]
    pub fn with(mut self, settings: impl ImpairmentSettings) -> Self {
        self.list.push(Arc::new(settings));
        self
    }

    /// Returns the settings of the impairments of type `T`.
    pub fn settings_of<T: ImpairmentSettings>(&self) -> impl Iterator<Item = &T> {
        self.list.iter().filter_map(|settings| (&**settings as &dyn Any).downcast_ref())
    }

    /// Inserts a step in the [`LossSchedule`], which is added if there is none.
    pub fn insert_loss_step(&mut self, step: LossStep) {
        let found = self.list.iter_mut().find_map(|settings| {
            let schedule = (&**settings as &dyn Any).downcast_ref::<LossSchedule>()?.clone();
            Some((settings, schedule))
        });
        match found {
            Some((settings, mut schedule)) => {
                schedule.insert(step);
                *settings = Arc::new(schedule);
            }
            None => self.list.push(Arc::new(LossSchedule { steps: vec![step], repeat: None })),
        }
    }

    /// Returns the impairments of a run that starts at `offset` within the loss schedules that repeat.
    #[must_use]
    pub fn starting_at(&self, offset: Duration) -> Impairments {
        let mut rotated = self.clone();
        for settings in &mut rotated.list {
            if let Some(schedule) = (&**settings as &dyn Any).downcast_ref::<LossSchedule>() {
                *settings = Arc::new(schedule.starting_at(offset));
            }
        }
        rotated
    }

    /// Returns the possible effects on frames that arrive.
    pub fn effects(&self) -> ImpairmentEffects {
        self.list.iter().fold(ImpairmentEffects::default(), |effects, settings| effects.union(settings.effects()))
    }

    /// Builds the models of the direction with this name. The first result is the first model of the kind
    /// [`ImpairmentModel::Loss`]; the second contains all other models. Each is `None` if there is no such model.
    pub fn build(&self, seed: u64, link: &str) -> (Option<LossModel>, Option<Box<FrameModels>>) {
        let context = ImpairmentContext { seed, link };
        let (mut loss, mut held) = (None, None);
        let mut models = Vec::<(_, Box<dyn FrameModel>)>::new();
        for settings in &self.list {
            match settings.build(&context) {
                ImpairmentModel::Loss(model) if loss.is_none() => loss = Some(model),
                ImpairmentModel::Loss(mut model) => models.push((
                    ImpairmentStage::Transmission,
                    Box::new(move |frame: &FrameInfo, outcome: &mut FrameOutcome| {
                        outcome.lost |= model.loses(frame.has_payload)
                    }),
                )),
                ImpairmentModel::Frames(stage, model) => models.push((stage, model)),
                ImpairmentModel::Hold(burst) => held = Some(burst),
            }
        }
        models.sort_by_key(|(stage, _)| *stage);
        let rebinding = self.rebinding.map(|rebinding| (rebinding, context.random_stream("rebinding")));
        if models.is_empty() && rebinding.is_none() && held.is_none() {
            return (loss, None);
        }
        (loss, Some(Box::new(FrameModels { models, effects: self.effects(), rebinding, held })))
    }
}

/// The impairment models of a direction of a link.
#[derive(Debug)]
pub struct FrameModels {
    /// The models with their stages, in order of stage.
    models: Vec<(ImpairmentStage, Box<dyn FrameModel>)>,
    effects: ImpairmentEffects,
    /// The NAT at the end of this direction, with its random stream.
    pub(crate) rebinding: Option<(Rebinding, RandomStream)>,
    /// The burst that is held at the end of the link.
    pub(crate) held: Option<HeldBurst>,
}

impl FrameModels {
    /// Returns the effects of all models.
    pub(crate) fn effects(&self) -> ImpairmentEffects {
        self.effects
    }

    /// Processes the next frame; `last` is the latest arrival of the frames that keep their order.
    pub(crate) fn process(&mut self, frame: &FrameInfo, last: &mut Instant, outcome: &mut FrameOutcome) {
        // All models are called for every frame, even if the frame is already lost.
        let mut in_order = false;
        for (stage, model) in &mut self.models {
            if !in_order && *stage > ImpairmentStage::Transmission {
                outcome.keep_order(last);
                in_order = true;
            }
            model.process(frame, outcome);
        }
        if !in_order {
            outcome.keep_order(last);
        }
    }

    /// Returns the position of the byte that changes in a payload of this length, and the number that is added to the
    /// byte.
    pub(crate) fn damage(&mut self, payload_bytes: usize) -> Option<(usize, u8)> {
        self.models.iter_mut().find_map(|(_, model)| model.corrupt_payload(payload_bytes))
    }
}
