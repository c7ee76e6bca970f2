//! What happens to frames of a link after their transmission: loss in bursts, by number or for a time, corruption,
//! duplication, jitter, reordering. Each kind has a random stream of its own, named after the link.
//!
//! Every frame that was transmitted passes every kind in the order of the fields of [`Impairments`], also if one before
//! has taken it: so what one kind does to the n-th frame does not depend on what others do. A frame is lost if any kind
//! says so. What is not lost may be corrupted; what arrives may arrive twice.
//!
//! **Order.** Frames keep their order unless [`Reordering`] or a [`Jitter`] that is not `in_order` is asked for: a frame
//! that would overtake arrives with the one before it. Reordering comes on top: its extra delay is added after that.
//!
//! **Copies** have their original's time of arrival and stand behind it. Fragments of a larger packet are not copied.

use crate::rebinding::Rebinding;
use crate::selection::{Frame, Frames, PayloadCorruption, PayloadCorruptor, Selection, Selector};
use fullpipe_units::{Duration, Instant, Stream, math};

/// What a link does to frames. The default does nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Impairments {
    /// The run's seed.
    pub seed: u64,
    /// The link's name: streams are f(seed, this name, the kind).
    pub link: String,
    /// Loss in bursts.
    pub gilbert_elliott: Option<GilbertElliott>,
    /// Loss of frames chosen one by one.
    pub selective_loss: Option<Selection>,
    /// Loss by number.
    pub droplist: Option<Droplist>,
    /// Times at which everything is lost.
    pub blackholes: Vec<Blackhole>,
    /// Bit errors.
    pub corruption: Option<Corruption>,
    /// Damage to the content of datagrams.
    pub payload_corruption: Option<PayloadCorruption>,
    /// What a translator that changes its mappings does to the datagrams of this direction.
    pub rebinding: Option<Rebinding>,
    /// Copies: each frame that arrives does so twice with this probability.
    pub duplication: f64,
    /// Delay that varies.
    pub jitter: Option<Jitter>,
    /// Frames that overtake others.
    pub reordering: Option<Reordering>,
}

/// Loss by a chain of two states (Gilbert 1960, Elliott 1963). Each frame is lost with the probability of the state; then
/// the state may change. The first state is drawn from the stationary distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GilbertElliott {
    /// Probability, per frame, of going from the good state to the bad.
    pub good_to_bad: f64,
    /// Probability, per frame, of going from the bad state to the good.
    pub bad_to_good: f64,
    /// Probability of loss in the good state.
    pub loss_good: f64,
    /// Probability of loss in the bad state.
    pub loss_bad: f64,
}

impl GilbertElliott {
    /// Share of frames that meet the bad state: p / (p + r).
    pub fn bad_share(&self) -> f64 {
        let sum = self.good_to_bad + self.bad_to_good;
        if sum > 0.0 { self.good_to_bad / sum } else { 0.0 }
    }

    /// Mean share of lost frames: the states' probabilities, weighted.
    pub fn mean_loss(&self) -> f64 {
        let bad = self.bad_share();
        (1.0 - bad) * self.loss_good + bad * self.loss_bad
    }

    /// Mean number of frames lost in succession; 0 if none ever is, infinite if all are.
    ///
    /// Each burst has one first frame: the mean is P(lost) / P(lost, the one before not). With no loss in the good state
    /// and nothing but loss in the bad one it is 1 / r.
    pub fn mean_burst(&self) -> f64 {
        let loss = self.mean_loss();
        if loss <= 0.0 {
            return 0.0;
        }
        let bad = self.bad_share();
        let after_good = (1.0 - self.good_to_bad) * self.loss_good + self.good_to_bad * self.loss_bad;
        let after_bad = (1.0 - self.bad_to_good) * self.loss_bad + self.bad_to_good * self.loss_good;
        let first = (1.0 - bad) * (1.0 - self.loss_good) * after_good + bad * (1.0 - self.loss_bad) * after_bad;
        loss / first
    }
}

/// Loss of frames by their number on the link, from 1.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Droplist {
    /// Whether only frames with transport payload are counted.
    pub data_only: bool,
    /// Which frames are counted at all.
    pub frames: Frames,
    /// Numbers, in any order.
    pub numbers: Vec<u64>,
}

/// A time in which every frame whose transmission ends, or which arrives, is lost; it may come again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Blackhole {
    /// From this instant on, since the start of the run.
    pub from: Duration,
    /// Up to this one, exclusive.
    pub until: Duration,
    /// It begins again after this time, counted from begin to begin; 0: it does not.
    pub period: Duration,
    /// How often it comes, if it comes again; 0: for ever.
    pub times: u64,
    /// Whether it takes the frames that arrive in it, instead of those whose transmission ends in it.
    pub of_arrivals: bool,
}

impl Blackhole {
    /// Whether it takes a frame whose transmission ended at `finish` and which arrives at `arrival`.
    fn takes(&self, finish: Instant, arrival: Instant) -> bool {
        let at = if self.of_arrivals { arrival } else { finish }.saturating_since(Instant::ZERO);
        if at < self.from {
            return false;
        }
        let since_first = (at - self.from).as_nanos();
        let round = since_first.checked_div(self.period.as_nanos()).unwrap_or(0);
        if self.times > 0 && round >= self.times {
            return false;
        }
        since_first - round * self.period.as_nanos() < (self.until.saturating_sub(self.from)).as_nanos()
    }
}

/// Bit errors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Corruption {
    /// How often.
    pub errors: Errors,
    /// Whether a corrupted frame travels on, to be dropped at its destination host by the transport's checksum; otherwise
    /// the far end of the link drops it (a frame check sequence).
    pub delivered: bool,
}

/// How often frames are corrupted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Errors {
    /// Each frame with this probability.
    PerFrame(f64),
    /// Each bit on the wire, independently, with this probability.
    PerBit(f64),
}

impl Errors {
    /// Probability that a frame is corrupted: 1 - (1 - b)^bits for bit errors.
    pub fn of_frame(self, wire_bytes: u32) -> f64 {
        match self {
            Errors::PerFrame(probability) => probability,
            // Without losing small probabilities: -expm1(bits x log1p(-b)).
            Errors::PerBit(bit) if bit < 1.0 => -math::exp_m1(8.0 * f64::from(wire_bytes) * math::ln_1p(-bit)),
            Errors::PerBit(_) => 1.0,
        }
    }
}

/// A random time on top of the link's delay, drawn for each frame; never negative.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Jitter {
    /// How it is distributed.
    pub distribution: JitterDistribution,
    /// Whether frames keep their order; otherwise those with less jitter overtake.
    pub in_order: bool,
}

/// Distribution of a [`Jitter`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JitterDistribution {
    /// Uniform in [0, max).
    Uniform {
        /// Largest.
        max: Duration,
    },
    /// Normal (Box and Muller 1958); what would be negative is 0.
    Normal {
        /// Mean.
        mean: Duration,
        /// Standard deviation.
        deviation: Duration,
    },
    /// Exponential.
    Exponential {
        /// Mean.
        mean: Duration,
    },
}

/// Frames that arrive out of order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reordering {
    /// Each frame arrives `extra` later with this probability; others overtake it.
    Late {
        /// Probability per frame.
        probability: f64,
        /// By how much it is late.
        extra: Duration,
    },
    /// As netem's `reorder`: all frames arrive `extra` later, save that after `gap` - 1 such ones each has this
    /// probability of going at once, and so of overtaking; then the count begins again. (`gap` 0 is taken as 1.)
    Early {
        /// Probability per frame that is due.
        probability: f64,
        /// Distance of frames that may overtake.
        gap: u64,
        /// By how much the others are late.
        extra: Duration,
    },
}

/// What becomes of a transmitted frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fate {
    pub(crate) arrival: Instant,
    pub(crate) lost: bool,
    pub(crate) corrupted: bool,
    /// A byte of its payload changes.
    pub(crate) damaged: bool,
    pub(crate) copied: bool,
}

/// Impairments at work.
#[derive(Clone, Debug)]
pub(crate) struct Impaired {
    loss: Option<(GilbertElliott, bool, Stream)>,
    /// Numbers to be lost, the next one last.
    droplist: Vec<u64>,
    data_only: bool,
    listed_frames: Frames,
    counted: u64,
    selector: Option<Selector>,
    payload_corruptor: Option<PayloadCorruptor>,
    rebinding: Option<Rebinding>,
    blackholes: Vec<Blackhole>,
    corruption: Option<(Corruption, Stream)>,
    duplication: Option<(f64, Stream)>,
    jitter: Option<(Jitter, Stream)>,
    reordering: Option<(Reordering, u64, Stream)>,
}

impl Impaired {
    /// Nothing if nothing is asked for.
    pub(crate) fn new(impairments: Impairments) -> Option<Self> {
        let Impairments {
            seed,
            link,
            gilbert_elliott,
            selective_loss,
            droplist,
            blackholes,
            corruption,
            payload_corruption,
            rebinding,
            duplication,
            jitter,
            reordering,
        } = impairments;
        let stream = |purpose| Stream::new(seed, &link, purpose);
        let data_only = droplist.as_ref().is_some_and(|list| list.data_only);
        let listed_frames = droplist.as_ref().map_or(Frames::All, |list| list.frames);
        let mut numbers = droplist.map_or_else(Vec::new, |list| list.numbers);
        numbers.sort_unstable_by(|a, b| b.cmp(a));
        numbers.dedup();
        let impaired = Impaired {
            loss: gilbert_elliott.map(|model| {
                let mut stream = stream("burst loss");
                (model, stream.chance(model.bad_share()), stream)
            }),
            droplist: numbers,
            data_only,
            listed_frames,
            counted: 0,
            selector: selective_loss.map(|selection| Selector::new(selection, stream("loss"))),
            payload_corruptor: payload_corruption.map(|corruption| {
                PayloadCorruptor::new(corruption, stream("payload corruption"), stream("corrupted bytes"))
            }),
            rebinding,
            blackholes,
            corruption: corruption.map(|corruption| (corruption, stream("corruption"))),
            duplication: (duplication > 0.0).then(|| (duplication, stream("duplication"))),
            jitter: jitter.map(|jitter| (jitter, stream("jitter"))),
            reordering: reordering.map(|reordering| (reordering, 0, stream("reordering"))),
        };
        let nothing = impaired.loss.is_none()
            && impaired.droplist.is_empty()
            && impaired.blackholes.is_empty()
            && impaired.corruption.is_none()
            && impaired.selector.is_none()
            && impaired.payload_corruptor.is_none()
            && impaired.rebinding.is_none()
            && impaired.duplication.is_none()
            && impaired.jitter.is_none()
            && impaired.reordering.is_none();
        (!nothing).then_some(impaired)
    }

    /// Whether frames may overtake each other.
    pub(crate) fn disorders(&self) -> bool {
        self.reordering.is_some() || self.jitter.as_ref().is_some_and(|(jitter, _)| !jitter.in_order)
    }

    /// Whether what arrives is each transmitted frame at most once, in order.
    pub(crate) fn keeps_order_and_number(&self) -> bool {
        !self.disorders() && self.duplication.is_none()
    }

    /// The corruption of payloads, if there is any.
    pub(crate) fn payload_corruptor(&mut self) -> Option<&mut PayloadCorruptor> {
        self.payload_corruptor.as_mut()
    }

    /// The rebinding translator, if frames meet one at the end of this direction.
    pub(crate) fn rebinding(&self) -> Option<Rebinding> {
        self.rebinding
    }

    /// Whether a corrupted frame travels on.
    pub(crate) fn delivers_corrupted(&self) -> bool {
        self.corruption.as_ref().is_some_and(|(corruption, _)| corruption.delivered)
    }

    /// The fate of the next frame, whose transmission ended at `finish` and which would arrive at `arrival`; `last` is
    /// the latest arrival of those that keep order.
    pub(crate) fn next(&mut self, finish: Instant, arrival: Instant, last: &mut Instant, frame: &Frame) -> Fate {
        // One after the other, and no short cut: each kind sees every frame.
        let burst = self.burst_loses();
        let chosen = self.selector.as_mut().is_some_and(|selector| selector.chooses(frame, false));
        let listed = self.is_listed(frame);
        let corrupted = match &mut self.corruption {
            Some((corruption, stream)) => stream.chance(corruption.errors.of_frame(frame.wire_bytes)),
            None => false,
        };
        let damaged = self.payload_corruptor.as_mut().is_some_and(|corruptor| corruptor.chooses(frame));
        let copied = self.duplication.as_mut().is_some_and(|(probability, stream)| stream.chance(*probability));
        let arrival = self.delayed(arrival, last);
        let swallowed = self.blackholes.iter().any(|hole| hole.takes(finish, arrival));
        Fate { arrival, lost: burst || chosen || listed || swallowed, corrupted, damaged, copied }
    }

    fn burst_loses(&mut self) -> bool {
        let Some((model, bad, stream)) = &mut self.loss else { return false };
        let (loss, change) =
            if *bad { (model.loss_bad, model.bad_to_good) } else { (model.loss_good, model.good_to_bad) };
        let lost = stream.chance(loss);
        *bad ^= stream.chance(change);
        lost
    }

    fn is_listed(&mut self, frame: &Frame) -> bool {
        if self.data_only && !frame.has_payload || !self.listed_frames.include(frame) {
            return false;
        }
        self.counted += 1;
        while self.droplist.last().is_some_and(|number| *number < self.counted) {
            self.droplist.pop();
        }
        self.droplist.last() == Some(&self.counted)
    }

    fn delayed(&mut self, mut arrival: Instant, last: &mut Instant) -> Instant {
        let mut in_order = true;
        if let Some((jitter, stream)) = &mut self.jitter {
            arrival = arrival.saturating_add(jitter.distribution.draw(stream));
            in_order = jitter.in_order;
        }
        if in_order {
            arrival = arrival.max(*last);
            *last = arrival;
        }
        match &mut self.reordering {
            None => arrival,
            Some((Reordering::Late { probability, extra }, _, stream)) => {
                if stream.chance(*probability) {
                    arrival.saturating_add(*extra)
                } else {
                    arrival
                }
            }
            Some((Reordering::Early { probability, gap, extra }, held, stream)) => {
                let chosen = stream.chance(*probability);
                if *held + 1 >= *gap && chosen {
                    *held = 0;
                    arrival
                } else {
                    *held += 1;
                    arrival.saturating_add(*extra)
                }
            }
        }
    }
}

impl JitterDistribution {
    fn draw(self, stream: &mut Stream) -> Duration {
        match self {
            JitterDistribution::Uniform { max } => stream.duration_below(max),
            JitterDistribution::Exponential { mean } => Duration::from_secs_f64(stream.exponential(mean.as_secs_f64())),
            JitterDistribution::Normal { mean, deviation } => {
                // Two uniform numbers for one normal: the second half would have to be kept.
                let radius = (-2.0 * math::ln(1.0 - stream.uniform())).sqrt();
                let angle = std::f64::consts::TAU * stream.uniform();
                Duration::from_secs_f64(mean.as_secs_f64() + deviation.as_secs_f64() * radius * math::cos(angle))
            }
        }
    }
}
