//! Token bank fair queueing, per group and for the whole band.
//!
//! **Model.** Every subframe each UE earns r / 1000 tokens, one per byte, where r is its maximum bit rate in bytes/s.
//! The tokens go into the UE's own pool of 1 byte. The excess goes to a shared bank and increases the UE's counter E,
//! its balance with the bank. The UE with the highest E / r is served next: the UE that has contributed most to the
//! bank relative to its rate. Ties go to the lowest RNTI. Tokens used beyond the pool are taken from the bank and from
//! E.
//!
//! * FD-TBFQ: the UE may send budget = pool + min(E - debt limit, credit limit, bank) bytes. It gets its best groups
//!   one by one, until its transport block holds all waiting data. A group with which the block would exceed the budget
//!   is left to the next UE. So no UE exceeds its rate for long.
//! * TD-TBFQ: the UE gets the whole band, regardless of its budget.
//!
//! The MCS of both follows the lowest CQI of the groups. Tokens are charged for waiting bytes, not for padding.
//!
//! **Source.** Wong, Tang and Leung, "Token bank fair queuing: a new scheduling algorithm for wireless multimedia
//! services" (2004); Bokhari et al., "Cross-layer resource scheduling for video traffic in the downlink of OFDMA-based
//! wireless 4G networks" (2009). They follow ns-3's schedulers of these names with three intended deviations. FD-TBFQ
//! serves a UE whose waiting data are less than one group. The bank gets only the excess of the pool. A debt beyond its
//! limit does not count as credit.

use super::auction::give_all;
use super::{AdmissionError, BitRateLimits, GroupSet, MAX_GROUPS, NO_OWNER, Scheduler, SubframeContext, group_indices};

/// Limits of the token bank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenBankLimits {
    /// Size of each UE's own pool in bytes.
    pub pool_bytes: u32,
    /// Largest number of bytes that a UE can take from the bank in one subframe.
    pub credit_bytes: u32,
    /// Largest debt of a UE at the bank in bytes.
    pub debt_bytes: u32,
}

impl Default for TokenBankLimits {
    fn default() -> TokenBankLimits {
        TokenBankLimits { pool_bytes: 1, credit_bytes: 625_000, debt_bytes: 625_000 }
    }
}

/// Tokens are counted in thousandths, so that earning them has no rounding error, however the time is split.
const TOKEN: i64 = 1000;

/// The account of a UE.
#[derive(Clone, Copy, Debug)]
struct Account {
    /// Thousandths of tokens per subframe, which is r in bytes/s.
    rate: i64,
    /// The pool, in thousandths of tokens.
    pool: i64,
    /// E, in thousandths of tokens.
    counter: i64,
}

/// All accounts and the bank.
#[derive(Clone, Debug)]
struct Bank {
    limits: TokenBankLimits,
    accounts: Vec<Account>,
    /// The bank, in thousandths of tokens.
    bank: i64,
    /// UEs in the order in which they are served, with their E / r.
    order: Vec<(u16, f64)>,
}

impl Bank {
    fn new(limits: TokenBankLimits) -> Bank {
        Bank { limits, accounts: Vec::new(), bank: 0, order: Vec::new() }
    }

    fn attach(&mut self, promise: &BitRateLimits) {
        let rate = i64::try_from(promise.maximum_bits_per_second / 8).unwrap_or(i64::MAX);
        self.accounts.push(Account { rate, pool: 0, counter: 0 });
    }

    fn on_subframes_elapsed(&mut self, subframes: u64) {
        let subframes = i64::try_from(subframes).unwrap_or(i64::MAX);
        let room = i64::from(self.limits.pool_bytes) * TOKEN;
        for account in &mut self.accounts {
            let earned = account.rate.saturating_mul(subframes);
            let kept = earned.min(room - account.pool);
            account.pool += kept;
            account.counter = account.counter.saturating_add(earned - kept);
            self.bank = self.bank.saturating_add(earned - kept);
        }
    }

    /// Whole bytes that the UE may send now.
    fn budget(&self, ue: u16) -> u32 {
        let account = &self.accounts[usize::from(ue)];
        let credit = account.counter.saturating_add(i64::from(self.limits.debt_bytes) * TOKEN);
        let lent = credit.min(i64::from(self.limits.credit_bytes) * TOKEN).min(self.bank).max(0);
        u32::try_from((account.pool + lent) / TOKEN).unwrap_or(u32::MAX)
    }

    fn spend(&mut self, ue: u16, bytes: u32) {
        let account = &mut self.accounts[usize::from(ue)];
        let tokens = i64::from(bytes) * TOKEN;
        let own = tokens.min(account.pool);
        account.pool -= own;
        account.counter = account.counter.saturating_sub(tokens - own);
        self.bank = self.bank.saturating_sub(tokens - own).max(0);
    }

    /// Ranks all active UEs, the first to be served first.
    fn rank(&mut self, active: &[u16]) {
        self.order.clear();
        self.order.extend(active.iter().map(|&ue| {
            let Account { rate, counter, .. } = self.accounts[usize::from(ue)];
            (ue, counter as f64 / rate.max(1) as f64)
        }));
        self.order.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    }
}

/// # Errors
/// If the UE has no maximum bit rate, from which tokens are computed.
fn admit(promise: &BitRateLimits) -> Result<(), AdmissionError> {
    if promise.guaranteed_bits_per_second > 0 {
        Err(AdmissionError::GuaranteedBitRateUnsupported)
    } else if promise.maximum_bits_per_second < 8 {
        Err(AdmissionError::MissingMaximumBitRate)
    } else {
        Ok(())
    }
}

/// Token bank fair queueing per group.
#[derive(Clone, Debug)]
pub struct FdTokenBank {
    bank: Bank,
}

impl FdTokenBank {
    /// Creates a scheduler without UEs.
    #[must_use]
    pub fn new(limits: TokenBankLimits) -> FdTokenBank {
        FdTokenBank { bank: Bank::new(limits) }
    }
}

impl Scheduler for FdTokenBank {
    fn admit(&self, promise: &BitRateLimits) -> Result<(), AdmissionError> {
        admit(promise)
    }

    fn attach(&mut self, promise: BitRateLimits) {
        self.bank.attach(&promise);
    }

    fn allocate(&mut self, subframe: &mut SubframeContext<'_>, owners: &mut [u16; MAX_GROUPS]) {
        owners.fill(NO_OWNER);
        self.bank.rank(subframe.active);
        let mut free = subframe.free;
        for index in 0..self.bank.order.len() {
            if free == 0 {
                break;
            }
            let (ue, _) = self.bank.order[index];
            let budget = self.bank.budget(ue);
            let waiting = subframe.queues.queue_status(ue).bytes;
            let (groups, bytes) = best_groups(subframe, free, ue, budget, waiting);
            for k in group_indices(groups) {
                owners[k] = ue;
            }
            free &= !groups;
            self.bank.spend(ue, bytes.min(waiting));
        }
    }

    fn on_subframes_elapsed(&mut self, subframes: u64) {
        self.bank.on_subframes_elapsed(subframes);
    }
}

/// Returns the UE's best groups for its waiting data within the budget, and the bytes of the transport block in them.
fn best_groups(
    subframe: &mut SubframeContext<'_>,
    free: GroupSet,
    ue: u16,
    budget: u32,
    waiting: u32,
) -> (GroupSet, u32) {
    let rates = &subframe.rates[subframe.layer_index(ue)];
    let (mut groups, mut bytes, mut number) = (0, 0, 0);
    if budget == 0 {
        return (groups, bytes);
    }
    let cqis = subframe.channel.subband_cqis(ue);
    while bytes < waiting {
        let rest = group_indices(free & !groups).filter(|&k| cqis[k] > 0);
        // Of equally good groups the lowest is taken.
        let Some(k) = rest.reduce(|best, k| if cqis[k] > cqis[best] { k } else { best }) else { break };
        // The last group taken is the worst.
        let more = rates.blocks[number][usize::from(cqis[k])];
        if more > budget {
            break;
        }
        groups |= 1 << k;
        bytes = more;
        number += 1;
    }
    (groups, bytes)
}

/// Token bank fair queueing over the whole band.
#[derive(Clone, Debug)]
pub struct TdTokenBank {
    bank: Bank,
}

impl TdTokenBank {
    /// Creates a scheduler without UEs.
    #[must_use]
    pub fn new(limits: TokenBankLimits) -> TdTokenBank {
        TdTokenBank { bank: Bank::new(limits) }
    }
}

impl Scheduler for TdTokenBank {
    fn admit(&self, promise: &BitRateLimits) -> Result<(), AdmissionError> {
        admit(promise)
    }

    fn attach(&mut self, promise: BitRateLimits) {
        self.bank.attach(&promise);
    }

    fn allocate(&mut self, subframe: &mut SubframeContext<'_>, owners: &mut [u16; MAX_GROUPS]) {
        owners.fill(NO_OWNER);
        self.bank.rank(subframe.active);
        for index in 0..self.bank.order.len() {
            let (ue, _) = self.bank.order[index];
            let waiting = subframe.queues.queue_status(ue).bytes;
            let (groups, bytes) = best_groups(subframe, subframe.free, ue, u32::MAX, u32::MAX);
            if groups != 0 {
                give_all(groups, Some(ue), owners);
                self.bank.spend(ue, bytes.min(waiting));
                return;
            }
        }
    }

    fn on_subframes_elapsed(&mut self, subframes: u64) {
        self.bank.on_subframes_elapsed(subframes);
    }
}

#[cfg(test)]
mod tests {
    use super::super::QueueStatus;
    use super::super::tests::{BY_DISTANCE, Cell, GROUPS, Source, assert_close, full, shares};
    use super::*;

    fn schedulers() -> [Box<dyn Scheduler>; 2] {
        let limits = TokenBankLimits::default();
        [Box::new(FdTokenBank::new(limits)), Box::new(TdTokenBank::new(limits))]
    }

    fn maximum(bytes_per_second: u64) -> BitRateLimits {
        BitRateLimits { maximum_bits_per_second: 8 * bytes_per_second, ..BitRateLimits::default() }
    }

    /// Returns the bytes/s of UEs with these CQIs, sources and rates, after a second.
    fn run(scheduler: Box<dyn Scheduler>, ues: &[(u8, Source, u64)]) -> Vec<f64> {
        let mut cell = Cell::new(scheduler);
        for &(cqi, source, rate) in ues {
            cell.add(cqi, source, maximum(rate));
        }
        cell.run(1000);
        cell.run(4000)
    }

    /// Below saturation every UE gets its offered rate. The tolerance of 1/500 is for data that wait at the beginning
    /// and end.
    #[test]
    fn offered_rate_is_served_below_saturation() {
        for scheduler in schedulers() {
            let ues = [(15, 100), (12, 200), (11, 300), (5, 50)];
            let ues = ues.map(|(cqi, bytes)| (cqi, Source::Packets(bytes), u64::from(bytes) * 1000));
            assert_close(&run(scheduler, &ues), &[100_000.0, 200_000.0, 300_000.0, 50_000.0], 0.002);
        }
    }

    /// Above saturation UEs with equal rates get the same, 1 / sum (1 / R_i). With whole bands this is exact; with
    /// groups, blocks are not exact fractions of the band's.
    #[test]
    fn ues_with_equal_rates_get_the_same_above_saturation() {
        for (scheduler, tolerance) in schedulers().into_iter().zip([0.03, 0.005]) {
            let each = 1.0 / BY_DISTANCE.iter().map(|&cqi| 1.0 / full(cqi)).sum::<f64>();
            let ues = BY_DISTANCE.map(|cqi| (cqi, Source::Saturated, 500_000));
            assert_close(&run(scheduler, &ues), &[each; 5], tolerance);
        }
    }

    /// Above saturation UEs get throughput in proportion to their rates: with weights 1, 2 and 3, w_i x 1 / sum (w_i /
    /// R_i).
    #[test]
    fn ues_get_throughput_by_rate_above_saturation() {
        for (scheduler, tolerance) in schedulers().into_iter().zip([0.03, 0.005]) {
            let ues = [(15, 500_000), (12, 1_000_000), (15, 1_500_000)];
            let each = 1.0 / ues.iter().map(|&(cqi, rate)| rate as f64 / full(cqi)).sum::<f64>();
            let found = run(scheduler, &ues.map(|(cqi, rate)| (cqi, Source::Saturated, rate)));
            assert_close(&found, &ues.map(|(_, rate)| rate as f64 * each), tolerance);
        }
    }

    /// FD-TBFQ enforces the rate, although groups stay empty; TD-TBFQ does not. Of two UEs, the second takes from the
    /// bank what the first cannot use for a whole group, until it owes 625000 bytes: 20 kB/s beyond its rate, for about
    /// half a minute.
    #[test]
    fn fd_tbfq_limits_ues_to_their_rate() {
        let [groups, band] = schedulers();
        let ues = [(15, Source::Saturated, 400_000), (8, Source::Saturated, 100_000)];
        assert_close(&run(groups, &ues[..1]), &[400_000.0], 0.001);
        assert_close(&run(band, &ues[..1]), &[full(15)], 1e-12);
        let [groups, _] = schedulers();
        let mut cell = Cell::new(groups);
        for (cqi, source, rate) in ues {
            cell.add(cqi, source, maximum(rate));
        }
        let early = cell.run(10_000);
        assert!(early[1] > 110_000.0, "{early:?}");
        assert_close(&[early[0] + early[1]], &[500_000.0], 0.001);
        cell.run(50_000);
        assert_close(&cell.run(10_000), &[400_000.0, 100_000.0], 0.001);
    }

    /// Rows 158 to 180 of the reference's `scheduler` vectors and 004 to 009 of `scheduler_mixed`, as far as a cell
    /// without radio can express them: UDP payloads of 200 bytes every ms are 232 bytes with headers. The tolerance is
    /// the reference's.
    #[test]
    fn reference_vectors_are_met() {
        let [groups, band] = [0, 1];
        for (which, bytes, distances, bytes_per_second) in [
            (groups, [232; 6], &[0; 6][..], 232_000.0),
            (groups, [232; 6], &[1; 3], 232_000.0),
            (groups, [232; 6], &[1; 6], 230_500.0),
            (groups, [232; 6], &[2; 3], 232_000.0),
            (groups, [232; 6], &[3; 3], 232_000.0),
            (groups, [132; 6], &[0, 1, 2, 3], 132_000.0),
            (groups, [332; 6], &[0, 1, 2, 3], 302_266.0),
            (band, [232; 6], &[0; 3], 232_000.0),
            (band, [232; 6], &[1; 3], 232_000.0),
            (band, [232; 6], &[1; 6], 230_500.0),
            (band, [232; 6], &[2; 6], 198_500.0),
            (band, [132; 6], &[0, 1, 2, 3], 132_000.0),
        ] {
            let scheduler = schedulers().into_iter().nth(which).expect("one of two");
            let ues: Vec<_> = distances
                .iter()
                .map(|&distance| (BY_DISTANCE[distance], Source::Packets(bytes[0]), u64::from(bytes[0]) * 1000))
                .collect();
            assert_close(&run(scheduler, &ues), &vec![bytes_per_second; ues.len()], 0.1);
        }
        let [_, band] = schedulers();
        let ues = [(15, 132), (12, 232), (11, 332)];
        let ues = ues.map(|(cqi, bytes)| (cqi, Source::Packets(bytes), u64::from(bytes) * 1000));
        assert_close(&run(band, &ues), &[132_000.0, 232_000.0, 332_000.0], 0.1);
    }

    /// Tokens by hand, at 100 kB/s with a pool of 1 byte: after 50 ms there are 4999 bytes in the bank and in E, and 1
    /// in the pool. The UE gets its best groups, as many as 5000 bytes pay for and 400 bytes need: one of CQI 15, 185
    /// bytes, with one of 14, 301, with one of 13, 405. Then 4600 bytes are left.
    #[test]
    fn budget_pays_for_the_best_groups() {
        let mut cell = Cell::new(Box::new(FdTokenBank::new(TokenBankLimits::default())));
        cell.reports.add(9, &[4, 15, 9, 14, 0, 13, 13, 1, 2, 3, 4, 5]);
        cell.attach(Source::Constant(QueueStatus { bytes: 400, head_of_line_ms: 7 }), maximum(100_000));
        assert_eq!(shares(&cell.subframe()), [], "nothing has been earned");
        let mut bank = FdTokenBank::new(TokenBankLimits::default());
        bank.attach(maximum(100_000));
        bank.on_subframes_elapsed(50);
        assert_eq!((bank.bank.bank, bank.bank.accounts[0].counter), (4_999_000, 4_999_000));
        assert_eq!(bank.bank.budget(0), 5_000);
        cell.scheduler = Box::new(bank);
        assert_eq!(shares(&cell.subframe()), [(0, 0b10_1010)]);
        // The last of the 405 bytes are padding, which costs nothing: 4600 bytes are left, and 100 have been earned since.
    }

    #[test]
    fn accounts_have_the_values_computed_by_hand() {
        let mut bank = Bank::new(TokenBankLimits { pool_bytes: 100, credit_bytes: 1_000, debt_bytes: 300 });
        bank.attach(&maximum(50_000));
        bank.attach(&maximum(200_000));
        bank.on_subframes_elapsed(4);
        // 200 and 800 are earned, 100 of each stay in the pool.
        assert_eq!((bank.bank, bank.accounts[0].counter, bank.accounts[1].counter), (800_000, 100_000, 700_000));
        // 100 of the UE's own, plus 100 + 300 or the bank's 800.
        assert_eq!((bank.budget(0), bank.budget(1)), (500, 900));
        bank.spend(0, 450);
        assert_eq!((bank.bank, bank.accounts[0].counter, bank.accounts[0].pool), (450_000, -250_000, 0));
        assert_eq!((bank.budget(0), bank.budget(1)), (50, 550));
        bank.spend(1, 60);
        assert_eq!((bank.bank, bank.accounts[1].counter, bank.accounts[1].pool), (450_000, 700_000, 40_000));
        bank.rank(&[0, 1]);
        assert_eq!(bank.order, [(1, 3.5), (0, -5.0)]);
        bank.on_subframes_elapsed(1_000);
        assert_eq!(bank.budget(1), 1_100, "the credit limit");
    }

    /// The result does not depend on how a gap is split.
    #[test]
    fn a_gap_is_as_many_subframes() {
        let mut whole = Bank::new(TokenBankLimits::default());
        whole.attach(&maximum(123_457));
        let mut single = whole.clone();
        whole.on_subframes_elapsed(1_000);
        (0..1_000).for_each(|_| single.on_subframes_elapsed(1));
        assert_eq!((whole.bank, whole.accounts[0].pool), (single.bank, single.accounts[0].pool));
        assert_eq!(whole.bank + whole.accounts[0].pool, 123_457_000, "all that was earned");
    }

    #[test]
    fn ue_without_a_maximum_rate_is_rejected() {
        for scheduler in schedulers() {
            assert_eq!(scheduler.admit(&BitRateLimits::default()), Err(AdmissionError::MissingMaximumBitRate));
            assert_eq!(scheduler.admit(&maximum(1)), Ok(()));
            let both = BitRateLimits { guaranteed_bits_per_second: 1, ..maximum(1) };
            assert_eq!(scheduler.admit(&both), Err(AdmissionError::GuaranteedBitRateUnsupported));
        }
    }

    /// The packet is smaller than a group.
    #[test]
    fn packet_smaller_than_a_group_is_sent() {
        let found = run(Box::new(FdTokenBank::new(TokenBankLimits::default())), &[(15, Source::Packets(20), 200_000)]);
        assert_close(&found, &[20_000.0], 0.002);
        let mut cell = Cell::new(Box::new(TdTokenBank::new(TokenBankLimits::default())));
        cell.add(15, Source::Packets(20), maximum(1_000));
        assert_eq!(cell.subframe()[..GROUPS], [0; GROUPS]);
    }

    /// A group of CQI 15 holds 185 bytes. A pool of as many tokens, which is full after a subframe, pays exactly for
    /// it.
    #[test]
    fn budget_can_be_used_up() {
        for (pool_bytes, groups) in [(184, 0), (185, 1)] {
            let limits = TokenBankLimits { pool_bytes, credit_bytes: 0, debt_bytes: 0 };
            let mut cell = Cell::new(Box::new(FdTokenBank::new(limits)));
            cell.add(15, Source::Saturated, maximum(185_000));
            cell.subframe();
            assert_eq!(cell.subframe().iter().filter(|owner| **owner == 0).count(), groups, "{pool_bytes}");
        }
    }
}
