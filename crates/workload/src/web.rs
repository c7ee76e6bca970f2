//! Web pages: a browser fetches pages of many objects over HTTP/1.1, HTTP/2, HTTP/3 or a few long-lived streams.
//!
//! `page.rs` defines pages: drawn from five distributions (Pries et al. 2012), or a list of objects with dependencies. `load.rs`
//! decides which objects may be requested. Objects are fetched in one of these ways:
//!
//! - HTTP/1.1 (RFC 9112): up to six connections (what browsers open to one host), one request at a time on each. An idle
//!   connection takes the next object; a connection is opened when none is idle. No pipelining.
//! - HTTP/2 (RFC 9113): one connection. Requests and responses are frames with a 9-byte header and up to 16 384 bytes. For each
//!   frame the server selects the response (RFC 9218). It keeps little unsent data in the transport's buffer, since data written
//!   there cannot be overtaken.
//! - HTTP/3 (RFC 9114): one connection, a stream for each object and a control stream. The transport schedules the streams by the
//!   urgencies that the server sets.
//! - Streams: one connection with a few streams. The client sends one request per page; the server responds with all objects of
//!   the page, each on its stream (the pages of Paiva et al., "Extending the ns-3 QUIC Module", MSWiM 2020).
//!
//! A request has as many bytes as its headers would have, and contains the numbers of the page and the object. So the server can
//! identify the object on any connection. Both ends have the content of the page (`page.rs`). A response is a length: header and
//! object. Header sizes are constants that stand for the output of HPACK or QPACK.

mod client;
mod keys;
mod load;
mod outbox;
mod page;
mod results;
mod server;
mod wire;

pub use client::WebClient;
pub(crate) use keys::WEB;
pub use page::{BoundedDistribution, Dependencies, ObjectSpec, PageDistributions, PageSource};
pub use server::WebServer;

use fullpipe_units::{Distribution, Duration};

/// Largest header of a request or response in bytes. It fits into one HTTP/2 frame.
const MAX_HEADER_BYTES: u32 = 1 << 14;

/// The protocol with which objects are fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageProtocol {
    /// HTTP/1.1.
    Http1,
    /// HTTP/2.
    Http2,
    /// HTTP/3.
    Http3,
    /// All objects of a page on a few streams, after one request.
    Streams,
}

/// The unit of a [`crate::Completion`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CompletionUnit {
    /// A page: from the request of its first object to the last byte of its last object. The time includes the opening
    /// of the connection if there is none yet. The bytes are those of all objects of the page.
    #[default]
    Pages,
    /// An object: from its request to its last byte.
    Objects,
    /// The part of a page on one stream. With [`PageProtocol::Streams`], a complete page gives one completion per
    /// stream, in the order of the streams. The completion lasts from the request to the stream's last byte. A stream
    /// without objects of the page has 0 bytes and a duration of 0.
    Streams,
}

/// The settings of a browser and a server of pages.
#[derive(Clone, Debug, PartialEq)]
pub struct WebSpec {
    /// The protocol with which objects are fetched.
    pub http: PageProtocol,
    /// The objects of pages.
    pub source: PageSource,
    /// The dependencies between objects.
    pub dependencies: Dependencies,
    /// Number of pages (`None`: unlimited).
    pub pages: Option<u64>,
    /// Time in seconds from the end of a page to the start of the next.
    pub reading_s: BoundedDistribution,
    /// Time in seconds from the start of a page to the start of the next, even if the page is not complete. Pages can
    /// therefore overlap. `None`: pages are fetched one after another.
    pub page_interval_s: Option<BoundedDistribution>,
    /// Fraction of a drawn page's embedded objects that are above the fold: the first ones in the page's order, in addition to
    /// all main objects. `None`: the fold is not modeled.
    pub above_fold: Option<f64>,
    /// HTTP/1.1: largest number of parallel connections.
    pub connections: u32,
    /// HTTP/2 and HTTP/3: maximum number of concurrent requests (the server's limit on concurrent streams).
    pub concurrent: u32,
    /// Whether connections are kept for the next page.
    pub keep_connections: bool,
    /// Size of a request in bytes: a header without content (from 12 bytes to 16 KiB).
    pub request_bytes: u32,
    /// Size of the response header before each object, in bytes.
    pub response_header_bytes: u32,
    /// RFC 9218 urgency of main objects, 0 (most urgent) to 7.
    pub main_urgency: u8,
    /// RFC 9218 urgency of other objects.
    pub embedded_urgency: u8,
    /// Whether embedded objects are incremental: equally urgent ones are then interleaved instead of sent one after another.
    pub incremental: bool,
    /// HTTP/2: the server writes no further frame while this many bytes are written and unsent.
    pub low_water_bytes: u64,
    /// Streams: embedded objects of drawn pages that are smaller than this use the first stream, with the main objects; the
    /// others use the second.
    pub small_below_bytes: u64,
    /// Streams: the deadline of a byte on each stream, counted from its writing, for transports with deadlines. The
    /// last value applies to all further streams. If the list is empty, the transport uses its own deadlines.
    pub stream_latencies: Vec<Duration>,
    /// The unit of completions.
    pub completions: CompletionUnit,
}

impl WebSpec {
    /// Returns settings with the page distributions of Pries et al. and with protocol settings that are common today.
    pub fn new(http: PageProtocol) -> Self {
        WebSpec {
            http,
            source: PageSource::Random(PageDistributions::pries()),
            dependencies: Dependencies::Main,
            pages: Some(1),
            reading_s: BoundedDistribution::pries_reading(),
            page_interval_s: None,
            above_fold: None,
            connections: 6,
            concurrent: 100,
            keep_connections: true,
            request_bytes: 350,
            response_header_bytes: 300,
            main_urgency: 1,
            embedded_urgency: 3,
            incremental: false,
            low_water_bytes: 16 << 10,
            small_below_bytes: 12_000,
            stream_latencies: Vec::new(),
            completions: CompletionUnit::default(),
        }
    }

    /// Bytes of a request, without the HTTP/2 frame header.
    fn request_length(&self) -> u64 {
        let header = u64::from(self.request_bytes);
        if self.http == PageProtocol::Http3 { wire::http3_frame_bytes(header) } else { header }
    }

    /// Bytes of a response, header and object, without HTTP/2 frame headers.
    fn response_length(&self, object_bytes: u64) -> u64 {
        let header = u64::from(self.response_header_bytes);
        match self.http {
            PageProtocol::Http3 => wire::http3_frame_bytes(header) + wire::http3_frame_bytes(object_bytes),
            _ => header + object_bytes,
        }
    }

    /// Whether objects above the fold are distinguished.
    fn has_fold(&self) -> bool {
        match &self.source {
            PageSource::Random(_) => self.above_fold.is_some(),
            PageSource::List(objects) => objects.iter().any(|object| object.above_fold),
        }
    }

    /// Whether there is a page with this number.
    fn has(&self, number: u32) -> bool {
        self.pages.is_none_or(|pages| u64::from(number) < pages)
    }
}

impl BoundedDistribution {
    /// Returns the distribution of the reading time of Pries et al.
    pub fn pries_reading() -> BoundedDistribution {
        BoundedDistribution { law: Distribution::LogNormal { mu: -0.495_204, sigma: 2.7731 }, max: 10_000.0 }
    }
}
