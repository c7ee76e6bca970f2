//! Access policy of a proxy: the targets that it permits.
//!
//! An open relay would give everyone access to its internal network. Addresses outside the public internet are
//! therefore denied unless a rule allows them. These are private, loopback and link-local addresses (where clouds serve
//! their metadata), multicast, and all others that IANA's special-purpose registries (RFC 6890) do not list as globally
//! reachable. For an IPv6 address that embeds an IPv4 address (mapped, compatible, NAT64, 6to4, ISATAP), the embedded
//! address is checked as well.
//!
//! Addresses of the proxy's own host are denied as well, because a tunnel to the proxy itself is a loop. A rule can allow
//! them, but not the sockets on which the proxy listens.
//!
//! A name is first resolved, and then its addresses are checked. The proxy connects to the checked address.
//!
//! Rules change these defaults. The most specific matching rule applies. A name precedes the names below a domain
//! (`*.example.org`), a longer domain precedes a shorter one, these precede an address range, a longer prefix precedes a
//! shorter one, and `*`, which is every target, comes last. For the same subject, fewer ports precede more ports. In a tie,
//! the target is denied. A rule for `*` overrides other rules, but permits no address that is denied by default.

use crate::target::{Host, Target};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::str::FromStr;

/// Access policy of a proxy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// Rules that permit targets.
    pub allow: Vec<Rule>,
    /// Rules that deny targets.
    pub deny: Vec<Rule>,
    /// Whether private, loopback, link-local and documentation addresses are permitted, as required in laboratory
    /// networks. Multicast, unspecified and reserved addresses and cloud metadata addresses still need a rule.
    pub allow_private: bool,
}

/// An address range, a name, the names below a domain, or every target; with optional ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    subject: Subject,
    ports: RangeInclusive<u16>,
}

/// The ports of a rule without a port.
const ALL_PORTS: RangeInclusive<u16> = 0..=u16::MAX;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Subject {
    Range {
        base: u128,
        prefix: u32,
    },
    Name(String),
    /// Names that end with this text, which begins with a dot.
    Below(String),
    Any,
}

/// Error: the text is not a valid rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleError(String);

impl fmt::Display for RuleError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "invalid rule \"{}\"; expected CIDR, HOST, *.DOMAIN or *, each optionally with :PORT or :PORT-PORT (IPv6 then in \
             brackets)",
            self.0
        )
    }
}

impl std::error::Error for RuleError {}

impl FromStr for Rule {
    type Err = RuleError;

    /// Parses `CIDR`, `HOST`, `*.DOMAIN` or `*`, which `:PORT` or `:PORT-PORT` may follow. IPv6 then needs brackets:
    /// `[2001:db8::/32]:443`.
    fn from_str(text: &str) -> Result<Rule, RuleError> {
        let error = || RuleError(text.into());
        let (subject, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((inside, "")) => (inside, None),
            Some((inside, rest)) => (inside, Some(rest.strip_prefix(':').ok_or_else(error)?)),
            None => match text.split_once(':') {
                Some((host, port)) if !port.contains(':') => (host, Some(port)),
                _ => (text, None),
            },
        };
        let ports = match port {
            Some(text) => ports(text).ok_or_else(error)?,
            None => ALL_PORTS,
        };
        let subject = match (subject.split_once('/'), subject.strip_prefix("*.")) {
            (Some((address, prefix)), _) => range(address, Some(prefix)).ok_or_else(error)?,
            (None, Some(domain)) => match Host::new(domain) {
                Ok(Host::Name(name)) => Subject::Below(format!(".{name}")),
                _ => return Err(error()),
            },
            (None, None) if subject == "*" => Subject::Any,
            (None, None) => match Host::new(subject).map_err(|_| error())? {
                Host::Address(_) => range(subject, None).ok_or_else(error)?,
                Host::Name(name) => Subject::Name(name),
            },
        };
        Ok(Rule { subject, ports })
    }
}

/// Parses `PORT` or `PORT-PORT`.
fn ports(text: &str) -> Option<RangeInclusive<u16>> {
    let port = |text: &str| Target::new("x", text).ok().map(|target| target.port);
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (port(first)?, port(last)?);
    (first <= last).then_some(first..=last)
}

fn range(address: &str, prefix: Option<&str>) -> Option<Subject> {
    let address: IpAddr = address.parse().ok()?;
    let width = if address.is_ipv4() { 32 } else { 128 };
    let prefix = match prefix {
        Some(text) if text.bytes().all(|byte| byte.is_ascii_digit()) => text.parse().ok()?,
        Some(_) => return None,
        None => width,
    };
    let prefix = (prefix <= width).then_some(128 - width + prefix)?;
    let base = number(address);
    (base & !mask(prefix) == 0).then_some(Subject::Range { base, prefix })
}

/// Maps all addresses to one number space: IPv4 as IPv4-mapped IPv6 addresses.
fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

fn mask(prefix: u32) -> u128 {
    u128::MAX.checked_shl(128 - prefix).unwrap_or(0)
}

/// Specificity of a rule: of its subject and of its ports.
type Specificity = (u32, u16);

impl Rule {
    /// The specificity of this rule for the target; `None` if the rule does not match. Without an address, a range is
    /// assumed to match.
    fn matches(&self, target: &Target, address: Option<IpAddr>) -> Option<Specificity> {
        if !self.ports.contains(&target.port) {
            return None;
        }
        let width = match (&self.subject, &target.host) {
            (Subject::Range { base, prefix }, _) => {
                let is_within = |address| (number(address) ^ base) & mask(*prefix) == 0;
                address.is_none_or(is_within).then_some(1 + *prefix)?
            }
            (Subject::Name(name), Host::Name(host)) => (host == name).then_some(u32::MAX)?,
            // A name has at most 253 characters.
            (Subject::Below(domain), Host::Name(host)) => {
                host.ends_with(domain.as_str()).then_some(1000 + domain.len() as u32)?
            }
            (Subject::Name(_) | Subject::Below(_), Host::Address(_)) => return None,
            (Subject::Any, _) => 0,
        };
        Some((width, u16::MAX - (self.ports.end() - self.ports.start())))
    }
}

/// The specificity of the most specific rule that matches.
fn best<'a>(
    rules: impl IntoIterator<Item = &'a Rule>,
    target: &Target,
    address: Option<IpAddr>,
) -> Option<Specificity> {
    rules.into_iter().filter_map(|rule| rule.matches(target, address)).max()
}

/// Reason why a target is denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicyRejection {
    /// The target's address is not on the public internet. The field is the kind of address.
    NonPublicAddress(&'static str),
    /// A rule denies the target.
    DeniedByRule,
    /// The target is TCP port 25, and no rule permits it.
    MailPort,
    /// The target is a socket on which the proxy listens.
    OwnListener,
    /// The target's address belongs to the proxy's host, or is given as its public address.
    OwnAddress,
}

impl fmt::Display for PolicyRejection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PolicyRejection::NonPublicAddress(kind) => {
                write!(formatter, "{kind} addresses are not permitted as targets")
            }
            PolicyRejection::DeniedByRule => formatter.write_str("a rule denies the target"),
            PolicyRejection::MailPort => {
                formatter.write_str("TCP port 25 is permitted only by a rule with this port, against unsolicited mail")
            }
            PolicyRejection::OwnListener => formatter.write_str("the target is the proxy itself"),
            PolicyRejection::OwnAddress => formatter.write_str("the target's address is one of the proxy's host"),
        }
    }
}

impl Policy {
    /// Whether a rule permits an address of a target that the defaults deny. Rules for every target (`*`) do not: who restricts
    /// ports by them does not mean to open internal networks.
    fn has_allowing_rule(&self, target: &Target, address: IpAddr) -> bool {
        let specific = self.allow.iter().filter(|rule| rule.subject != Subject::Any);
        best(specific, target, Some(address)).is_some()
    }

    /// Checks a target before its name is resolved.
    ///
    /// # Errors
    /// Returns the reason if a rule denies the target, whatever its address is.
    pub fn check_name(&self, target: &Target) -> Result<(), PolicyRejection> {
        let regardless = self.deny.iter().filter(|rule| !matches!(rule.subject, Subject::Range { .. }));
        let (denied, allowed) = (best(regardless, target, None), best(&self.allow, target, None));
        if denied.is_some() && denied >= allowed { Err(PolicyRejection::DeniedByRule) } else { Ok(()) }
    }

    /// Checks that a TCP tunnel does not lead to port 25 (SMTP), or that a rule with ports permits it.
    ///
    /// # Errors
    /// If the target is denied.
    pub fn check_mail_port(&self, target: &Target, address: IpAddr) -> Result<(), PolicyRejection> {
        let address = address.to_canonical();
        let permits = |rule: &Rule| rule.ports != ALL_PORTS && rule.matches(target, Some(address)).is_some();
        if target.port != 25 || self.allow.iter().any(permits) { Ok(()) } else { Err(PolicyRejection::MailPort) }
    }

    /// Checks one address of a target.
    ///
    /// # Errors
    /// Returns the reason if the address is denied.
    pub fn check(&self, target: &Target, address: IpAddr) -> Result<(), PolicyRejection> {
        let address = address.to_canonical();
        let (allowed, denied) = (best(&self.allow, target, Some(address)), best(&self.deny, target, Some(address)));
        if denied.is_some() && denied >= allowed {
            return Err(PolicyRejection::DeniedByRule);
        }
        if self.has_allowing_rule(target, address) {
            return Ok(());
        }
        match special(address) {
            Some((_, Kind::Private)) if self.allow_private => Ok(()),
            Some((name, _)) => Err(PolicyRejection::NonPublicAddress(name)),
            None => Ok(()),
        }
    }
}

/// Addresses at which the proxy itself can be reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnAddresses {
    /// Sockets on which the proxy listens. An unspecified address stands for all addresses of the host.
    pub listening: Vec<SocketAddr>,
    /// Addresses of the proxy that its host does not have, because a NAT translates them.
    pub public: Vec<IpAddr>,
}

impl OwnAddresses {
    /// Checks that an address of a target is not the proxy itself. `is_local` returns whether the host has an address.
    /// Loopback addresses are subject to the other rules only: one permits them in order to reach other local programs.
    ///
    /// # Errors
    /// Returns the reason if the address is denied.
    pub fn check(
        &self,
        policy: &Policy,
        target: &Target,
        address: IpAddr,
        is_local: impl Fn(IpAddr) -> bool,
    ) -> Result<(), PolicyRejection> {
        let address = address.to_canonical();
        let is_public = self.public.iter().any(|public| public.to_canonical() == address);
        let is_ours = address.is_loopback() || is_public || is_local(address);
        let reaches = |listening: &SocketAddr| {
            let own = listening.ip().to_canonical();
            listening.port() == target.port && (own == address || (own.is_unspecified() && is_ours))
        };
        if self.listening.iter().any(reaches) {
            return Err(PolicyRejection::OwnListener);
        }
        if is_ours && !address.is_loopback() && !policy.has_allowing_rule(target, address) {
            return Err(PolicyRejection::OwnAddress);
        }
        Ok(())
    }
}

/// Whether `allow_private` permits an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Private,
    Never,
}

/// Addresses at which clouds serve the credentials of their virtual machines.
const METADATA: [IpAddr; 4] = [
    IpAddr::V4(Ipv4Addr::new(169, 254, 169, 254)),
    IpAddr::V4(Ipv4Addr::new(169, 254, 170, 2)),
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
];

fn special(address: IpAddr) -> Option<(&'static str, Kind)> {
    if METADATA.contains(&address) {
        return Some(("metadata", Kind::Never));
    }
    match address {
        IpAddr::V4(address) => special_v4(address),
        IpAddr::V6(address) => special_v6(address),
    }
}

fn special_v4(address: Ipv4Addr) -> Option<(&'static str, Kind)> {
    let [a, b, c, _] = address.octets();
    Some(match (a, b, c) {
        (0, ..) => ("unspecified", Kind::Never),
        (10, ..) | (172, 16..=31, _) | (192, 168, _) => ("private", Kind::Private),
        (100, 64..=127, _) => ("shared", Kind::Private),
        (127, ..) => ("loopback", Kind::Private),
        (169, 254, _) => ("link-local", Kind::Private),
        (192, 0, 0) => ("protocol", Kind::Never),
        (192, 0, 2) | (198, 51, 100) | (203, 0, 113) => ("documentation", Kind::Private),
        (192, 88, 99) => ("relay", Kind::Never),
        (198, 18..=19, _) => ("benchmarking", Kind::Private),
        (224..=239, ..) => ("multicast", Kind::Never),
        (240.., ..) => ("reserved", Kind::Never),
        _ => return None,
    })
}

fn special_v6(address: Ipv6Addr) -> Option<(&'static str, Kind)> {
    if let Some(inner) = embedded_v4(address) {
        return special(inner.into());
    }
    let segments = address.segments();
    Some(match (segments[0], segments[1]) {
        _ if address.is_unspecified() => ("unspecified", Kind::Never),
        _ if address.is_loopback() => ("loopback", Kind::Private),
        (0xfc00..=0xfdff, _) => ("private", Kind::Private),
        (0xfe80..=0xfebf, _) => ("link-local", Kind::Private),
        (0xfec0..=0xfeff, _) => ("site-local", Kind::Private),
        (0xff00.., _) => ("multicast", Kind::Never),
        (0x2001, 0xdb8) | (0x3fff, 0..=0xfff) => ("documentation", Kind::Private),
        // Teredo, benchmarking, ORCHID and the other ranges for protocol assignments.
        (0x2001, 0..=0x1ff) => ("protocol", Kind::Never),
        // All ranges outside global unicast.
        (0x2000..=0x3fff, _) => return None,
        _ => ("reserved", Kind::Never),
    })
}

/// The embedded IPv4 address to which a translator (RFC 6052, well-known prefix), a 6to4 router (RFC 3056) or an ISATAP
/// host (RFC 5214) would forward a packet.
fn embedded_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let segments = address.segments();
    let at = |index: usize| Ipv4Addr::from(u32::from(segments[index]) << 16 | u32::from(segments[index + 1]));
    match segments {
        [0x64, 0xff9b, 0, 0, 0, 0, ..] => Some(at(6)),
        [0x2002, ..] => Some(at(1)),
        // Only for global scope: for an ISATAP address with another prefix, the prefix is checked.
        [0x2000..=0x3fff, _, _, _, 0 | 0x200, 0x5efe, ..] => Some(at(6)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn judge(policy: &Policy, address: &str) -> Result<(), PolicyRejection> {
        let address: IpAddr = address.parse().unwrap();
        policy.check(&Target { host: Host::Address(address), port: 443 }, address)
    }

    #[test]
    fn public_addresses_are_permitted_by_default() {
        for address in ["1.1.1.1", "9.255.255.255", "11.0.0.0", "172.15.0.1", "172.32.0.1", "192.0.1.1", "192.169.0.1"]
        {
            assert_eq!(judge(&Policy::default(), address), Ok(()), "{address}");
        }
        for address in ["2606:4700::1111", "2001:200::1", "::ffff:1.1.1.1", "64:ff9b::1.1.1.1", "2002:101:101::1"] {
            assert_eq!(judge(&Policy::default(), address), Ok(()), "{address}");
        }
    }

    #[test]
    fn non_public_address_is_denied_in_every_spelling() {
        let inner = [
            "10.0.0.1",
            "127.0.0.1",
            "127.255.255.255",
            "169.254.169.254",
            "169.254.0.1",
            "172.16.0.1",
            "172.31.255.1",
            "192.168.1.1",
            "0.0.0.0",
            "0.1.2.3",
            "100.64.0.1",
            "224.0.0.1",
            "239.1.2.3",
            "240.0.0.1",
            "255.255.255.255",
            "192.0.2.1",
            "198.18.0.1",
            "198.51.100.1",
            "203.0.113.1",
            "192.0.0.8",
            "192.88.99.1",
        ];
        for address in inner {
            let v4: Ipv4Addr = address.parse().unwrap();
            let [a, b, c, d] = v4.octets().map(u16::from);
            let spellings = [
                address.to_owned(),
                format!("::ffff:{address}"),
                format!("::{address}"),
                format!("64:ff9b::{address}"),
                format!("64:ff9b:1::{address}"),
                format!("2002:{:x}:{:x}::1", a << 8 | b, c << 8 | d),
                format!("2606::5efe:{address}"),
                format!("2606::200:5efe:{address}"),
            ];
            for spelling in spellings {
                assert!(judge(&Policy::default(), &spelling).is_err(), "{spelling}");
            }
        }
        for address in [
            "::",
            "::1",
            "fe80::1",
            "febf::1",
            "fec0::1",
            "fc00::1",
            "fd00:ec2::254",
            "ff02::1",
            "2001:db8::1",
            "2001::1",
            "2001:2::1",
            "3fff::1",
            "100::1",
            "5f00::1",
            "4000::1",
            "::1.1.1.1",
            "64:ff9b:1::1.1.1.1",
        ] {
            assert!(judge(&Policy::default(), address).is_err(), "{address}");
        }
    }

    #[test]
    fn allow_private_permits_private_addresses_but_no_metadata() {
        let policy = Policy { allow_private: true, ..Policy::default() };
        for address in ["10.0.0.1", "127.0.0.1", "::1", "169.254.1.1", "fd00::1", "192.0.2.1", "::ffff:10.1.1.1"] {
            assert_eq!(judge(&policy, address), Ok(()), "{address}");
        }
        for address in [
            "169.254.169.254",
            "::ffff:169.254.169.254",
            "fd00:ec2::254",
            "0.0.0.0",
            "224.0.0.1",
            "ff02::1",
            "2002:a9fe:a9fe::1",
        ] {
            assert!(judge(&policy, address).is_err(), "{address}");
        }
    }

    #[test]
    fn the_most_specific_rule_decides() {
        let rules = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
        let policy = Policy {
            allow: rules(&["10.1.0.0/16", "db.example:5432", "[fd00::/8]:53", "1.2.3.4", "169.254.169.254"]),
            deny: rules(&["0.0.0.0/0", "10.1.2.0/24", "1.2.3.4:25", "evil.example", "2606::/16"]),
            allow_private: false,
        };
        assert_eq!(judge(&policy, "10.1.1.1"), Ok(()));
        assert_eq!(judge(&policy, "::ffff:10.1.1.1"), Ok(()));
        assert_eq!(judge(&policy, "10.1.2.1"), Err(PolicyRejection::DeniedByRule));
        assert_eq!(judge(&policy, "8.8.8.8"), Err(PolicyRejection::DeniedByRule));
        assert_eq!(judge(&policy, "1.2.3.4"), Ok(()));
        assert_eq!(judge(&policy, "169.254.169.254"), Ok(()));
        assert_eq!(judge(&policy, "2606::1"), Err(PolicyRejection::DeniedByRule));
        assert_eq!(judge(&policy, "2a00::1"), Ok(()));
        let named = |host: &str, port, address: &str| {
            policy.check(&Target { host: Host::new(host).unwrap(), port }, address.parse().unwrap())
        };
        assert_eq!(named("1.2.3.4", 25, "1.2.3.4"), Err(PolicyRejection::DeniedByRule));
        assert_eq!(named("fd00::1", 53, "fd00::1"), Ok(()));
        assert_eq!(named("fd00::1", 54, "fd00::1"), Err(PolicyRejection::NonPublicAddress("private")));
        assert_eq!(named("db.example", 5432, "10.1.2.1"), Ok(()));
        assert_eq!(named("db.example", 5433, "10.1.2.1"), Err(PolicyRejection::DeniedByRule));
        assert_eq!(named("EVIL.example", 1, "2a00::1"), Err(PolicyRejection::DeniedByRule));
    }

    /// A public address.
    const PUBLIC: IpAddr = IpAddr::V4(Ipv4Addr::new(93, 184, 215, 14));

    #[test]
    fn rules_for_domains_ports_and_every_target_are_less_specific_than_names() {
        let rules = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
        let policy = Policy {
            allow: rules(&["*.example.org", "bad.a.example.org:443", "93.184.215.14:8000-8010", "*:53"]),
            deny: rules(&["*", "*.a.example.org", "93.184.215.0/24:8005", "*:50-60"]),
            allow_private: false,
        };
        let allowed = |target: &str| {
            let target = Target::parse(target).unwrap();
            let address = if let Host::Address(address) = target.host { address } else { PUBLIC };
            policy.check(&target, address).is_ok()
        };
        for (target, expected) in [
            ("www.example.org:443", true),
            ("x.www.example.org:443", true),
            // The domain itself is not below it, and neither is a name with the same end.
            ("example.org:443", false),
            ("badexample.org:443", false),
            ("b.a.example.org:443", false),
            ("bad.a.example.org:443", true),
            ("bad.a.example.org:80", false),
            // The target is an address within ranges of ports.
            ("93.184.215.14:8000", true),
            ("93.184.215.14:8005", true),
            ("93.184.215.14:8011", false),
            ("93.184.215.15:8005", false),
            // For the same subject, fewer ports are more specific.
            ("1.2.3.4:53", true),
            ("1.2.3.4:54", false),
            ("1.2.3.4:443", false),
        ] {
            assert_eq!(allowed(target), expected, "{target}");
        }
    }

    #[test]
    fn rule_for_every_target_permits_no_address_that_is_denied_by_default() {
        let policy = Policy {
            allow: vec!["*:443".parse().unwrap(), "10.1.0.0/16".parse().unwrap()],
            deny: vec!["*".parse().unwrap()],
            allow_private: false,
        };
        let judge = |target: &str| {
            let target = Target::parse(target).unwrap();
            let Host::Address(address) = target.host else { panic!("an address") };
            policy.check(&target, address)
        };
        assert_eq!((judge("8.8.8.8:443"), judge("8.8.8.8:53")), (Ok(()), Err(PolicyRejection::DeniedByRule)));
        assert_eq!(judge("10.0.0.1:443"), Err(PolicyRejection::NonPublicAddress("private")));
        assert_eq!(judge("169.254.169.254:443"), Err(PolicyRejection::NonPublicAddress("metadata")));
        // An address range is a decision for these addresses.
        assert_eq!(judge("10.1.0.1:443"), Ok(()));
        // Neither does it permit addresses of the proxy's host.
        let own = OwnAddresses { listening: Vec::new(), public: vec![PUBLIC] };
        let target = Target { host: Host::Address(PUBLIC), port: 443 };
        assert_eq!(own.check(&policy, &target, PUBLIC, |_| false), Err(PolicyRejection::OwnAddress));
    }

    #[test]
    fn name_that_is_denied_at_every_address_is_denied_without_one() {
        let check = |allow: &[&str], deny: &[&str], target: &str| {
            let rules = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
            let policy = Policy { allow: rules(allow), deny: rules(deny), allow_private: false };
            policy.check_name(&Target::parse(target).unwrap()).is_err()
        };
        for (allow, deny, target, expected) in [
            (&[][..], &["a.example"][..], "a.example:443", true),
            (&["10.0.0.0/8"], &["a.example"], "a.example:443", true),
            (&["10.0.0.0/8", "a.example"], &["*.example"], "a.example:443", false),
            (&[], &["*.example"], "a.example:443", true),
            (&[], &["*"], "a.example:443", true),
            // The address decides.
            (&["10.0.0.0/8"], &["*"], "a.example:443", false),
            (&["10.0.0.0/8:53"], &["*"], "a.example:443", true),
            (&[], &["0.0.0.0/0"], "a.example:443", false),
            (&[], &[], "a.example:443", false),
        ] {
            assert_eq!(check(allow, deny, target), expected, "{allow:?} {deny:?}");
        }
    }

    #[test]
    fn mail_port_needs_a_rule_with_ports() {
        for (allow, target, expected) in [
            (&[][..], "mail.example:25", Err(PolicyRejection::MailPort)),
            (&["mail.example", "*"], "mail.example:25", Err(PolicyRejection::MailPort)),
            (&["mail.example:24"], "mail.example:25", Err(PolicyRejection::MailPort)),
            (&["mail.example:25"], "mail.example:25", Ok(())),
            (&["93.184.0.0/16:1-1023"], "mail.example:25", Ok(())),
            (&[], "mail.example:587", Ok(())),
        ] {
            let allow = allow.iter().map(|text| text.parse().unwrap()).collect();
            let policy = Policy { allow, ..Policy::default() };
            assert_eq!(policy.check_mail_port(&Target::parse(target).unwrap(), PUBLIC), expected, "{target}");
        }
    }

    #[test]
    fn own_addresses_are_denied_unless_a_rule_allows_them_but_never_the_listener() {
        let socket = |text: &str| text.parse::<SocketAddr>().unwrap();
        let judge = |listening: &str, allow: &[&str], target: &str| {
            let policy = Policy {
                allow: allow.iter().map(|text| text.parse().unwrap()).collect(),
                allow_private: true,
                ..Policy::default()
            };
            let own = OwnAddresses { listening: vec![socket(listening)], public: vec![socket("9.9.9.9:0").ip()] };
            let target = Target::parse(target).unwrap();
            let Host::Address(address) = target.host else { panic!("an address") };
            own.check(&policy, &target, address, |address| ["10.0.0.1", "2a00::1"].contains(&&*address.to_string()))
        };
        let (listener, address) = (Err(PolicyRejection::OwnListener), Err(PolicyRejection::OwnAddress));
        for (listening, allow, target, expected) in [
            ("10.0.0.1:443", &[][..], "10.0.0.2:443", Ok(())),
            ("10.0.0.1:443", &[], "127.0.0.1:443", Ok(())),
            ("10.0.0.1:443", &[], "10.0.0.1:443", listener),
            ("10.0.0.1:443", &[], "[::ffff:10.0.0.1]:443", listener),
            ("10.0.0.1:443", &["10.0.0.1"], "10.0.0.1:443", listener),
            ("10.0.0.1:443", &[], "10.0.0.1:53", address),
            ("10.0.0.1:443", &["10.0.0.1"], "10.0.0.1:53", Ok(())),
            ("10.0.0.1:443", &[], "[2a00::1]:443", address),
            ("10.0.0.1:443", &[], "9.9.9.9:53", address),
            ("10.0.0.1:443", &["9.9.9.0/24:53"], "9.9.9.9:53", Ok(())),
            // An unspecified address listens at all of them.
            ("0.0.0.0:443", &["0.0.0.0/0"], "127.0.0.1:443", listener),
            ("[::]:443", &["0.0.0.0/0"], "10.0.0.1:443", listener),
            ("0.0.0.0:443", &["0.0.0.0/0"], "9.9.9.9:443", listener),
            ("0.0.0.0:443", &["0.0.0.0/0"], "8.8.8.8:443", Ok(())),
        ] {
            assert_eq!(judge(listening, allow, target), expected, "{listening} {target}");
        }
    }

    #[test]
    fn malformed_rules_are_rejected() {
        for good in [
            "10.0.0.0/8",
            "10.0.0.1",
            "10.0.0.1:53",
            "10.0.0.0/8:53",
            "a.example",
            "a.example:1",
            "::/0",
            "::1",
            "[::1]",
            "[::1]:1",
            "0.0.0.0/0",
            "*",
            "*:25",
            "*.example.org",
            "*.example.org:1-1023",
            "[::/0]:1-2",
        ] {
            assert!(good.parse::<Rule>().is_ok(), "{good}");
        }
        for bad in [
            "",
            ":",
            "10.0.0.1/8",
            "10.0.0.0/33",
            "::/129",
            "10.0.0.0/+8",
            "10.0.0.0/",
            "a:0",
            "a:99999",
            "[::1",
            "[::1]x",
            "[::1]:",
            "127.1",
            "a/8",
            "/8",
            "10.0.0.0/8/8",
            "**",
            "*.",
            "*.*.example",
            "a*.example",
            "*.10.0.0.1",
            "*/8",
            "a:2-1",
            "a:0-1",
            "a:1-",
            "a:1-2-3",
        ] {
            assert!(bad.parse::<Rule>().is_err(), "{bad}");
        }
    }

    proptest! {
        /// Texts of rules and the expected rules. A text with bits beyond the prefix is invalid.
        #[test]
        fn rule_text_is_parsed_to_its_address_prefix_and_port(
            address in prop_oneof![any::<Ipv4Addr>().prop_map(IpAddr::V4), any::<Ipv6Addr>().prop_map(IpAddr::V6)],
            name in "[a-z][a-z0-9-]{0,8}[a-z]",
            prefix in 0..130_u32,
            cut: bool,
            port in prop::option::of(1_u16..),
        ) {
            let width = if address.is_ipv4() { 32 } else { 128 };
            let shift = |prefix: u32| width - prefix.min(width);
            let cut_off = |bits: u128| bits.checked_shr(shift(prefix)).unwrap_or(0).checked_shl(shift(prefix)).unwrap_or(0);
            let ports = port.map_or(ALL_PORTS, |port| port..=port);
            let base = match address {
                IpAddr::V4(four) => IpAddr::V4(Ipv4Addr::from_bits(cut_off(four.to_bits().into()) as u32)),
                IpAddr::V6(six) => IpAddr::V6(Ipv6Addr::from_bits(cut_off(six.to_bits()))),
            };
            let written = if cut { base } else { address };
            let at = |subject: String, brackets: bool| match port {
                Some(port) if brackets => format!("[{subject}]:{port}"),
                Some(port) => format!("{subject}:{port}"),
                None => subject,
            };
            let range: Result<Rule, _> = at(format!("{written}/{prefix}"), written.is_ipv6()).parse();
            let is_range = prefix <= width && written == base;
            let subject = Subject::Range { base: number(base), prefix: 128 - width + prefix };
            prop_assert_eq!(range.ok(), is_range.then_some(Rule { subject, ports: ports.clone() }));
            let one: Result<Rule, _> = at(address.to_string(), address.is_ipv6()).parse();
            let subject = Subject::Range { base: number(address), prefix: 128 };
            prop_assert_eq!(one.ok(), Some(Rule { subject, ports: ports.clone() }));
            let named: Result<Rule, _> = at(name.clone(), false).parse();
            prop_assert_eq!(named.ok(), Some(Rule { subject: Subject::Name(name), ports }));
        }

        /// Each text that parses as a rule has one of the forms above: it contains an address, a range or a host.
        #[test]
        fn arbitrary_text_parsed_as_a_rule_matches_its_own_subject(text in any::<String>(), short in "[0-9a-f:./\\[\\]]{0,24}") {
            for text in [text, short] {
                let Ok(rule) = text.parse::<Rule>() else { continue };
                let port = *rule.ports.end();
                let (host, address) = match &rule.subject {
                    Subject::Range { base, .. } => {
                        let address = IpAddr::V6(Ipv6Addr::from_bits(*base)).to_canonical();
                        (Host::Address(address), address)
                    }
                    Subject::Name(name) => (Host::Name(name.clone()), PUBLIC),
                    Subject::Below(domain) => (Host::Name(format!("a{domain}")), PUBLIC),
                    Subject::Any => (Host::Address(PUBLIC), PUBLIC),
                };
                let deny = Policy { deny: vec![rule], allow_private: true, ..Policy::default() };
                prop_assert_eq!(deny.check(&Target { host, port }, address), Err(PolicyRejection::DeniedByRule), "{}", text);
            }
        }

        #[test]
        fn mapped_address_is_checked_as_its_ipv4_address(address in any::<Ipv4Addr>()) {
            let policy = Policy::default();
            prop_assert_eq!(judge(&policy, &address.to_string()), judge(&policy, &address.to_ipv6_mapped().to_string()));
        }

        #[test]
        fn rule_for_one_address_decides_that_address(address in any::<Ipv6Addr>()) {
            let rule: Rule = address.to_string().parse().unwrap();
            let target = Target { host: Host::Address(address.into()), port: 1 };
            let allow = Policy { allow: vec![rule.clone()], ..Policy::default() };
            prop_assert_eq!(allow.check(&target, address.into()), Ok(()));
            let deny = Policy { deny: vec![rule], allow_private: true, ..Policy::default() };
            prop_assert_eq!(deny.check(&target, address.into()), Err(PolicyRejection::DeniedByRule));
        }
    }
}
