//! Pages: their objects, the sizes of the objects and their dependencies.
//!
//! Drawn pages follow Pries, Magyari and Tran-Gia, "An HTTP web traffic model based on the top one million visited web pages"
//! (NGI 2012). A page has main objects (the document, frames, scripts), each of which has embedded objects. Five distributions
//! give the numbers and sizes of objects and the reading time. Only the fitted distributions of that paper are available, not its
//! data. Their means differ from those of the data, which the paper states: main objects per page 2.04 (data 1.2), embedded
//! objects 21 091 bytes (data 23 915), reading 28.5 s (data 39.7 s). A sample above the maximum counts as the maximum. Counts are
//! rounded to the nearest integer, main objects to at least 1; sizes to at least a byte.
//!
//! Page n depends only on n and one random number that both ends have, so either end can draw any page at any time. The main
//! objects come first, then the embedded objects of all main objects in random order.

use crate::{Distribution, ParameterError};
use fullpipe_units::{Duration, RandomStream};

/// Largest number of objects of a page.
pub(super) const MOST_OBJECTS: f64 = 1_000_000.0;

/// Largest number of streams of a page.
pub(super) const MOST_STREAMS: u32 = 100;

/// A distribution with a maximum: larger samples count as the maximum.
#[derive(Clone, Debug, PartialEq)]
pub struct BoundedDistribution {
    /// The distribution.
    pub law: Distribution,
    /// The maximum.
    pub max: f64,
}

impl BoundedDistribution {
    /// Returns a distribution that always has this value.
    pub fn constant(value: f64) -> BoundedDistribution {
        BoundedDistribution { law: Distribution::Constant { value }, max: value }
    }

    /// Checks the distribution and the maximum.
    ///
    /// # Errors
    /// Returns the rule that the values violate.
    pub fn check(&self) -> Result<(), ParameterError> {
        self.law.check()?;
        ParameterError::ensure(self.max >= 0.0 && self.max.is_finite(), "the maximum must not be negative")
    }

    /// Draws a sample, at least 0, with one number of the random stream.
    pub fn sample(&self, random: &mut RandomStream) -> f64 {
        self.law.sample(random).min(self.max).max(0.0)
    }

    /// Draws a sample as a size: rounded, at least one byte.
    fn sample_bytes(&self, random: &mut RandomStream) -> u64 {
        self.sample(random).round().max(1.0) as u64
    }

    /// Draws a sample as a count: rounded, at least `least`.
    fn sample_count(&self, random: &mut RandomStream, least: u32) -> u32 {
        (self.sample(random).round() as u32).max(least)
    }
}

/// The distributions of drawn pages.
#[derive(Clone, Debug, PartialEq)]
pub struct PageDistributions {
    /// Size of a main object in bytes.
    pub main_bytes: BoundedDistribution,
    /// Number of main objects of a page.
    pub main_objects: BoundedDistribution,
    /// Size of an embedded object in bytes.
    pub embedded_bytes: BoundedDistribution,
    /// Number of embedded objects of a main object.
    pub embedded_objects: BoundedDistribution,
}

impl PageDistributions {
    /// Returns the fitted distributions of Pries et al.
    pub fn pries() -> Self {
        PageDistributions {
            main_bytes: BoundedDistribution {
                law: Distribution::Weibull { shape: 0.814_944, scale: 28_242.8 },
                max: 8e6,
            },
            main_objects: BoundedDistribution {
                law: Distribution::LogNormal { mu: 0.473_844, sigma: 0.688_471 },
                max: 212.0,
            },
            embedded_bytes: BoundedDistribution {
                law: Distribution::LogNormal { mu: 9.179_79, sigma: 1.246_46 },
                max: 8e6,
            },
            embedded_objects: BoundedDistribution {
                law: Distribution::Exponential { mean: 1.0 / 0.031_32 },
                max: 1920.0,
            },
        }
    }

    /// Returns the distributions of Pries et al. with a different number of main objects per page. That number has the
    /// mean (1.2) and the standard deviation (2.63) of the paper's data instead of the fitted mean of 2.04.
    ///
    /// Mean and deviation of a log-normal variable, rounded to the nearest integer, at least 1 and at most 212, are sums over the
    /// 212 values. `mu` and `sigma` solve the two equations.
    pub fn pries_data() -> Self {
        let main_objects =
            BoundedDistribution { law: Distribution::LogNormal { mu: -3.524_706, sigma: 2.234_815 }, max: 212.0 };
        PageDistributions { main_objects, ..PageDistributions::pries() }
    }
}

/// An object of a page that is defined by a list.
#[derive(Clone, Debug, PartialEq)]
pub struct ObjectSpec {
    /// Size in bytes (at least 1).
    pub bytes: u64,
    /// Objects that must have arrived before this one is requested: their indices in the list, from 0. They must precede this
    /// object.
    pub after: Vec<u32>,
    /// Index of the object's stream with [`super::PageProtocol::Streams`], from 0; `None`: by size and kind, as in drawn pages.
    pub stream: Option<u32>,
    /// Whether the object is a main object.
    pub main: bool,
    /// RFC 9218 urgency; `None`: the default of its kind.
    pub urgency: Option<u8>,
    /// Whether the object is above the fold, that is, visible without scrolling.
    pub above_fold: bool,
}

/// The source of pages.
#[derive(Clone, Debug, PartialEq)]
pub enum PageSource {
    /// Each page is drawn from distributions.
    Random(PageDistributions),
    /// Every page consists of these objects.
    List(Vec<ObjectSpec>),
}

impl PageSource {
    /// Checks the source.
    ///
    /// # Errors
    /// Returns the rule that the values violate.
    pub fn check(&self) -> Result<(), ParameterError> {
        match self {
            PageSource::Random(laws) => laws.check(),
            PageSource::List(objects) => {
                ParameterError::ensure(!objects.is_empty(), "objects must have at least one element")?;
                ParameterError::ensure(
                    objects.len() as f64 <= MOST_OBJECTS,
                    "objects must have at most 1 million elements",
                )?;
                (0..).zip(objects).try_for_each(|(number, object)| object.check(number))
            }
        }
    }
}

impl PageDistributions {
    /// The largest number of objects in a page.
    pub(super) fn most_objects(&self) -> f64 {
        self.main_objects.max.max(1.0) * (1.0 + self.embedded_objects.max)
    }

    fn check(&self) -> Result<(), ParameterError> {
        self.main_bytes.check().map_err(|invalid| invalid.in_field("main_size"))?;
        self.main_objects.check().map_err(|invalid| invalid.in_field("main_objects"))?;
        self.embedded_bytes.check().map_err(|invalid| invalid.in_field("embedded_size"))?;
        self.embedded_objects.check().map_err(|invalid| invalid.in_field("embedded_objects"))?;
        ParameterError::ensure(
            self.most_objects() <= MOST_OBJECTS,
            "the maxima of main_objects and embedded_objects must give at most 1 million objects in a page",
        )
    }
}

impl ObjectSpec {
    fn check(&self, number: u32) -> Result<(), ParameterError> {
        ParameterError::ensure(self.bytes > 0, "each of objects must have at least 1 byte")?;
        if let Some(&other) = self.after.iter().find(|other| **other >= number) {
            // Scenario files count objects from 1.
            let (own, other) = (u64::from(number) + 1, u64::from(other) + 1);
            let other = if own == other { "itself".to_owned() } else { format!("object {other}") };
            let rule = format!("object {own} waits for {other}; expected only numbers of earlier objects in after");
            return Err(ParameterError(rule));
        }
        let urgency = self.urgency.is_none_or(|urgency| urgency <= 7);
        ParameterError::ensure(urgency, "the urgency of objects must be from 0 to 7")?;
        let stream = self.stream.is_none_or(|stream| stream < MOST_STREAMS);
        ParameterError::ensure(stream, "objects must use at most 100 streams")
    }
}

/// The dependencies between the objects of a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dependencies {
    /// No dependencies: all objects are requested at once.
    None,
    /// Embedded objects wait for their main object; main objects do not wait.
    #[default]
    Main,
    /// As `Main`, and each main object waits for the previous one.
    MainSequential,
    /// Each object waits for the previous one.
    Chain,
}

/// An object of a page.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Object {
    pub(super) bytes: u64,
    pub(super) main: bool,
    /// Objects that must have arrived before this one is requested.
    pub(super) after: Vec<u32>,
    /// Explicit stream index, from 0.
    pub(super) stream: Option<u32>,
    pub(super) urgency: Option<u8>,
    pub(super) above_fold: bool,
}

/// A page.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) number: u32,
    pub(super) objects: Vec<Object>,
    /// The reading time.
    pub(super) reading: Duration,
    /// Time from its start to the start of the next page, if pages can overlap.
    pub(super) interval: Option<Duration>,
}

/// All pages, with access to any page at any time.
#[derive(Debug)]
pub(super) struct Pages {
    source: PageSource,
    dependencies: Dependencies,
    reading_s: BoundedDistribution,
    page_interval_s: Option<BoundedDistribution>,
    above_fold: f64,
    seed: u64,
}

impl Pages {
    /// `random` is equal at both ends.
    pub(super) fn new(spec: &super::WebSpec, mut random: RandomStream) -> Self {
        Pages {
            source: spec.source.clone(),
            dependencies: spec.dependencies,
            reading_s: spec.reading_s.clone(),
            page_interval_s: spec.page_interval_s.clone(),
            above_fold: spec.above_fold.unwrap_or(0.0),
            seed: random.next_u64(),
        }
    }

    /// Returns page `number`, counted from 0.
    pub(super) fn page(&self, number: u32) -> Page {
        let random = |purpose| RandomStream::new(self.seed, &format!("page {number}"), purpose);
        let objects = match &self.source {
            PageSource::Random(laws) => {
                let mut objects = drawn(laws, self.dependencies, &mut random("objects"));
                mark_above_fold(&mut objects, self.above_fold);
                objects
            }
            PageSource::List(objects) => objects.iter().map(listed).collect(),
        };
        let seconds = self.reading_s.sample(&mut random("reading"));
        let interval = |law: &BoundedDistribution| Duration::from_secs_f64(law.sample(&mut random("interval")));
        let interval = self.page_interval_s.as_ref().map(interval);
        Page { number, objects, reading: Duration::from_secs_f64(seconds), interval }
    }
}

fn listed(object: &ObjectSpec) -> Object {
    Object {
        bytes: object.bytes,
        main: object.main,
        after: object.after.clone(),
        stream: object.stream,
        urgency: object.urgency,
        above_fold: object.above_fold,
    }
}

/// Marks the main objects and the first embedded ones as above the fold: a fraction `share` of the embedded ones, rounded up.
fn mark_above_fold(objects: &mut [Object], share: f64) {
    let embedded = objects.iter().filter(|object| !object.main).count();
    let above = (share * embedded as f64).ceil() as usize;
    let (mains, others): (Vec<&mut Object>, Vec<&mut Object>) = objects.iter_mut().partition(|object| object.main);
    mains.into_iter().chain(others.into_iter().take(above)).for_each(|object| object.above_fold = true);
}

fn drawn(laws: &PageDistributions, dependencies: Dependencies, random: &mut RandomStream) -> Vec<Object> {
    let mains = laws.main_objects.sample_count(random, 1);
    let object =
        |bytes, main| Object { bytes, main, after: Vec::new(), stream: None, urgency: None, above_fold: false };
    let mut objects: Vec<Object> = (0..mains).map(|_| object(laws.main_bytes.sample_bytes(random), true)).collect();
    for main in 0..mains {
        for _ in 0..laws.embedded_objects.sample_count(random, 0) {
            let embedded = object(laws.embedded_bytes.sample_bytes(random), false);
            objects.push(Object { after: vec![main], ..embedded });
        }
    }
    shuffle(&mut objects[mains as usize..], random);
    for (number, object) in (0..).zip(&mut objects) {
        match dependencies {
            Dependencies::None => object.after.clear(),
            Dependencies::Main => {}
            Dependencies::MainSequential if object.main => object.after = before(number),
            Dependencies::MainSequential => {}
            Dependencies::Chain => object.after = before(number),
        }
    }
    objects
}

/// The object before `number`, if there is one.
fn before(number: u32) -> Vec<u32> {
    number.checked_sub(1).into_iter().collect()
}

/// Shuffles objects so that every order is equally probable (Fisher-Yates).
fn shuffle(objects: &mut [Object], random: &mut RandomStream) {
    for last in (1..objects.len()).rev() {
        objects.swap(last, random.uniform_below(last as u64 + 1) as usize);
    }
}

impl super::WebSpec {
    /// Returns the index of an object's stream, from 0.
    pub(super) fn stream_of(&self, object: &Object) -> u32 {
        let small = object.main || object.bytes < self.small_below_bytes;
        object.stream.unwrap_or(if small { 0 } else { 1 })
    }

    /// Returns the number of streams.
    pub(super) fn streams(&self) -> u32 {
        match &self.source {
            PageSource::Random(_) => 2,
            PageSource::List(objects) => {
                objects.iter().map(|object| self.stream_of(&listed(object)) + 1).max().unwrap_or(1)
            }
        }
    }

    /// Returns the urgency of an object, and whether it is incremental.
    pub(super) fn urgency_of(&self, object: &Object) -> (u8, bool) {
        let of_kind = if object.main { self.main_urgency } else { self.embedded_urgency };
        (object.urgency.unwrap_or(of_kind), self.incremental && !object.main)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{PageProtocol, WebSpec};
    use super::*;

    fn pages(dependencies: Dependencies) -> Pages {
        Pages::new(
            &WebSpec { dependencies, ..WebSpec::new(PageProtocol::Http1) },
            RandomStream::new(4, "flow", "workload"),
        )
    }

    /// Checks that the mean of the samples is the expected one within five of its standard errors, which are small.
    fn mean_is(name: &str, samples: &[f64], expected: f64, relative: f64) {
        let n = samples.len() as f64;
        let mean = samples.iter().sum::<f64>() / n;
        let variance = samples.iter().map(|sample| (sample - mean) * (sample - mean)).sum::<f64>() / n;
        let bound = 5.0 * (variance / n).sqrt();
        assert!((mean - expected).abs() < bound, "{name}: {mean}, not {expected} +- {bound}");
        assert!(bound < relative * expected, "{name}: the bound {bound} is too wide");
    }

    #[test]
    fn means_are_those_of_the_fitted_distributions() {
        let pages = pages(Dependencies::Main);
        let [mut mains, mut main_bytes, mut embedded, mut embedded_bytes] = [const { Vec::new() }; 4];
        for page in (0..12_000).map(|number| pages.page(number)) {
            let count = page.objects.iter().filter(|object| object.main).count();
            mains.push(count as f64);
            let mut of_main = vec![0.0; count];
            for object in &page.objects {
                let bytes = if object.main { &mut main_bytes } else { &mut embedded_bytes };
                bytes.push(object.bytes as f64);
                object.after.iter().for_each(|&main| of_main[main as usize] += 1.0);
            }
            embedded.extend(of_main);
        }
        // Main objects: 1 + sum over n >= 2 of P(X >= n - 1/2) = 1 + sum of 1 - Phi((ln(n - 1/2) - 0.473844) / 0.688471),
        // by the complementary error function; the law without rounding has exp(0.473844 + 0.688471^2 / 2) = 2.036.
        mean_is("main objects", &mains, 2.089_716, 0.05);
        // 28 242.8 Gamma(1 + 1 / 0.814944) = 28 242.8 x 1.118 395.
        mean_is("main size", &main_bytes, 31_586.6, 0.05);
        // P(X >= n - 1/2) = exp(-0.03132 (n - 1/2)), summed over n >= 1: 1 / (2 sinh(0.01566)).
        mean_is("embedded objects", &embedded, 31.927_175, 0.06);
        // exp(9.17979 + 1.24646^2 / 2).
        mean_is("embedded size", &embedded_bytes, 21_091.4, 0.05);
    }

    #[test]
    fn reading_times_are_limited_to_their_maximum() {
        // E(X; X < M) + M P(X > M) with M = 10 000 s: 28.498 Phi((ln M - mu - sigma^2) / sigma) + M (1 - Phi((ln M - mu) /
        // sigma)) = 24.166; without the maximum 28.498.
        let (law, mut random) = (BoundedDistribution::pries_reading(), RandomStream::new(5, "law", "reading"));
        let samples: Vec<f64> = (0..400_000).map(|_| law.sample(&mut random)).collect();
        mean_is("reading", &samples, 24.166, 0.1);
        assert_eq!(samples.iter().copied().fold(0.0, f64::max), 10_000.0);
    }

    #[test]
    fn main_objects_of_the_data_have_its_mean_and_deviation() {
        // Pries et al., table 1 as quoted by Paiva et al.: mean 1.2, standard deviation 2.63, at most 212.
        let (laws, mut random) = (PageDistributions::pries_data(), RandomStream::new(7, "law", "main objects"));
        let count = |random: &mut RandomStream| f64::from(laws.main_objects.sample_count(random, 1));
        let samples: Vec<f64> = (0..800_000).map(|_| count(&mut random)).collect();
        mean_is("main objects", &samples, 1.2, 0.02);
        // The mean of the squares is 2.63^2 + 1.2^2 = 8.3569.
        let squares: Vec<f64> = samples.iter().map(|sample| sample * sample).collect();
        mean_is("squares of main objects", &squares, 8.3569, 0.3);
    }

    #[test]
    fn main_objects_and_a_share_of_the_embedded_ones_are_above_the_fold() {
        let spec = WebSpec { above_fold: Some(0.3), ..WebSpec::new(PageProtocol::Http1) };
        let pages = Pages::new(&spec, RandomStream::new(4, "flow", "workload"));
        for number in 0..20 {
            let objects = pages.page(number).objects;
            let (mains, others): (Vec<&Object>, Vec<&Object>) = objects.iter().partition(|object| object.main);
            assert!(mains.iter().all(|object| object.above_fold));
            let above: Vec<bool> = others.iter().map(|object| object.above_fold).collect();
            // Three tenths, rounded up. n tenths of ten are whole numbers.
            assert_eq!(above.iter().filter(|&&above| above).count(), (3 * others.len()).div_ceil(10));
            assert!(above.windows(2).all(|pair| pair[0] || !pair[1]), "the first objects: {above:?}");
        }
    }

    #[test]
    fn pages_can_be_drawn_in_any_order() {
        let (one, other) = (pages(Dependencies::Main), pages(Dependencies::Main));
        let forwards: Vec<Page> = (0..20).map(|number| one.page(number)).collect();
        for number in (0..20).rev() {
            let (page, again) = (&forwards[number as usize], other.page(number));
            assert_eq!((&page.objects, page.reading), (&again.objects, again.reading));
        }
        assert!(forwards.windows(2).all(|pair| pair[0].objects != pair[1].objects));
    }

    #[test]
    fn main_objects_precede_embedded_ones_in_random_order() {
        let pages = pages(Dependencies::Main);
        let page = (0..).map(|number| pages.page(number)).find(|page| page.objects[1].main && page.objects.len() > 60);
        let objects = page.expect("there is one").objects;
        let mains = objects.iter().filter(|object| object.main).count();
        assert!(objects[..mains].iter().all(|object| object.main && object.after.is_empty()));
        let parents: Vec<u32> = objects[mains..].iter().map(|object| object.after[0]).collect();
        assert!(parents.iter().all(|&parent| (parent as usize) < mains));
        assert!(!parents.is_sorted(), "{parents:?}");
    }

    #[test]
    fn shuffle_makes_every_order_equally_probable() {
        // Of three objects 6 orders, 60 000 shuffles: 10 000 each, standard deviation sqrt(60 000 x 5 / 36) = 91.
        let mut random = RandomStream::new(6, "page", "order");
        let mut counts = std::collections::BTreeMap::new();
        for _ in 0..60_000 {
            let object = |bytes| Object {
                bytes,
                main: false,
                after: Vec::new(),
                stream: None,
                urgency: None,
                above_fold: false,
            };
            let mut objects = [object(1), object(2), object(3)];
            shuffle(&mut objects, &mut random);
            *counts.entry(objects.map(|object| object.bytes)).or_insert(0u32) += 1;
        }
        assert_eq!(counts.len(), 6);
        assert!(counts.values().all(|count| count.abs_diff(10_000) < 460), "{counts:?}");
    }

    #[test]
    fn drawn_pages_have_the_dependencies_of_their_setting() {
        let after = |dependencies| -> Vec<(bool, Vec<u32>)> {
            let objects = pages(dependencies).page(3).objects;
            objects.into_iter().map(|object| (object.main, object.after)).collect()
        };
        assert!(after(Dependencies::None).iter().all(|(_, after)| after.is_empty()));
        for (number, (_, after)) in (0..).zip(after(Dependencies::Chain)) {
            assert_eq!(after, before(number));
        }
        for (number, (main, after)) in (0..).zip(after(Dependencies::MainSequential)) {
            assert!(if main { after == before(number) } else { after.len() == 1 });
        }
    }
}
