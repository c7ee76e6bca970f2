//! Paths, ports and hosts in all spellings, at a proxy with the default policy: no address of this machine or its
//! networks can be reached.

use crate::attacker::*;
use crate::house::*;
use crate::wire::*;

const WELL_KNOWN: &str = "/.well-known/masque/udp";

/// RFC 9298 section 3: status 400 for invalid targets.
const MALFORMED: [&str; 57] = [
    // Ports are decimal numbers from 1 to 65535 (section 2).
    "192.0.2.1/0",
    "192.0.2.1/00",
    "192.0.2.1/+53",
    "192.0.2.1/%2B53",
    "192.0.2.1/-53",
    "192.0.2.1/99999",
    "192.0.2.1/65536",
    "192.0.2.1/4294967349",
    "192.0.2.1/18446744073709551669",
    "192.0.2.1/0053",
    "192.0.2.1/0x35",
    "192.0.2.1/53.0",
    "192.0.2.1/5e1",
    "192.0.2.1/%20",
    "192.0.2.1/53%20",
    "192.0.2.1/53%00",
    "192.0.2.1/",
    "192.0.2.1/%EF%BC%95%EF%BC%93",
    "192.0.2.1/%",
    "192.0.2.1/%5",
    "192.0.2.1/%zz",
    "192.0.2.1/domain",
    // Hosts are not empty and have no zone (section 2) and no brackets.
    "/53",
    "fe80%3A%3A1%25eth0/53",
    "fe80%3A%3A1%251/53",
    "%3A%3A1%25lo/53",
    "%5B%3A%3A1%5D/53",
    "[::1]/53",
    // Loopback as C libraries may parse it: short, decimal, octal, hexadecimal, mixed, with a trailing dot.
    "127.1/53",
    "127.0.1/53",
    "2130706433/53",
    "017700000001/53",
    "0177.0.0.1/53",
    "0177.0.0.01/53",
    "0x7f000001/53",
    "0X7F000001/53",
    "0x7f.0.0.1/53",
    "0x7f.1/53",
    "127.0.0.0x1/53",
    "127.0.0.1./53",
    "0x7f000001./53",
    "127.0.0.01/53",
    "127.0.0.256/53",
    "0/53",
    "1.2.3.4.5/53",
    "00000000177.0.0.1/53",
    "%E2%91%A0%E2%91%A1%E2%91%A6.0.0.1/53",
    "%EF%BC%91%EF%BC%92%EF%BC%97.0.0.1/53",
    // Encoded twice, truncated, or not a host.
    "127%252e0%252e0%252e1/53",
    "%00/53",
    "localhost%00.example/53",
    "a%2Fb/53",
    "%ff/53",
    "a%20b/53",
    "a%0d%0ab/53",
    "-a.example/53",
    "a..example/53",
];

/// Valid but prohibited targets: status 403, destination_ip_prohibited (RFC 9209 section 2.3.5).
const FORBIDDEN: [&str; 44] = [
    "127.0.0.1",
    "127.255.255.255",
    "127%2E0%2E0%2E1",
    "%31%32%37.0.0.1",
    "0.0.0.0",
    "10.0.0.1",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.0.1",
    "169.254.169.254",
    "169.254.170.2",
    "100.100.100.200",
    "100.64.0.1",
    "224.0.0.251",
    "239.255.255.250",
    "255.255.255.255",
    "192.0.2.1",
    "240.0.0.1",
    "%3A%3A1",
    "%3a%3a1",
    "::1",
    "0%3A0%3A0%3A0%3A0%3A0%3A0%3A1",
    "%3A%3A",
    "fe80%3A%3A1",
    "fec0%3A%3A1",
    "fd00%3Aec2%3A%3A254",
    "ff02%3A%3A1",
    "fd12%3A%3A1",
    "2001%3Adb8%3A%3A1",
    // Embedded IPv4 addresses: mapped, compatible, translated (RFC 6052, 8215), 6to4, Teredo, ISATAP.
    "%3A%3Affff%3A127.0.0.1",
    "%3A%3Affff%3A7f00%3A1",
    "%3A%3AFFFF%3A7F00%3A0001",
    "%3A%3Affff%3A0%3A127.0.0.1",
    "%3A%3A127.0.0.1",
    "64%3Aff9b%3A%3A127.0.0.1",
    "64%3Aff9b%3A%3A7f00%3A1",
    "64%3Aff9b%3A%3Aa9fe%3Aa9fe",
    "64%3Aff9b%3A1%3A%3A10.0.0.1",
    "2002%3A7f00%3A1%3A%3A1",
    "2001%3A0%3A%3A1",
    "2606%3A%3A5efe%3A10.0.0.1",
    "2606%3A%3A200%3A5efe%3A127.0.0.1",
    // The machine's own name.
    "localhost",
    "LocalHost.",
];

#[test]
fn internal_address_is_rejected_in_every_spelling() {
    run(async {
        let certificate = certificate();
        let echo = echo().await;
        // Only the bystander's target is permitted.
        let rule = echo.address.to_string().parse().unwrap();
        let proxy = proxy(&certificate, |settings| {
            settings.policy.allow_private = false;
            settings.policy.allow = vec![rule];
        });
        let mut bystander = Bystander::new(&certificate, &proxy, echo.address).await;
        let attacker = Attacker::new(&certificate, proxy.address).await;
        let mut wrong = Vec::new();
        for tail in MALFORMED {
            match attacker.ask(&request(&format!("{WELL_KNOWN}/{tail}/")), false).await {
                // A text that cannot be a path makes the request malformed.
                Outcome::Status(400) | Outcome::Reset(0x10e) => {}
                other => wrong.push(format!("{tail}: {other:x?}")),
            }
        }
        bystander.is_served().await;
        for host in FORBIDDEN {
            let outcome = attacker.ask(&request(&format!("{WELL_KNOWN}/{host}/53/")), false).await;
            if outcome != Outcome::Status(403) {
                wrong.push(format!("{host}: {outcome:x?}"));
            }
        }
        // Only one port of one address is permitted.
        let other = echo.address.port() ^ 1;
        assert_eq!(
            attacker.ask(&request(&format!("{WELL_KNOWN}/127.0.0.1/{other}/")), false).await,
            Outcome::Status(403)
        );
        bystander.is_served().await;
        assert!(wrong.is_empty(), "{wrong:#?}");
        let (opened, refused) = (proxy.metrics.requests_open.get(), proxy.metrics.requests_refused_total.get());
        assert_eq!((opened, refused), (1, (MALFORMED.len() + FORBIDDEN.len() + 1) as u64));
    });
}

#[test]
fn path_outside_the_template_is_rejected() {
    run(async {
        let certificate = certificate();
        let echo = echo().await;
        let proxy = proxy(&certificate, |_| {});
        let attacker = Attacker::new(&certificate, proxy.address).await;
        let good = path_of(echo.address);
        let port = echo.address.port();
        for path in [
            "/".to_owned(),
            "//".to_owned(),
            format!("{good}?x=1"),
            format!("{good}x"),
            format!("/{good}"),
            good[..good.len() - 1].to_owned(),
            format!("{WELL_KNOWN}/127.0.0.1/{port}//"),
            format!("{WELL_KNOWN}/../udp/127.0.0.1/{port}/"),
            format!("/.well-known/masque/UDP/127.0.0.1/{port}/"),
            format!("/.well-known/masque/%75dp/127.0.0.1/{port}/"),
            format!("/.well-known/masque/tcp/127.0.0.1/{port}/"),
        ] {
            assert_eq!(attacker.ask(&request(&path), false).await, Outcome::Status(404), "{path}");
        }
        // RFC 9298 section 3.4: the method, the protocol and the scheme.
        let asked = |changes: &[(&'static str, &'static str)]| {
            let mut fields = fields(&good);
            for (name, value) in changes {
                fields.retain(|(field, _)| field != name);
                if !value.is_empty() {
                    fields.push((name, value));
                }
            }
            headers(&fields)
        };
        for (changes, status) in [
            (&[(":protocol", ""), (":method", "GET")][..], 405),
            (&[(":protocol", ""), (":method", "POST")], 405),
            (&[(":protocol", "webtransport")], 501),
            (&[(":scheme", "http")], 400),
        ] {
            assert_eq!(attacker.ask(&asked(changes), false).await, Outcome::Status(status), "{changes:?}");
        }
    });
}
