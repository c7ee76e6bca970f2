//! Mathematical functions from a pinned pure-Rust library, so that results are bit-identical on every machine.
//!
//! The functions of the standard library call those of the platform, which can differ in the last bit. The clippy lint
//! `disallowed-methods` forbids them in the workspace. IEEE 754 defines the square root exactly, so `f64::sqrt` is
//! permitted.

/// Returns e to the power `x`.
pub fn exp(x: f64) -> f64 {
    libm::exp(x)
}

/// Returns the natural logarithm of `x`.
pub fn ln(x: f64) -> f64 {
    libm::log(x)
}

/// Returns e to the power `x`, minus 1; accurate for small `x`.
pub fn exp_m1(x: f64) -> f64 {
    libm::expm1(x)
}

/// Returns the natural logarithm of 1 + `x`; accurate for small `x`.
pub fn ln_1p(x: f64) -> f64 {
    libm::log1p(x)
}

/// Returns the base-10 logarithm of `x`.
pub fn log10(x: f64) -> f64 {
    libm::log10(x)
}

/// Returns `base` to the power `exponent`.
pub fn pow(base: f64, exponent: f64) -> f64 {
    libm::pow(base, exponent)
}

/// Returns the gamma function of `x`: `gamma(n + 1)` is n factorial.
pub fn gamma(x: f64) -> f64 {
    libm::tgamma(x)
}

/// Returns the cube root of `x`.
pub fn cbrt(x: f64) -> f64 {
    libm::cbrt(x)
}

/// Returns the base-2 logarithm of `x`.
pub fn log2(x: f64) -> f64 {
    libm::log2(x)
}

/// Returns the complementary error function of `x`: 2/sqrt(pi) times the integral of exp(-t^2) from `x` to infinity.
pub fn erfc(x: f64) -> f64 {
    libm::erfc(x)
}

/// Returns the angle of the point (`x`, `y`) in radians, from -pi to pi.
pub fn atan2(y: f64, x: f64) -> f64 {
    libm::atan2(y, x)
}

/// Returns the sine of an angle in radians.
pub fn sin(radians: f64) -> f64 {
    libm::sin(radians)
}

/// Returns the cosine of an angle in radians.
pub fn cos(radians: f64) -> f64 {
    libm::cos(radians)
}
