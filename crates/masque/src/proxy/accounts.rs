//! What each client uses, and its limits. A client is the holder of a token. Without tokens it is an IPv4 address or an IPv6
//! prefix of 64 bits, because one host can have all addresses of such a prefix.

use crate::access::ClientLimits;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Maximum number of accounts that include clients without open tunnels. Beyond it, the proxy deletes the accounts of such
/// clients, with the bytes that they have used.
const MAX_ACCOUNTS: usize = 1 << 16;

/// The burst of a client is what it may send in this time at its limit of the rate, but at least [`MIN_BURST_BYTES`].
const BURST: Duration = Duration::from_millis(100);

/// The smallest burst in bytes: a few of the largest UDP payloads.
const MIN_BURST_BYTES: u64 = 256 << 10;

/// Identity of a client.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ClientId {
    /// Name of its token.
    Token(String),
    /// Its address, or the first address of its prefix.
    Address(IpAddr),
}

impl ClientId {
    /// The client with this address.
    pub(crate) fn of_address(address: IpAddr) -> ClientId {
        ClientId::Address(match address.to_canonical() {
            IpAddr::V4(address) => address.into(),
            IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        })
    }
}

/// The clients of a proxy.
#[derive(Default)]
pub(crate) struct Accounts(Mutex<BTreeMap<ClientId, Arc<Account>>>);

#[derive(Default)]
struct Account {
    open: AtomicU64,
    bytes: AtomicU64,
    /// Time at which the client has sent all its bytes at the limit of its rate; in the past if it sends more slowly.
    paid_until: Mutex<Option<Instant>>,
}

/// Why a client cannot open a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LimitReached {
    /// It has the permitted number of tunnels.
    Tunnels,
    /// It has used the permitted number of bytes.
    Bytes,
}

/// What a client's tunnel may send now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Allowance {
    /// Data can pass.
    Pass,
    /// The client exceeds its rate until this time.
    Wait(Instant),
    /// The client has used its bytes.
    Used,
}

impl Accounts {
    fn accounts(&self) -> MutexGuard<'_, BTreeMap<ClientId, Arc<Account>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a new tunnel of a client.
    ///
    /// # Errors
    /// If a limit is reached.
    pub(crate) fn open(&self, client: ClientId, limits: ClientLimits) -> Result<Usage, LimitReached> {
        if limits == ClientLimits::default() {
            return Ok(Usage(None));
        }
        let mut accounts = self.accounts();
        if accounts.len() >= MAX_ACCOUNTS {
            accounts.retain(|_, account| account.open.load(Ordering::Relaxed) > 0);
        }
        let account = Arc::clone(accounts.entry(client).or_default());
        // The lock is held, so no other request of this client is between the check and the count.
        if limits.tunnels.is_some_and(|limit| account.open.load(Ordering::Relaxed) >= limit) {
            return Err(LimitReached::Tunnels);
        }
        if limits.bytes.is_some_and(|limit| account.bytes.load(Ordering::Relaxed) >= limit) {
            return Err(LimitReached::Bytes);
        }
        account.open.fetch_add(1, Ordering::Relaxed);
        Ok(Usage(Some(Open { account, limits })))
    }
}

/// What one tunnel uses of its client's limits. The tunnel is no longer counted when this value is dropped.
pub(crate) struct Usage(Option<Open>);

struct Open {
    account: Arc<Account>,
    limits: ClientLimits,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.account.open.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Usage {
    /// Returns what the tunnel may send now.
    pub(crate) fn allowance(&self, now: Instant) -> Allowance {
        let Some(Open { account, limits }) = &self.0 else { return Allowance::Pass };
        if limits.bytes.is_some_and(|limit| account.bytes.load(Ordering::Relaxed) >= limit) {
            return Allowance::Used;
        }
        let Some(rate) = limits.rate else { return Allowance::Pass };
        let burst = BURST.max(time(MIN_BURST_BYTES, rate));
        match account.paid_until().and_then(|paid| paid.checked_sub(burst)) {
            Some(begin) if begin > now => Allowance::Wait(begin),
            _ => Allowance::Pass,
        }
    }

    /// Counts bytes that have passed.
    pub(crate) fn charge(&self, now: Instant, bytes: u64) {
        let Some(Open { account, limits }) = &self.0 else { return };
        account.bytes.fetch_add(bytes, Ordering::Relaxed);
        if let Some(rate) = limits.rate {
            let mut paid = account.paid_until();
            *paid = paid.unwrap_or(now).max(now).checked_add(time(bytes, rate));
        }
    }
}

impl Account {
    fn paid_until(&self) -> MutexGuard<'_, Option<Instant>> {
        self.paid_until.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Time for these bytes at a rate in bytes per second.
fn time(bytes: u64, rate: u64) -> Duration {
    let nanoseconds = u128::from(bytes) * 1_000_000_000 / u128::from(rate.max(1));
    Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::disallowed_methods, reason = "an instant cannot be made from nothing")]
    fn begin() -> Instant {
        Instant::now()
    }

    fn id(address: &str) -> ClientId {
        ClientId::of_address(address.parse().unwrap())
    }

    #[test]
    fn addresses_of_a_prefix_are_one_client() {
        assert_eq!(id("2001:db8::1"), id("2001:db8::ffff:0:0:2"));
        assert_ne!(id("2001:db8::1"), id("2001:db8:0:1::1"));
        assert_eq!(id("::ffff:192.0.2.1"), id("192.0.2.1"));
        assert_ne!(id("192.0.2.1"), id("192.0.2.2"));
    }

    #[test]
    fn tunnels_of_a_client_are_limited_until_one_is_closed() {
        let accounts = Accounts::default();
        let limits = ClientLimits { tunnels: Some(2), ..ClientLimits::default() };
        let open = |client: &str| accounts.open(id(client), limits);
        let (first, _second) = (open("192.0.2.1").unwrap(), open("192.0.2.1").unwrap());
        assert_eq!(open("192.0.2.1").err(), Some(LimitReached::Tunnels));
        assert!(open("192.0.2.2").is_ok());
        drop(first);
        assert!(open("192.0.2.1").is_ok());
    }

    #[test]
    fn bytes_of_a_client_are_limited_over_all_its_tunnels() {
        let accounts = Accounts::default();
        let limits = ClientLimits { bytes: Some(1000), ..ClientLimits::default() };
        let (now, open) = (begin(), || accounts.open(id("192.0.2.1"), limits));
        let (first, second) = (open().unwrap(), open().unwrap());
        first.charge(now, 600);
        assert_eq!(second.allowance(now), Allowance::Pass);
        second.charge(now, 600);
        assert_eq!((first.allowance(now), open().err()), (Allowance::Used, Some(LimitReached::Bytes)));
        drop((first, second));
        assert_eq!(open().err(), Some(LimitReached::Bytes));
    }

    #[test]
    fn rate_of_a_client_is_kept_after_a_burst() {
        let accounts = Accounts::default();
        let rate = 10_000_000;
        let usage = accounts.open(id("192.0.2.1"), ClientLimits { rate: Some(rate), ..ClientLimits::default() });
        let (usage, begin) = (usage.unwrap(), begin());
        let (mut passed, end) = (0, Duration::from_secs(3));
        for step in 0..3000 {
            let now = begin + Duration::from_millis(step);
            // Twice the rate is offered.
            for _ in 0..20 {
                if usage.allowance(now) == Allowance::Pass {
                    usage.charge(now, 1000);
                    passed += 1000;
                }
            }
        }
        let expected = rate * end.as_secs() + rate / 10;
        assert!((expected - 20_000..=expected + 20_000).contains(&passed), "{passed}");
        let late = begin + end;
        while let Allowance::Pass = usage.allowance(late) {
            usage.charge(late, 1000);
        }
        let Allowance::Wait(until) = usage.allowance(late) else { panic!("the rate is exceeded") };
        assert!(until > late && usage.allowance(until) == Allowance::Pass);
    }

    #[test]
    fn accounts_without_tunnels_are_deleted_beyond_a_limit() {
        let accounts = Accounts::default();
        let limits = ClientLimits { tunnels: Some(1), ..ClientLimits::default() };
        let kept = accounts.open(id("192.0.2.1"), limits).unwrap();
        for number in 0..=MAX_ACCOUNTS as u128 {
            let address = Ipv6Addr::from_bits((0x2001 << 112) | number << 64);
            drop(accounts.open(ClientId::of_address(address.into()), limits).unwrap());
        }
        assert!(accounts.accounts().len() <= MAX_ACCOUNTS);
        assert_eq!(accounts.open(id("192.0.2.1"), limits).err(), Some(LimitReached::Tunnels));
        drop(kept);
    }

    #[test]
    fn client_without_limits_has_no_account() {
        let accounts = Accounts::default();
        let usage = accounts.open(id("192.0.2.1"), ClientLimits::default()).unwrap();
        usage.charge(begin(), u64::MAX);
        assert_eq!((usage.allowance(begin()), accounts.accounts().len()), (Allowance::Pass, 0));
    }
}
