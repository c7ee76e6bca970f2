//! Frequency bands. In 2.4 GHz, a signal extension of 6 µs follows each OFDM frame (IEEE 802.11-2020, aSignalExtension).

/// Frequency band.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Band {
    /// 2.4 GHz.
    Ghz2,
    /// 5 GHz.
    #[default]
    Ghz5,
}
