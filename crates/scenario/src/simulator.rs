//! Converts the scenario strings of quic-network-simulator, for example `simple-p2p --delay=15ms --bandwidth=10Mbps
//! --queue=25`, into scenario files of this language.
//!
//! Names, options, units and required options are those of the simulator
//! (<https://github.com/quic-interop/quic-network-simulator>, behavior only). Options can be written with `-` or `_`.
//! The result is an ordinary scenario file. It contains the hosts `client` and `server` with the simulator's addresses,
//! an interface of this machine for each, and two routers. The link between the routers has the queue, rate and delay,
//! followed by the loss model.

mod options;
mod quantity;
#[cfg(test)]
mod tests;

use crate::schema::node::quote;
use options::OptionParser;
use std::fmt::{self, Write};

/// The names of the scenarios that a scenario string can select.
pub const SCENARIO_NAMES: [&str; 8] = [
    "simple-p2p",
    "drop-rate",
    "corrupt-rate",
    "droplist",
    "blackhole",
    "rebind",
    "tcp-cross-traffic",
    "udp-cross-traffic",
];

/// The error in a scenario string, in one sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioStringError(String);

impl fmt::Display for ScenarioStringError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for ScenarioStringError {}

/// The hosts that run the client and the server.
#[derive(Clone, Copy, Debug)]
pub enum HostSetup<'a> {
    /// Hosts that are connected to two interfaces of this machine.
    Interfaces {
        /// The interface of the client.
        left: &'a str,
        /// The interface of the server.
        right: &'a str,
    },
    /// Programs in namespaces of this machine, as command lines for the shell. The run ends when the client ends.
    Programs {
        /// The command line of the client.
        client: &'a str,
        /// The command line of the server.
        server: &'a str,
    },
}

/// The addresses of the simulator on the client's network and on the server's network. The hosts use them as default
/// gateways.
pub const GATEWAYS: [[&str; 2]; 2] = [["193.167.0.2", "fd00:cafe:cafe::2"], ["193.167.100.2", "fd00:cafe:cafe:100::2"]];

/// The name of the flow with cross traffic.
pub const CROSS_TRAFFIC: &str = "cross";

/// The time limit of the simulator.
const DURATION: &str = "36000s";

/// Converts a scenario string into the text of a scenario file with this seed.
///
/// # Errors
/// The first error in the string.
///
/// ```
/// use fullpipe_scenario::simulator::{HostSetup, translate};
/// let hosts = HostSetup::Interfaces { left: "eth0", right: "eth1" };
/// let text = translate("simple-p2p --delay=15ms --bandwidth=10Mbps --queue=25", hosts, 1).unwrap();
/// let scenario = fullpipe_scenario::load(&text, "simple-p2p", &[]).unwrap().scenario;
/// assert_eq!(scenario.links[0].delay, fullpipe_units::Duration::from_millis(15));
/// let wrong = translate("simple-p2p --delay=15ms --queue=25", hosts, 1).unwrap_err();
/// assert!(wrong.to_string().contains("--bandwidth"));
/// ```
pub fn translate(text: &str, hosts: HostSetup<'_>, seed: u64) -> Result<String, ScenarioStringError> {
    let mut options = OptionParser::parse(text)?;
    let path = Path::of(&mut options)?;
    let extra = extra(&mut options)?;
    options.done()?;
    let mut out = String::new();
    write_file(&mut out, text, hosts, seed, &path, &extra).expect("writing to a string cannot fail");
    Ok(out)
}

/// The simulated link.
struct Path {
    delay: String,
    rate: String,
    /// The number of packets that can wait: in the queue, plus one in the device queue below it.
    waiting: u64,
}

impl Path {
    fn of(options: &mut OptionParser) -> Result<Self, ScenarioStringError> {
        Ok(Path {
            delay: quantity::time_text(options.required(
                "delay",
                "the one-way delay of the link",
                quantity::nanoseconds,
            )?),
            rate: quantity::rate_text(options.required("bandwidth", "the rate of the link", rate)?),
            waiting: options.required("queue", "the queue's length in packets", quantity::count)?.saturating_add(1),
        })
    }
}

fn rate(text: &str) -> Result<u64, String> {
    match quantity::bits_per_second(text)? {
        0 => Err("a rate above zero, such as 10Mbps".into()),
        rate => Ok(rate),
    }
}

/// The additions of a scenario to the link.
#[derive(Default)]
struct Extra {
    /// Keys of the direction to the server and of the direction to the client.
    to_server: String,
    to_client: String,
    /// A key of the link itself, for both directions.
    link: String,
    /// Additional hosts, links and flows.
    more: String,
}

fn extra(options: &mut OptionParser) -> Result<Extra, ScenarioStringError> {
    match options.name() {
        "drop-rate" => each_way(options, |rate, burst| {
            format!("loss = {{ kind = \"bernoulli\", probability = {rate}{burst}, protocol = \"udp\" }}\n")
        }),
        "corrupt-rate" => {
            let delivered = !options.flag("discard_corrupted")?;
            each_way(options, |rate, burst| {
                format!(
                    "payload_corruption = {{ probability = {rate}{burst}, window = \"{CORRUPTED_BYTES}B\", \
                     spare_version_negotiation = true, delivered = {delivered} }}\n"
                )
            })
        }
        "droplist" => Ok(Extra {
            to_client: droplist(options, "drops_to_client")?,
            to_server: droplist(options, "drops_to_server")?,
            ..Extra::default()
        }),
        "blackhole" => blackhole(options),
        "rebind" => rebind(options),
        "tcp-cross-traffic" => Ok(Extra { more: tcp_cross_traffic(), ..Extra::default() }),
        "udp-cross-traffic" => {
            let rate = options.required("crossdatarate", "the rate of the cross traffic", rate)?;
            let start = options.optional("start", quantity::nanoseconds)?.unwrap_or(CROSS_START);
            let more = udp_cross_traffic(&quantity::rate_text(rate), &quantity::time_text(start));
            Ok(Extra { more, ..Extra::default() })
        }
        _ => Ok(Extra::default()),
    }
}

/// Number of bytes at the start of a payload within which the corrupted byte is.
const CORRUPTED_BYTES: u32 = 51;

fn each_way(options: &mut OptionParser, key: impl Fn(String, String) -> String) -> Result<Extra, ScenarioStringError> {
    let mut one = |to: &str| -> Result<String, ScenarioStringError> {
        let rate =
            options.required(&format!("rate_to_{to}"), "the percentage of affected packets", quantity::per_cent)?;
        let burst = options.optional(&format!("burst_to_{to}"), quantity::count)?;
        let burst = burst.map_or_else(String::new, |burst| format!(", largest_burst = {burst}"));
        Ok(key(format!("{}.{:02}", rate / 100, rate % 100), burst))
    };
    Ok(Extra { to_client: one("client")?, to_server: one("server")?, ..Extra::default() })
}

fn droplist(options: &mut OptionParser, option: &str) -> Result<String, ScenarioStringError> {
    let numbers = options.optional(option, quantity::counts)?.unwrap_or_default();
    if numbers.is_empty() {
        return Ok(String::new());
    }
    Ok(format!("loss = {{ kind = \"droplist\", frames = {numbers:?}, data_only = false, protocol = \"udp\" }}\n"))
}

fn blackhole(options: &mut OptionParser) -> Result<Extra, ScenarioStringError> {
    let on = options.required("on", "the time for which the link is on", quantity::nanoseconds)?;
    let off = options.required("off", "the time for which it is then off", quantity::some_time)?;
    let repeat = options.optional("repeat", quantity::positive)?.unwrap_or(1);
    let direction = options.choice("direction", ["both", "toclient", "toserver"])?;
    let end =
        on.checked_add(off).ok_or_else(|| ScenarioStringError("the sum of --on and --off is out of range".into()))?;
    let [from, until] = [on, end].map(quantity::time_text);
    let key = format!(
        "blackholes = [{{ from = \"{from}\", until = \"{until}\", period = \"{until}\", times = {repeat}, of = \"arrivals\" }}]\n"
    );
    let of = |other: &str| if direction == other { String::new() } else { key.clone() };
    Ok(Extra { to_client: of("toserver"), to_server: of("toclient"), ..Extra::default() })
}

fn rebind(options: &mut OptionParser) -> Result<Extra, ScenarioStringError> {
    let first = options.required("first-rebind", "the time of the first rebinding", quantity::some_time)?;
    let every = options.optional("rebind-freq", quantity::nanoseconds)?.filter(|every| *every > 0);
    let every = every.map_or_else(String::new, |every| format!(", every = \"{}\"", quantity::time_text(every)));
    let address = options.flag("rebind-addr")?;
    let first = quantity::time_text(first);
    let link = format!("rebinding = {{ first = \"{first}\"{every}, address = {address} }}\n");
    Ok(Extra { link, ..Extra::default() })
}

/// Returns a link whose only effect is the 12 ns that the transmission of 1500 bytes takes.
fn free_link(name: &str, from: &str, to: &str) -> String {
    format!(
        "\n[[link]]\nname = \"{name}\"\nfrom = \"{from}\"\nto = \"{to}\"\nrate = \"1Tbit/s\"\ndelay = \"0s\"\nframing = \"0B\"\n\
         queue = \"unlimited\"\n"
    )
}

fn tcp_cross_traffic() -> String {
    let mut text = String::from("\n# Bulk TCP from behind the right router to behind the left one, CUBIC.\n");
    for (host, router, subnet) in [("tcp-source", "right", 49), ("tcp-sink", "left", 51)] {
        text += &format!(
            "[[host]]\nname = \"{host}\"\nipv4 = \"193.167.{subnet}.2\"\nipv6 = \"fd00:cafe:cafe:{subnet}::2\"\n\n[[link]]\nname = \
             \"{host}-{router}\"\nfrom = \"{host}\"\nto = \"{router}\"\nrate = \"100Mbit/s\"\ndelay = \"1ms\"\n\n"
        );
    }
    text + &format!(
        "[[flow]]\nname = \"{CROSS_TRAFFIC}\"\nfrom = \"tcp-source\"\nto = \"tcp-sink\"\nport = 9\ncongestion = \"cubic\"\n\
         tcp.mss = \"1448B\"\ntcp.send_buffer = \"100MiB\"\ntcp.receive_buffer = \"10MiB\"\n"
    )
}

/// The simulator's UDP traffic begins 20 s after the start of the simulation, unless the option `start` states another
/// time.
const CROSS_START: u64 = 20_000_000_000;

fn udp_cross_traffic(rate: &str, start: &str) -> String {
    let mut text =
        String::from("\n# UDP at a constant rate from the right router to the left one, datagrams of 512 bytes.\n");
    for (host, router, number) in [("udp-source", "right", 2), ("udp-sink", "left", 1)] {
        text += &format!(
            "[[host]]\nname = \"{host}\"\nipv4 = \"10.50.0.{number}\"\nipv6 = \"fd00:cafe:cafe:150::{number}\"\n"
        );
        text += &free_link(&format!("{host}-{router}"), host, router);
        text += "\n";
    }
    text + &format!(
        "[[flow]]\nname = \"{CROSS_TRAFFIC}\"\nfrom = \"udp-source\"\nto = \"udp-sink\"\nprotocol = \"udp\"\nworkload = \"constant-rate\"\n\
         payload = \"512B\"\nrate = \"{rate}\"\nstart = \"{start}\"\nport = 9\n"
    )
}

fn write_file(
    out: &mut String,
    text: &str,
    hosts: HostSetup<'_>,
    seed: u64,
    path: &Path,
    extra: &Extra,
) -> fmt::Result {
    let title: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let title: String = title.chars().filter(|letter| !"\"\\'".contains(*letter) && !letter.is_control()).collect();
    writeln!(out, "title = \"{title}\"\nduration = \"{DURATION}\"\nseed = {seed}\n")?;
    let interfaces = match hosts {
        HostSetup::Interfaces { left, right } => [left, right].map(|name| format!("interface = {}\n", quote(name))),
        HostSetup::Programs { .. } => [String::new(), String::new()],
    };
    let [client, server] = [["193.167.0.100", "fd00:cafe:cafe::100"], ["193.167.100.100", "fd00:cafe:cafe:100::100"]];
    for (host, [ipv4, ipv6], interface) in [("client", client, &interfaces[0]), ("server", server, &interfaces[1])] {
        writeln!(out, "[[host]]\nname = \"{host}\"\nipv4 = \"{ipv4}\"\nipv6 = \"{ipv6}\"\n{interface}")?;
    }
    for (router, [ipv4, ipv6]) in ["left", "right"].into_iter().zip(GATEWAYS) {
        writeln!(out, "[[router]]\nname = \"{router}\"\nipv4 = \"{ipv4}\"\nipv6 = \"{ipv6}\"\n")?;
    }
    writeln!(
        out,
        "# The simulated link: a queue, one packet on the device below it, PPP framing.\n[[link]]\nname = \"path\"\nfrom = \
         \"left\"\nto = \"right\"\nrate = \"{}\"\ndelay = \"{}\"\nqueue = \"{}packets\"\nframing = \"2B\"",
        path.rate, path.delay, path.waiting
    )?;
    write!(out, "{}{}", extra.link, extra.to_server)?;
    if !extra.to_client.is_empty() {
        write!(out, "\n[link.reverse]\n{}", extra.to_client)?;
    }
    out.write_str(&free_link("left-access", "client", "left"))?;
    out.write_str(&free_link("right-access", "right", "server"))?;
    out.write_str(&extra.more)?;
    if let HostSetup::Programs { client, server } = hosts {
        let program = |name: &str, command: &str| {
            format!("\n[[program]]\nname = \"{name}\"\nhost = \"{name}\"\ncommand = {}\n", quote(command))
        };
        write!(
            out,
            "{}background = true\n{}after = [\"server\"]\n",
            program("server", server),
            program("client", client)
        )?;
    }
    Ok(())
}
