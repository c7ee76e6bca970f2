//! Rate control: the selection of the rate of each PPDU.

mod ideal;
pub mod minstrel;

pub use ideal::{Ideal, IdealTarget};
pub use minstrel::MinstrelHt;

use crate::channel::ChannelConfig;
use crate::phy::{
    ChannelWidth, DsssRate, ErrorModel, GuardInterval, MultiStreamRate, OfdmRate, PhyRate, Preamble, Standard,
};
use fullpipe_units::{Instant, RandomStream};

/// How a node selects rates for frames to another node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RateControlConfig {
    /// Always this rate.
    Constant(PhyRate),
    /// The fastest rate of the capabilities that the SNR at the receiver permits.
    Ideal {
        /// The rates.
        capabilities: Capabilities,
        /// What the SNR must permit.
        target: IdealTarget,
    },
    /// Minstrel-HT with the rates of the capabilities. For 802.11n and ac.
    MinstrelHt(Capabilities),
}

/// What both nodes can transmit and receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Number of spatial streams, 1 to 4. 802.11b, a and g have one.
    pub streams: u8,
    /// Widest channel.
    pub width: ChannelWidth,
    /// Whether the short guard interval is used.
    pub short_guard: bool,
}

impl Capabilities {
    /// Returns the data rates of a standard with these capabilities: all rates of 802.11b, a or g, or the HT rates
    /// (802.11n) or VHT rates (802.11ac) of the widest channel.
    ///
    /// ```
    /// use fullpipe_wifi::phy::{ChannelWidth, Preamble, Standard};
    /// use fullpipe_wifi::rate_control::Capabilities;
    /// let capabilities = Capabilities { streams: 2, width: ChannelWidth::Mhz80, short_guard: true };
    /// // Ten MCS for each of two streams and two guard intervals.
    /// assert_eq!(capabilities.rates(Standard::Ac, Preamble::Long).len(), 40);
    /// ```
    pub fn rates(&self, standard: Standard, preamble: Preamble) -> Vec<PhyRate> {
        match standard {
            Standard::B => DsssRate::ALL.map(|rate| PhyRate::Dsss(rate, preamble)).to_vec(),
            Standard::A | Standard::G => OfdmRate::ALL.map(PhyRate::Ofdm).to_vec(),
            Standard::N(_) | Standard::Ac => {
                let width = self.width.min(standard.widest_channel());
                let guards: &[GuardInterval] = if self.short_guard {
                    &[GuardInterval::Long, GuardInterval::Short]
                } else {
                    &[GuardInterval::Long]
                };
                let rates = (1..=self.streams).flat_map(|streams| {
                    guards
                        .iter()
                        .flat_map(move |&guard| (0..10).map(move |mcs| MultiStreamRate { mcs, streams, width, guard }))
                });
                let rates =
                    rates.map(|rate| if standard == Standard::Ac { PhyRate::Vht(rate) } else { PhyRate::Ht(rate) });
                rates.filter(|rate| rate.is_valid()).collect()
            }
        }
    }
}

/// What determines the outcome of transmissions: settings that rate control reads.
#[derive(Clone, Copy, Debug)]
pub struct RateContext<'a> {
    /// The standard.
    pub standard: Standard,
    /// The preamble of 802.11b.
    pub preamble: Preamble,
    /// The radio channel.
    pub channel: &'a ChannelConfig,
    /// The model of packet errors.
    pub errors: ErrorModel,
}

/// The rate of the next PPDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateDecision {
    /// The rate.
    pub rate: PhyRate,
    /// Whether RTS and CTS precede the PPDU, whatever its size.
    pub rts: bool,
    /// Whether the PPDU has a single MPDU because it is a sample.
    pub sample: bool,
}

/// Rate control for frames from one node to another.
#[derive(Debug)]
pub enum RateControl {
    /// Always this rate.
    Constant(PhyRate),
    /// See [`Ideal`].
    Ideal(Ideal),
    /// See [`MinstrelHt`].
    MinstrelHt(Box<MinstrelHt>),
}

impl RateControl {
    /// Returns rate control in its initial state. Only Minstrel-HT uses the random stream.
    pub fn new(config: &RateControlConfig, context: &RateContext<'_>, random: RandomStream) -> Self {
        match config {
            RateControlConfig::Constant(rate) => RateControl::Constant(*rate),
            RateControlConfig::Ideal { capabilities, target } => {
                RateControl::Ideal(Ideal::new(capabilities, *target, context))
            }
            RateControlConfig::MinstrelHt(capabilities) => {
                RateControl::MinstrelHt(Box::new(MinstrelHt::new(capabilities, context.standard, random)))
            }
        }
    }

    /// Returns the rate of the next PPDU. `failures` is the number of transmissions of the same frame that have failed in
    /// succession; `received_dbm` is the power at the receiver.
    pub fn select(&mut self, now: Instant, failures: u32, received_dbm: f64) -> RateDecision {
        let rate = match self {
            RateControl::Constant(rate) => *rate,
            RateControl::Ideal(ideal) => ideal.rate(received_dbm),
            RateControl::MinstrelHt(minstrel) => return minstrel.select(now, failures),
        };
        RateDecision { rate, rts: false, sample: false }
    }

    /// Reports the outcome of a PPDU: its rate, and how many of its MPDUs were acknowledged.
    pub fn report(&mut self, rate: PhyRate, mpdus: u32, acknowledged: u32) {
        if let RateControl::MinstrelHt(minstrel) = self {
            minstrel.report(rate, mpdus, acknowledged);
        }
    }
}
