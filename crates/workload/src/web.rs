//! Web pages: a browser fetches pages of many objects over HTTP/1.1, HTTP/2, HTTP/3 or a few long-lived streams.
//!
//! What a page is, `page.rs` says: drawn from five laws (Pries et al. 2012), or a list of objects that depend on each
//! other. Which of its objects may be requested when, `load.rs` says. The ways of fetching them:
//!
//! - HTTP/1.1 (RFC 9112): up to six connections (what browsers open to one host), one request at a time on each. An
//!   idle connection takes the next object; a connection is opened when none is idle. No pipelining.
//! - HTTP/2 (RFC 9113): one connection. Requests and responses are frames of a 9-byte header and up to 16 384 bytes. The
//!   server chooses frame by frame which response goes on (RFC 9218), and keeps little unsent in the transport's buffer,
//!   since what is written there cannot be overtaken any more.
//! - HTTP/3 (RFC 9114): one connection, a stream for each object and a control stream. What goes first is the transport's
//!   choice, which is told urgencies.
//! - Streams: one connection with a few streams; one request per page, which the server answers with all of the page's
//!   objects, each on its stream (how Paiva et al., "Extending the ns-3 QUIC Module", MSWiM 2020, used pages).
//!
//! A request is real bytes, as long as its headers would be, which name the page and the object, so that the server knows
//! which is meant on whatever connection it comes; what the page is, both ends know (`page.rs`). A response is a length:
//! header and object. Header sizes are constants, whatever HPACK or QPACK would make of them.

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
pub use page::{Dependencies, Law, ObjectSpec, PageLaws, PageSource};
pub use server::WebServer;

use fullpipe_units::{Distribution, Duration};

/// Largest header of a request or response: it fits into one frame of HTTP/2.
const MAX_HEADER_BYTES: u32 = 1 << 14;

/// How objects are fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Http {
    /// HTTP/1.1.
    One,
    /// HTTP/2.
    Two,
    /// HTTP/3.
    Three,
    /// All objects of a page on a few streams, after one request.
    Streams,
}

/// What a [`crate::Completion`] is of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WebCompletions {
    /// A page: from the request of its first object (the opening of the connection included, where there is none yet) to
    /// the last byte of its last object. Its bytes are those of its objects.
    #[default]
    Pages,
    /// An object: from its request to its last byte.
    Objects,
    /// All of a page that came on one stream: with [`Http::Streams`], for each page one of each stream, stream after
    /// stream, when the page is complete; from the request to the stream's last byte. A stream without objects of the
    /// page has none of its bytes and no time.
    Streams,
}

/// A browser and a server of pages.
#[derive(Clone, Debug, PartialEq)]
pub struct WebSpec {
    /// How objects are fetched.
    pub http: Http,
    /// What pages consist of.
    pub source: PageSource,
    /// Which objects wait for which.
    pub dependencies: Dependencies,
    /// Pages that are fetched (`None`: without end).
    pub pages: Option<u64>,
    /// Time in seconds from the end of a page to the begin of the next.
    pub reading_s: Law,
    /// Time in seconds from the begin of a page to the begin of the next, whether or not the page is complete, so that pages
    /// can overlap. `None`: pages are fetched one after another.
    pub page_interval_s: Option<Law>,
    /// Share of a drawn page's embedded objects that are above the fold, the first ones in the page's order, beside all main
    /// objects. `None`: not told apart.
    pub above_fold: Option<f64>,
    /// HTTP/1.1: most connections at a time.
    pub connections: u32,
    /// HTTP/2 and HTTP/3: most requests at a time (the server's limit of concurrent streams).
    pub concurrent: u32,
    /// Whether connections are kept from one page to the next.
    pub keep_connections: bool,
    /// Size of a request's header, all that a request consists of (from 12 bytes to 16 KiB).
    pub request_bytes: u32,
    /// Size of a response's header, before each object.
    pub response_header_bytes: u32,
    /// RFC 9218 urgency of main objects, 0 (most urgent) to 7.
    pub main_urgency: u8,
    /// RFC 9218 urgency of other objects.
    pub embedded_urgency: u8,
    /// Whether other objects are incremental: of equally urgent ones all go on in turn, instead of one after another.
    pub incremental: bool,
    /// HTTP/2: the server makes no further frame while so much is written and not sent, in bytes.
    pub low_water_bytes: u64,
    /// Streams: embedded objects of drawn pages that are smaller go on the first stream, with the main objects; the others
    /// on the second.
    pub small_below_bytes: u64,
    /// Streams: how long after it was written a byte of each stream is wanted, for transports that have deadlines. The
    /// last holds for all further streams; none: the transport's own.
    pub stream_latencies: Vec<Duration>,
    /// What completions are of.
    pub completions: WebCompletions,
}

impl WebSpec {
    /// Pages of Pries et al., fetched with the sizes that are usual today.
    pub fn new(http: Http) -> Self {
        WebSpec {
            http,
            source: PageSource::Drawn(PageLaws::pries()),
            dependencies: Dependencies::Main,
            pages: Some(1),
            reading_s: Law::pries_reading(),
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
            completions: WebCompletions::default(),
        }
    }

    /// Bytes of a request; with HTTP/2 the frame's header comes before.
    fn request_length(&self) -> u64 {
        let header = u64::from(self.request_bytes);
        if self.http == Http::Three { wire::http3_frame_bytes(header) } else { header }
    }

    /// Bytes of a response, header and object; with HTTP/2 without the headers of frames.
    fn response_length(&self, object_bytes: u64) -> u64 {
        let header = u64::from(self.response_header_bytes);
        match self.http {
            Http::Three => wire::http3_frame_bytes(header) + wire::http3_frame_bytes(object_bytes),
            _ => header + object_bytes,
        }
    }

    /// Whether objects above the fold are told apart.
    fn has_fold(&self) -> bool {
        match &self.source {
            PageSource::Drawn(_) => self.above_fold.is_some(),
            PageSource::Listed(objects) => objects.iter().any(|object| object.above_fold),
        }
    }

    /// Whether `number` is the number of a page.
    fn has(&self, number: u32) -> bool {
        self.pages.is_none_or(|pages| u64::from(number) < pages)
    }
}

impl Law {
    /// Reading time of Pries et al.
    pub fn pries_reading() -> Law {
        Law { law: Distribution::LogNormal { mu: -0.495_204, sigma: 2.7731 }, max: 10_000.0 }
    }
}
