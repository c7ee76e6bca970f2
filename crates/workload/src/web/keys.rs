//! The keys and settings of web pages.

use super::page::MOST_OBJECTS;
use super::results::METRICS;
use super::{
    BoundedDistribution, CompletionUnit, Dependencies, ObjectSpec, PageDistributions, PageProtocol, PageSource,
    WebClient, WebServer, WebSpec, wire,
};
use crate::application::Application;
use crate::component::{FlowContext, FlowTransport, Protocol, WorkloadComponent, WorkloadSettings, small};
use crate::demand::{Demand, Exchanges};
use fullpipe_schema::component::{self, Declaration, SettingsReader, choices};
use fullpipe_schema::distributions::{COUNT_OR_RANDOM, SIZE_OR_RANDOM, TIME_OR_RANDOM};
use fullpipe_schema::{Choice, Field, FieldKind, Table, Tree, Value, ValueData, keys, named};
use fullpipe_units::{Distribution, ParameterError};

pub(crate) static WEB: WorkloadComponent = WorkloadComponent {
    declaration: Declaration {
        name: "web",
        text: "web pages: `from` is the browser, which fetches pages of many objects from `to`. See docs/web-pages.md. \
               Default port 80 for HTTP/1.1, else 443.",
        fields: &[FIELDS],
        ..Declaration::EMPTY
    },
    protocols: &[Protocol::Tcp, Protocol::Quic],
    metrics: METRICS,
    port: 443,
    read,
    ..WorkloadComponent::EMPTY
};

/// Largest header, which fits into one HTTP/2 frame.
const LARGEST_HEADER: u64 = super::MAX_HEADER_BYTES as u64;
const URGENCY: FieldKind = FieldKind::integer(0, 7);
const LARGEST_OBJECT: u64 = 1 << 50;

static HTTP: [(Choice, PageProtocol); 4] = named! {
    /// several connections, one request at a time on each (TCP).
    "1.1" => PageProtocol::Http1;
    /// one connection, on which responses are interleaved in frames (TCP, with or without `tls`).
    "2" => PageProtocol::Http2;
    /// one connection, a stream for each object (QUIC).
    "3" => PageProtocol::Http3;
    /// one connection with a few streams; one request per page, with responses on all streams (QUIC).
    "streams" => PageProtocol::Streams;
};

static LAWS: [(Choice, fn() -> PageDistributions); 2] = named! {
    /// the distributions that Pries et al. (2012) fitted to their data.
    "fitted" => PageDistributions::pries;
    /// the same, but main objects per page have the mean (1.2) and the standard deviation (2.63) of their data: log-normal with
    /// mu -3.524706 and sigma 2.234815.
    "data" => PageDistributions::pries_data;
};

static DEPENDENCIES: [(Choice, Dependencies); 4] = [
    (Choice::new("none", "no object waits for another."), Dependencies::None),
    (Choice::new("main", "embedded objects wait for their main object."), Dependencies::Main),
    (
        Choice::new("main-in-turn", "as `main`, and each main object waits for the previous one."),
        Dependencies::MainSequential,
    ),
    (Choice::new("chain", "each object waits for the previous one."), Dependencies::Chain),
];

static COMPLETIONS: [(Choice, CompletionUnit); 3] = named! {
    /// a row for each page.
    "pages" => CompletionUnit::Pages;
    /// a row for each object, from its request to its last byte.
    "objects" => CompletionUnit::Objects;
    /// a row for each stream of each page, in the order of the streams (`http = "streams"`).
    "streams" => CompletionUnit::Streams;
};

static FIELDS: &[Field] = keys! {
    /// Protocol with which objects are fetched.
    "http": FieldKind::Choice(&choices(&HTTP)), required;
    /// Number of pages.
    "pages": FieldKind::integer(1, 1_000_000_000), default "1";
    /// Time from the start of a page to the start of the next, even if the page is not complete, so that pages can overlap.
    /// `reading` then has no effect. Requires `keep_connections`.
    "page_interval": TIME_OR_RANDOM, optional "a page starts when the previous one is complete and its reading time is over";
    /// Default distributions of drawn pages.
    "laws": FieldKind::Choice(&choices(&LAWS)), optional "`fitted`";
    /// Time from the end of a page to the start of the next; `"0s"` disables it.
    "reading": TIME_OR_RANDOM, optional "log-normal, mu -0.495204 and sigma 2.7731 in seconds (Pries et al. 2012)";
    /// Maximum of the reading time; longer samples are reduced to it.
    "reading_max": FieldKind::DURATION, default "10000s";
    /// Main objects of a page, rounded; at least one.
    "main_objects": COUNT_OR_RANDOM, optional "log-normal, mu 0.473844 and sigma 0.688471 (Pries et al. 2012)";
    /// Maximum of `main_objects`; larger samples are reduced to it.
    "main_objects_max": FieldKind::integer(1, 1_000_000), default "212";
    /// Size of a main object.
    "main_size": SIZE_OR_RANDOM, optional "Weibull, shape 0.814944 and scale 28242.8 bytes (Pries et al. 2012)";
    /// Maximum of `main_size`; larger samples are reduced to it.
    "main_size_max": FieldKind::size(1, LARGEST_OBJECT), default "8MB";
    /// Objects embedded in each main object, rounded.
    "embedded_objects": COUNT_OR_RANDOM, optional "exponential, mean 31.93 (Pries et al. 2012)";
    /// Maximum of `embedded_objects`; larger samples are reduced to it.
    "embedded_objects_max": FieldKind::integer(0, 1_000_000), default "1920";
    /// Size of an embedded object.
    "embedded_size": SIZE_OR_RANDOM, optional "log-normal, mu 9.17979 and sigma 1.24646 in bytes (Pries et al. 2012)";
    /// Maximum of `embedded_size`; larger samples are reduced to it.
    "embedded_size_max": FieldKind::size(1, LARGEST_OBJECT), default "8MB";
    /// Dependencies of a drawn page: which objects are requested only after others have arrived.
    "dependencies": FieldKind::Choice(&choices(&DEPENDENCIES)), default "main";
    /// Fraction of the embedded objects of a drawn page that are above the fold: the first ones in the page's order. Main objects
    /// are always above the fold. Adds the metrics `page_fold_mean_s` and `page_fold_median_s`.
    "above_fold": FieldKind::number(0.0, 1.0), optional "no such metrics";
    /// List of the objects of every page, in the order of requests, instead of drawn objects.
    "objects": FieldKind::Tables(&OBJECT), optional "pages are drawn";
    /// HTTP/1.1: largest number of parallel connections.
    "connections": FieldKind::integer(1, 1000), default "6";
    /// HTTP/2 and HTTP/3: largest number of parallel requests (the server's limit of concurrent streams).
    "concurrent": FieldKind::integer(1, 1_000_000), default "100";
    /// Whether the connections of a page are kept for the next page.
    "keep_connections": FieldKind::Boolean, default "true";
    /// Size of a request, which is a header; compression is not modeled.
    "request": FieldKind::size(12, LARGEST_HEADER), default "350B";
    /// Size of the response header.
    "response_header": FieldKind::size(0, LARGEST_HEADER), default "300B";
    /// RFC 9218 urgency of main objects; 0 is the most urgent.
    "main_urgency": URGENCY, default "1";
    /// RFC 9218 urgency of embedded objects.
    "embedded_urgency": URGENCY, default "3";
    /// Whether equally urgent embedded objects are interleaved instead of sent one after another (RFC 9218).
    "incremental": FieldKind::Boolean, default "false";
    /// HTTP/2: the server writes no further frame while this much data is written and unsent (TCP_NOTSENT_LOWAT).
    "low_water": FieldKind::size(1, 1 << 40), default "16KiB";
    /// With `streams`: smaller embedded objects use the first stream, with the main objects; the others use the second.
    "small_below": FieldKind::size(0, LARGEST_OBJECT), default "12kB";
    /// With `streams`: deadline of a byte on the first, second, ... stream, counted from its writing, for schedulers with
    /// deadlines. The last value applies to all further streams.
    "stream_latencies": FieldKind::List(&FieldKind::DURATION), default "[]";
    /// Unit of the rows of `completions.csv`.
    "completions": FieldKind::Choice(&choices(&COMPLETIONS)), default "pages";
};

static OBJECT: Table = Table {
    name: "web object",
    text: "An object of a page that is defined by a list.",
    fields: &[keys! {
        /// Size of the object.
        "size": FieldKind::size(1, LARGEST_OBJECT), required;
        /// Objects that must have arrived before this one is requested: their positions in the list, from 1. They must precede
        /// this object.
        "after": FieldKind::List(&FieldKind::integer(1, 1_000_000)), default "[]";
        /// Whether the object is a main object.
        "main": FieldKind::Boolean, default "false";
        /// With `streams`: the number of the object's stream, from 1.
        "stream": FieldKind::integer(1, 100), optional "1 for main objects and those below `small_below`, 2 for others";
        /// RFC 9218 urgency.
        "urgency": URGENCY, optional "`main_urgency` or `embedded_urgency`";
        /// Whether the object is above the fold, for the metrics `page_fold_mean_s` and `page_fold_median_s`.
        "above_fold": FieldKind::Boolean, optional "`false`";
    }],
    ..Table::EMPTY
};

fn integer<T: TryFrom<i64>>(value: i64, largest: T) -> T {
    T::try_from(value).unwrap_or(largest)
}

/// Returns the distribution that a key states, or the default one. A constant has no separate maximum.
fn law(
    reader: &mut SettingsReader<'_, '_>,
    key: &str,
    usual: BoundedDistribution,
    max: f64,
) -> Result<BoundedDistribution, component::InvalidSettings> {
    let Some(value) = reader.tree.get(key) else { return Ok(BoundedDistribution { max, ..usual }) };
    let drawn = matches!(value.data, ValueData::Table(_));
    Ok(match reader.distribution(key)? {
        Distribution::Constant { value } if !drawn => BoundedDistribution::constant(value),
        law => BoundedDistribution { law, max },
    })
}

fn pages(reader: &mut SettingsReader<'_, '_>) -> Result<PageSource, component::InvalidSettings> {
    let tree = reader.tree;
    if tree.get("objects").is_some() {
        return Ok(PageSource::List(tree.tables("objects").iter().map(object).collect()));
    }
    let usual = match tree.get("laws") {
        Some(_) => tree.choice_value("laws", &LAWS)(),
        None => PageDistributions::pries(),
    };
    let size = |key: &str| tree.size(key) as f64;
    let number = |key: &str| tree.integer(key) as f64;
    let laws = PageDistributions {
        main_bytes: law(reader, "main_size", usual.main_bytes, size("main_size_max"))?,
        main_objects: law(reader, "main_objects", usual.main_objects, number("main_objects_max"))?,
        embedded_bytes: law(reader, "embedded_size", usual.embedded_bytes, size("embedded_size_max"))?,
        embedded_objects: law(reader, "embedded_objects", usual.embedded_objects, number("embedded_objects_max"))?,
    };
    // The check of the settings has the same rule, but it does not know the keys.
    if laws.most_objects() > MOST_OBJECTS {
        // A constant is its own maximum.
        let limiting = |key: &'static str, max: &'static str| {
            let is_constant = tree.get(key).is_some_and(|value| !matches!(value.data, ValueData::Table(_)));
            if is_constant { key } else { max }
        };
        let main = limiting("main_objects", "main_objects_max");
        let embedded = limiting("embedded_objects", "embedded_objects_max");
        let message = format!(
            "{} has {main} = {} and {embedded} = {}, which give pages of up to {} objects",
            reader.path,
            laws.main_objects.max,
            laws.embedded_objects.max,
            laws.most_objects()
        );
        let at = if tree.is_given(main) { main } else { embedded };
        return Err(reader.add_error(at, message, &format!("at most {MOST_OBJECTS} objects in a page")));
    }
    Ok(PageSource::Random(laws))
}

fn object(tree: &Tree) -> ObjectSpec {
    let place = |value: &Value| integer(value.integer() - 1, u32::MAX);
    ObjectSpec {
        bytes: tree.size("size"),
        after: tree.list("after").iter().map(place).collect(),
        stream: tree.get("stream").map(place),
        main: tree.boolean("main"),
        urgency: tree.get("urgency").map(|urgency| integer(urgency.integer(), 7)),
        above_fold: tree.get("above_fold").is_some_and(|_| tree.boolean("above_fold")),
    }
}

fn read(
    reader: &mut SettingsReader<'_, '_>,
    carrier: &FlowTransport,
) -> Result<Box<dyn WorkloadSettings>, component::InvalidSettings> {
    let tree = reader.tree;
    let page_interval_s = match tree.get("page_interval") {
        Some(_) => Some(law(reader, "page_interval", BoundedDistribution::constant(0.0), f64::from(u32::MAX))?),
        None => None,
    };
    let spec = WebSpec {
        page_interval_s,
        above_fold: tree.get("above_fold").map(|_| tree.number("above_fold")),
        http: tree.choice_value("http", &HTTP),
        source: pages(reader)?,
        dependencies: tree.choice_value("dependencies", &DEPENDENCIES),
        pages: u64::try_from(tree.integer("pages")).ok(),
        reading_s: law(
            reader,
            "reading",
            BoundedDistribution::pries_reading(),
            tree.duration("reading_max").as_secs_f64(),
        )?,
        connections: integer(tree.integer("connections"), u32::MAX),
        concurrent: integer(tree.integer("concurrent"), u32::MAX),
        keep_connections: tree.boolean("keep_connections"),
        request_bytes: small(tree, "request"),
        response_header_bytes: small(tree, "response_header"),
        main_urgency: integer(tree.integer("main_urgency"), 7),
        embedded_urgency: integer(tree.integer("embedded_urgency"), 7),
        incremental: tree.boolean("incremental"),
        low_water_bytes: tree.size("low_water"),
        small_below_bytes: tree.size("small_below"),
        stream_latencies: tree.list("stream_latencies").iter().map(Value::duration).collect(),
        completions: tree.choice_value("completions", &COMPLETIONS),
    };
    runs_over(spec.http, reader, carrier)?;
    Ok(Box::new(spec))
}

/// Checks that a version of HTTP can use the flow's transport.
fn runs_over(
    http: PageProtocol,
    reader: &mut SettingsReader<'_, '_>,
    carrier: &FlowTransport,
) -> Result<(), component::InvalidSettings> {
    let (name, path) = (reader.tree.choice("http"), reader.path);
    let over_quic = matches!(http, PageProtocol::Http3 | PageProtocol::Streams);
    let (needs, expected) = match (carrier.protocol, over_quic) {
        // Pages over QUIC need the model's stack, which is not the default.
        (Protocol::Tcp, true) => (
            format!("protocol = \"quic\", but {path} has protocol = \"tcp\""),
            vec!["protocol = \"quic\" with quic.stack = \"model\"", "http = \"1.1\"", "http = \"2\""],
        ),
        (Protocol::Quic, false) => (
            format!("protocol = \"tcp\", but {path} has protocol = \"quic\""),
            if carrier.several_streams {
                vec!["http = \"3\"", "http = \"streams\"", "protocol = \"tcp\""]
            } else {
                vec![
                    "protocol = \"tcp\"",
                    "http = \"3\" with quic.stack = \"model\"",
                    "http = \"streams\" with quic.stack = \"model\"",
                ]
            },
        ),
        (Protocol::Quic, true) if !carrier.several_streams => (
            "several streams in a connection, but quic.stack = \"noq\" supports only one".to_string(),
            vec!["quic.stack = \"model\""],
        ),
        _ => return Ok(()),
    };
    let message = format!("{path}.http = \"{name}\" requires {needs}");
    let expected = expected.into_iter().map(str::to_string).collect();
    reader.check.add_error(reader.tree.location_of("http"), &format!("{path}.http"), message, expected);
    Err(component::InvalidSettings)
}

impl WorkloadSettings for WebSpec {
    fn port(&self) -> Option<u16> {
        (self.http == PageProtocol::Http1).then_some(80)
    }

    fn is_unlimited(&self) -> bool {
        self.pages.is_none()
    }

    fn senders(&self) -> [bool; 2] {
        [true, true]
    }

    /// The server sends the pages.
    fn main_senders(&self) -> [bool; 2] {
        [false, true]
    }

    fn demand(&self, _time_s: f64) -> Demand {
        /// The factor on the mean page size if there are few random pages. Hardly any page is larger.
        const MARGIN: f64 = 4.0;
        let mean = |law: &BoundedDistribution| law.law.mean().min(law.max);
        let (objects, bytes, is_random) = match &self.source {
            PageSource::List(objects) => {
                (objects.len() as f64, objects.iter().map(|object| object.bytes as f64).sum(), false)
            }
            PageSource::Random(laws) => {
                let main = mean(&laws.main_objects).max(1.0);
                let embedded = main * mean(&laws.embedded_objects);
                let bytes = main * mean(&laws.main_bytes) + embedded * mean(&laws.embedded_bytes);
                (main + embedded, bytes, true)
            }
        };
        let headers = objects * f64::from(self.response_header_bytes);
        let interval_s = self.page_interval_s.as_ref().map_or_else(|| mean(&self.reading_s), mean);
        let margin = if is_random { MARGIN } else { 1.0 };
        let page = Demand {
            bytes: [objects * f64::from(self.request_bytes), bytes + headers].map(|bytes| margin * bytes),
            messages: [margin * objects; 2],
            connections: if self.http == PageProtocol::Http1 { f64::from(self.connections) } else { 1.0 },
            lifetime_s: (!self.keep_connections).then_some(0.0),
            timers: 1.0,
            exchanges: Some(Exchanges {
                most: self.pages.map_or(f64::INFINITY, |pages| pages as f64),
                // Connection, document, objects.
                round_trips: 4.0,
                pause_s: interval_s,
            }),
            ..Demand::NO_DATA
        };
        if is_random { page.as_upper_bound("random web pages, counted with four times their mean size") } else { page }
    }

    fn applications(&self, context: &FlowContext<'_>) -> Result<[Box<dyn Application>; 2], ParameterError> {
        let random = || context.random("workload");
        Ok([Box::new(WebClient::new(self, random())?), Box::new(WebServer::new(self, random())?)])
    }

    fn check(&self) -> Result<(), ParameterError> {
        self.source.check()?;
        self.reading_s.check().map_err(|invalid| invalid.in_field("reading"))?;
        if let Some(law) = &self.page_interval_s {
            law.check().map_err(|invalid| invalid.in_field("page_interval"))?;
            // Pages with an interval of zero would all start at once.
            ParameterError::ensure(law.max > 0.0, "page_interval must be positive")?;
            ParameterError::ensure(self.keep_connections, "page_interval requires keep_connections = true")?;
            ParameterError::ensure(self.pages.is_some(), "page_interval requires pages")?;
        }
        let share = self.above_fold.is_none_or(|share| (0.0..=1.0).contains(&share));
        ParameterError::ensure(share, "above_fold must be a share from 0 to 1")?;
        let request = (wire::CONTENT_BYTES as u32..=super::MAX_HEADER_BYTES).contains(&self.request_bytes);
        ParameterError::ensure(request, "request must have from 12 bytes to 16 KiB")?;
        let header = self.response_header_bytes <= super::MAX_HEADER_BYTES;
        ParameterError::ensure(header, "response_header must have at most 16 KiB")?;
        ParameterError::ensure(self.connections > 0, "connections must be at least 1")?;
        ParameterError::ensure(self.concurrent > 0, "concurrent must be at least 1")?;
        let urgencies = self.main_urgency <= 7 && self.embedded_urgency <= 7;
        ParameterError::ensure(urgencies, "urgency must be from 0 to 7")?;
        ParameterError::ensure(self.low_water_bytes > 0, "low_water must be positive")?;
        let streams = self.completions != CompletionUnit::Streams || self.http == PageProtocol::Streams;
        ParameterError::ensure(streams, "completions of streams require http = \"streams\"")
    }
}
