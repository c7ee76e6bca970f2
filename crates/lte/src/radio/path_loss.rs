//! Path loss models, and shadowing.
//!
//! Each model is a variant of [`PathLoss`] with its parameters; sources are stated there. Distances are in meters along
//! the straight line unless stated otherwise, frequencies in hertz; `log` is to base 10. If a model has a base station
//! and a mobile, the higher end is the base station.

use super::hash::{hash, unit};
use super::power::ratio_to_db;
use fullpipe_units::math;
use std::f64::consts::{PI, TAU};

const LIGHT: f64 = 299_792_458.0;

/// The positions of the two ends relative to each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Geometry {
    /// Horizontal distance in m.
    pub horizontal_m: f64,
    /// Height of one end above ground in m.
    pub height_m: f64,
    /// Height of the other end above ground in m.
    pub other_height_m: f64,
}

impl Geometry {
    /// Returns the geometry of two ends at the same height above ground.
    pub fn flat(distance_m: f64) -> Self {
        Geometry { horizontal_m: distance_m, height_m: 1.5, other_height_m: 1.5 }
    }

    /// Returns the distance along the straight line in m.
    pub fn distance_m(&self) -> f64 {
        let up = self.height_m - self.other_height_m;
        (self.horizontal_m * self.horizontal_m + up * up).sqrt()
    }

    fn higher_m(&self) -> f64 {
        self.height_m.max(self.other_height_m)
    }

    fn lower_m(&self) -> f64 {
        self.height_m.min(self.other_height_m)
    }
}

/// The environment of the Okumura-Hata model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Environment {
    /// Urban.
    #[default]
    Urban,
    /// Suburban.
    Suburban,
    /// Open areas.
    Open,
}

/// Size of the city.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum CitySize {
    /// Large.
    #[default]
    Large,
    /// Medium or small.
    Small,
}

/// A street between buildings, for ITU-R P.1411.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Street {
    /// Height of rooftops in m.
    pub rooftop_m: f64,
    /// Width of the street in m.
    pub width_m: f64,
    /// Length of the path that is covered by buildings, in m.
    pub buildings_m: f64,
    /// Distance between neighboring rows of buildings in m.
    pub separation_m: f64,
    /// Angle between street and path, 0 to 90 degrees.
    pub orientation_degrees: f64,
    /// Size of the city.
    pub city: CitySize,
}

impl Default for Street {
    fn default() -> Self {
        Street {
            rooftop_m: 20.0,
            width_m: 20.0,
            buildings_m: 80.0,
            separation_m: 50.0,
            orientation_degrees: 45.0,
            city: CitySize::Large,
        }
    }
}

/// The material of an external wall, with its loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wall {
    /// Wood: 4 dB.
    Wood,
    /// Concrete with windows: 7 dB.
    ConcreteWithWindows,
    /// Concrete without windows: 15 dB.
    Concrete,
    /// Stone blocks: 12 dB.
    Stone,
}

impl Wall {
    fn db(self) -> f64 {
        match self {
            Wall::Wood => 4.0,
            Wall::ConcreteWithWindows => 7.0,
            Wall::Concrete => 15.0,
            Wall::Stone => 12.0,
        }
    }
}

/// A path loss model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PathLoss {
    /// The same loss everywhere.
    Constant {
        /// Loss in dB.
        db: f64,
    },
    /// Free space (Friis 1946) at one frequency for the whole carrier.
    Friis {
        /// Lower limit of the loss in dB.
        smallest_db: f64,
    },
    /// Free space (Friis) at the center frequency of each resource block, with a speed of light of 3e8 m/s, as in the
    /// test suites of ns-3. The loss is at least 0 dB and must be evaluated for each resource block.
    FriisPerBlock,
    /// `reference_db + 10 exponent log(d / reference_m)`; at distances below `reference_m`, the loss is `reference_db`.
    LogDistance {
        /// Exponent.
        exponent: f64,
        /// Reference distance in m.
        reference_m: f64,
        /// Loss at the reference distance in dB.
        reference_db: f64,
    },
    /// Log-distance with three ranges of distance, each with its own exponent.
    ThreeLogDistance {
        /// Start of each range in m.
        from_m: [f64; 3],
        /// Exponents of the ranges.
        exponents: [f64; 3],
        /// Loss in dB at the first of these distances and below it.
        reference_db: f64,
    },
    /// Free space up to a distance of 4 pi h1 h2 / wavelength; at larger distances, interference with the reflection
    /// from flat ground.
    TwoRayGround,
    /// The model of Okumura (1968) and Hata (1980). Above 1.5 GHz, the extension by COST 231 for an urban environment
    /// applies.
    OkumuraHata {
        /// Environment.
        environment: Environment,
        /// Size of the city.
        city: CitySize,
    },
    /// The extension by COST 231 with fixed heights and a constant, as in a class of ns-3.
    Cost231 {
        /// Height of the base station in m.
        base_m: f64,
        /// Height of the mobile in m.
        mobile_m: f64,
        /// Constant term in dB.
        constant_db: f64,
        /// Distance in m below which the loss is 0 dB.
        smallest_m: f64,
    },
    /// ITU-R P.1411, line of sight in a street canyon: the mean of its lower and upper bound.
    P1411LineOfSight,
    /// ITU-R P.1411, without line of sight, over rooftops.
    P1411OverRooftops(Street),
    /// Measurements by Kun and others at 2.6 GHz.
    Kun2600,
    /// The selection by ns-3 among these models for macro cells. If the distance exceeds 1 km and one end is above the
    /// rooftops, the model is Okumura-Hata, or Kun above 2.3 GHz. Otherwise the model is P.1411, with line of sight at
    /// short distances.
    Buildings {
        /// Environment.
        environment: Environment,
        /// The street.
        street: Street,
        /// Distance in m up to which there is line of sight.
        line_of_sight_m: f64,
        /// The external wall if one end is inside a building; `None` if both ends are outdoors.
        wall: Option<Wall>,
        /// Floor of the end inside the building; each floor reduces the loss by 2 dB.
        floor: u32,
    },
}

impl Default for PathLoss {
    fn default() -> Self {
        PathLoss::Friis { smallest_db: 0.0 }
    }
}

impl PathLoss {
    /// Returns log-distance with the defaults of ns-3: exponent 3 and 46.68 dB at 1 m.
    pub fn log_distance() -> Self {
        PathLoss::LogDistance { exponent: 3.0, reference_m: 1.0, reference_db: 46.68 }
    }

    /// Returns three-log-distance with the defaults of ns-3.
    pub fn three_log_distance() -> Self {
        PathLoss::ThreeLogDistance { from_m: [1.0, 200.0, 500.0], exponents: [1.9, 3.8, 3.8], reference_db: 46.68 }
    }

    /// Returns COST 231 with the defaults of ns-3.
    pub fn cost231() -> Self {
        PathLoss::Cost231 { base_m: 50.0, mobile_m: 3.0, constant_db: 10.0, smallest_m: 0.5 }
    }

    /// Returns `Buildings` with the defaults of ns-3, both ends outdoors.
    pub fn buildings() -> Self {
        PathLoss::Buildings {
            environment: Environment::Urban,
            street: Street::default(),
            line_of_sight_m: 200.0,
            wall: None,
            floor: 0,
        }
    }

    /// Whether the loss differs between resource blocks.
    pub fn is_per_block(&self) -> bool {
        matches!(self, PathLoss::FriisPerBlock)
    }

    /// Returns the loss in dB. `frequency_hz` is the carrier frequency, or the center of a resource block if
    /// [`PathLoss::is_per_block`] returns true.
    pub fn loss_db(&self, geometry: &Geometry, frequency_hz: f64) -> f64 {
        let distance = geometry.distance_m();
        match *self {
            PathLoss::Constant { db } => db,
            PathLoss::Friis { smallest_db } => free_space(distance, LIGHT / frequency_hz).max(smallest_db),
            PathLoss::FriisPerBlock => free_space(distance, 3e8 / frequency_hz).max(0.0),
            PathLoss::LogDistance { exponent, reference_m, reference_db } => {
                reference_db + exponent * ratio_to_db((distance / reference_m).max(1.0))
            }
            PathLoss::ThreeLogDistance { from_m, exponents, reference_db } => {
                let piece = |i: usize| {
                    let until = from_m.get(i + 1).copied().unwrap_or(f64::INFINITY);
                    exponents[i] * ratio_to_db((distance.min(until) / from_m[i]).max(1.0))
                };
                reference_db + piece(0) + piece(1) + piece(2)
            }
            PathLoss::TwoRayGround => {
                let wavelength = LIGHT / frequency_hz;
                let heights = geometry.height_m * geometry.other_height_m;
                if distance <= 4.0 * PI * heights / wavelength {
                    free_space(distance, wavelength)
                } else {
                    4.0 * ratio_to_db(distance) - 2.0 * ratio_to_db(heights)
                }
            }
            PathLoss::OkumuraHata { environment, city } => okumura_hata(geometry, frequency_hz, environment, city),
            PathLoss::Cost231 { base_m, mobile_m, constant_db, smallest_m } => {
                if distance <= smallest_m {
                    return 0.0;
                }
                let log_mhz = math::log10(frequency_hz / 1e6);
                let mobile = 0.8 + (1.11 * log_mhz - 0.7) * mobile_m - 1.56 * log_mhz;
                46.3 + 33.9 * log_mhz - 13.82 * math::log10(base_m) - mobile
                    + (44.9 - 6.55 * math::log10(base_m)) * math::log10(distance / 1e3)
                    + constant_db
            }
            PathLoss::P1411LineOfSight => line_of_sight(geometry, frequency_hz),
            PathLoss::P1411OverRooftops(street) => over_rooftops(geometry, frequency_hz, street),
            PathLoss::Kun2600 => 36.0 + 2.6 * ratio_to_db(distance),
            PathLoss::Buildings { environment, street, line_of_sight_m, wall, floor } => {
                let outdoor = if distance > 1000.0 && geometry.higher_m() > street.rooftop_m {
                    if frequency_hz > 2.3e9 {
                        PathLoss::Kun2600.loss_db(geometry, frequency_hz)
                    } else {
                        okumura_hata(geometry, frequency_hz, environment, street.city)
                    }
                } else if distance <= line_of_sight_m {
                    line_of_sight(geometry, frequency_hz)
                } else {
                    over_rooftops(geometry, frequency_hz, street)
                };
                outdoor + wall.map_or(0.0, |wall| wall.db() - 2.0 * f64::from(floor))
            }
        }
    }
}

/// (4 pi d / wavelength)^2 in dB; minus infinity at distance 0.
fn free_space(distance: f64, wavelength: f64) -> f64 {
    2.0 * ratio_to_db(4.0 * PI * distance / wavelength)
}

fn okumura_hata(geometry: &Geometry, frequency_hz: f64, environment: Environment, city: CitySize) -> f64 {
    let mhz = frequency_hz / 1e6;
    let log_mhz = math::log10(mhz);
    let (base, mobile) = (geometry.higher_m(), geometry.lower_m());
    let log_base = math::log10(base);
    let distance = (44.9 - 6.55 * log_base) * math::log10(geometry.distance_m() / 1e3);
    let square_log = |x: f64| math::log10(x) * math::log10(x);
    if frequency_hz > 1.5e9 {
        let (mobile, constant) = match city {
            CitySize::Large => (3.2 * square_log(11.75 * mobile), 3.0),
            CitySize::Small => ((1.1 * log_mhz - 0.7) * mobile - (1.56 * log_mhz - 0.8), 0.0),
        };
        return 46.3 + 33.9 * log_mhz - 13.82 * log_base + distance - mobile + constant;
    }
    let mobile = match city {
        CitySize::Large if mhz >= 200.0 => 3.2 * square_log(11.75 * mobile) - 4.97,
        CitySize::Large => 8.29 * square_log(1.54 * mobile) - 1.1,
        CitySize::Small => 0.8 + (1.1 * log_mhz - 0.7) * mobile - 1.56 * log_mhz,
    };
    let surroundings = match environment {
        Environment::Urban => 0.0,
        Environment::Suburban => -2.0 * square_log(mhz / 28.0) - 5.4,
        Environment::Open => -4.78 * log_mhz * log_mhz + 18.33 * log_mhz - 40.94,
    };
    69.55 + 26.16 * log_mhz - 13.82 * log_base + distance - mobile + surroundings
}

fn line_of_sight(geometry: &Geometry, frequency_hz: f64) -> f64 {
    let wavelength = LIGHT / frequency_hz;
    let heights = geometry.height_m * geometry.other_height_m;
    let breakpoint_db = (2.0 * ratio_to_db(wavelength * wavelength / (8.0 * PI * heights))).abs();
    let breakpoint = 4.0 * heights / wavelength;
    let over = ratio_to_db(geometry.distance_m() / breakpoint);
    let (lower, upper) = if over <= 0.0 { (2.0, 2.5) } else { (4.0, 4.0) };
    breakpoint_db + (lower * over + 20.0 + upper * over) / 2.0
}

fn over_rooftops(geometry: &Geometry, frequency_hz: f64, street: Street) -> f64 {
    let Street { rooftop_m, width_m, buildings_m, separation_m, orientation_degrees, city } = street;
    let mhz = frequency_hz / 1e6;
    let log_mhz = math::log10(mhz);
    let wavelength = LIGHT / frequency_hz;
    let (base, mobile) = (geometry.higher_m(), geometry.lower_m());
    let distance = geometry.distance_m();
    let log_km = math::log10(distance / 1e3);
    let above = base - rooftop_m;

    let free = 32.4 + 20.0 * log_km + 20.0 * log_mhz;
    let orientation = match orientation_degrees {
        p if p < 35.0 => -10.0 + 0.354 * p,
        p if p < 55.0 => 2.5 + 0.075 * (p - 35.0),
        p => 4.0 - 0.114 * (p - 55.0),
    };
    let roof_to_street =
        -8.2 - ratio_to_db(width_m) + 10.0 * log_mhz + 2.0 * ratio_to_db(rooftop_m - mobile) + orientation;

    let settled_from = wavelength * distance * distance / (above * above);
    let screens = if settled_from < buildings_m {
        let by_frequency = match city {
            _ if mhz > 2000.0 => -8.0,
            CitySize::Large => -4.0 + 1.5 * (mhz / 925.0 - 1.0),
            CitySize::Small => -4.0 + 0.7 * (mhz / 925.0 - 1.0),
        };
        let (shadow, constant, by_distance) = if above > 0.0 {
            (-1.8 * ratio_to_db(1.0 + above), if mhz > 2000.0 { 71.4 } else { 54.0 }, 18.0)
        } else {
            let constant = if distance >= 500.0 { 54.0 - 0.8 * above } else { 54.0 - 1.6 * above * distance / 1e3 };
            (0.0, constant, 18.0 - 15.0 * above / rooftop_m)
        };
        shadow + constant + by_distance * log_km + by_frequency * log_mhz - 0.9 * ratio_to_db(separation_m)
    } else {
        let q = if above.abs() <= 1.0 {
            separation_m / distance
        } else if above > 0.0 {
            2.35 * math::pow(above / distance * (separation_m / wavelength).sqrt(), 0.9)
        } else {
            let angle = math::atan2(above, separation_m);
            let edge = (above * above + separation_m * separation_m).sqrt();
            separation_m / (TAU * distance) * (wavelength / edge).sqrt() * (1.0 / angle - 1.0 / (TAU + angle))
        };
        -ratio_to_db(q * q)
    };
    free + (roof_to_street + screens).max(0.0)
}

/// Log-normal shadowing: a constant loss of each pair, positive or negative.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shadowing {
    /// Standard deviation in dB. ns-3 uses 7 dB outdoors, 8 dB indoors and 5 dB for external walls.
    pub deviation_db: f64,
    /// Seed of the random losses.
    pub seed: u64,
}

impl Shadowing {
    /// Returns the loss of a pair in dB. The loss is the same in both directions if both use the same `pair`.
    pub fn loss_db(&self, pair: u64) -> f64 {
        // Box-Muller transform; 1 - u is never 0.
        let radius = (-2.0 * math::ln(1.0 - unit(hash(self.seed, pair, 0)))).sqrt();
        self.deviation_db * radius * math::cos(TAU * unit(hash(self.seed, pair, 1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn street_models() -> Vec<PathLoss> {
        vec![
            PathLoss::default(),
            PathLoss::FriisPerBlock,
            PathLoss::log_distance(),
            PathLoss::three_log_distance(),
            PathLoss::TwoRayGround,
            PathLoss::OkumuraHata { environment: Environment::Urban, city: CitySize::Large },
            PathLoss::OkumuraHata { environment: Environment::Open, city: CitySize::Small },
            PathLoss::cost231(),
            PathLoss::P1411LineOfSight,
            PathLoss::Kun2600,
        ]
    }

    proptest! {
        /// Without the models over rooftops, which change their formula where the field settles.
        #[test]
        fn farther_is_never_stronger(metres in 1.0f64..20_000.0, more in 1.0f64..3.0, mhz in 450.0f64..3500.0) {
            for model in street_models() {
                let at = |horizontal_m| {
                    model.loss_db(&Geometry { horizontal_m, height_m: 30.0, other_height_m: 1.5 }, mhz * 1e6)
                };
                prop_assert!(at(metres * more) >= at(metres) - 1e-9, "{model:?}");
            }
        }

        #[test]
        fn it_does_not_matter_which_end_sends(metres in 10.0f64..5000.0, a in 1.0f64..60.0, b in 1.0f64..19.0) {
            let mut models = street_models();
            models.extend([PathLoss::buildings(), PathLoss::P1411OverRooftops(Street::default())]);
            for model in models {
                let at = |height_m, other_height_m| {
                    model.loss_db(&Geometry { horizontal_m: metres, height_m, other_height_m }, 2.1e9)
                };
                prop_assert_eq!(at(a, b), at(b, a), "{:?}", model);
            }
        }
    }

    #[test]
    fn losses_have_the_known_slopes() {
        // In dB per decade: 20 in free space, 40 beyond the reflection, 38 in the far pieces.
        let per_decade = |model: PathLoss, from| {
            let at = |distance: f64| model.loss_db(&Geometry::flat(distance), 2e9);
            at(from * 10.0) - at(from)
        };
        assert!((per_decade(PathLoss::default(), 10.0) - 20.0).abs() < 1e-9);
        assert!((per_decade(PathLoss::TwoRayGround, 1000.0) - 40.0).abs() < 1e-9);
        assert!((per_decade(PathLoss::three_log_distance(), 1.0) - 19.0).abs() < 1e-9);
        assert!((per_decade(PathLoss::three_log_distance(), 500.0) - 38.0).abs() < 1e-9);
        assert!((per_decade(PathLoss::Kun2600, 100.0) - 26.0).abs() < 1e-9);
        assert_eq!(PathLoss::default().loss_db(&Geometry::flat(0.0), 2e9), 0.0);
    }

    /// With a settled field: 32.4 + 20 log d_km + 20 log F, from roof to street -8.2 - 10 log 20 + 10 log F + 20
    /// log 19 + 3.25, and the screens -18 log 11 + 71.4 + 18 log d_km - 8 log F - 9 log 50, with F = 2114
    /// and d = 152.8 m.
    #[test]
    fn loss_over_rooftops_at_short_distance_matches_the_formula() {
        let geometry = Geometry { horizontal_m: 150.0, height_m: 30.0, other_height_m: 1.0 };
        let loss = PathLoss::P1411OverRooftops(Street::default()).loss_db(&geometry, 2.114e9);
        assert!((loss - 119.525553).abs() < 1e-4, "{loss}");
    }

    #[test]
    fn walls_increase_and_floors_reduce_the_loss() {
        let at = |wall, floor| {
            let PathLoss::Buildings { environment, street, line_of_sight_m, .. } = PathLoss::buildings() else {
                unreachable!()
            };
            let model = PathLoss::Buildings { environment, street, line_of_sight_m, wall, floor };
            model.loss_db(&Geometry { horizontal_m: 300.0, height_m: 30.0, other_height_m: 1.5 }, 2e9)
        };
        assert!((at(Some(Wall::Stone), 0) - at(None, 0) - 12.0).abs() < 1e-9);
        assert!((at(Some(Wall::Wood), 3) - at(None, 3) + 2.0).abs() < 1e-9);
    }

    #[test]
    fn shadowing_is_normal_and_constant_for_each_pair() {
        let shadowing = Shadowing { deviation_db: 7.0, seed: 3 };
        let losses: Vec<f64> = (0..40_000).map(|pair| shadowing.loss_db(pair)).collect();
        let mean = losses.iter().sum::<f64>() / 40_000.0;
        let variance = losses.iter().map(|loss| (loss - mean) * (loss - mean)).sum::<f64>() / 40_000.0;
        let beyond = losses.iter().filter(|loss| loss.abs() > 14.0).count();
        // The standard errors are 0.035, 0.35 and 42; 4.55 % are beyond two deviations.
        assert!(
            mean.abs() < 0.15 && (variance - 49.0).abs() < 1.5 && (1650..1990).contains(&beyond),
            "{mean} {variance} {beyond}"
        );
        assert_eq!(shadowing.loss_db(7), losses[7]);
    }
}
