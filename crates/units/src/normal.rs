//! The quantile function of the standard normal distribution: Wichura's PPND16 (Algorithm AS 241, Applied Statistics 37(3),
//! 1988), with a relative error of about 1e-16. It has three ratios of polynomials: one for the center and two for the
//! tails.
#![expect(clippy::excessive_precision, reason = "coefficients as the article prints them")]

use crate::math;

const MIDDLE: [[f64; 8]; 2] = [
    [
        3.387_132_872_796_366_608,
        1.331_416_678_917_843_774_5e2,
        1.971_590_950_306_551_442_7e3,
        1.373_169_376_550_946_112_5e4,
        4.592_195_393_154_987_145_7e4,
        6.726_577_092_700_870_085_3e4,
        3.343_057_558_358_812_810_5e4,
        2.509_080_928_730_122_672_7e3,
    ],
    [
        1.0,
        4.231_333_070_160_091_125_2e1,
        6.871_870_074_920_579_083e2,
        5.394_196_021_424_751_107_7e3,
        2.121_379_430_158_659_586_7e4,
        3.930_789_580_009_271_061e4,
        2.872_908_573_572_194_267_4e4,
        5.226_495_278_852_854_561e3,
    ],
];

const NEAR_TAIL: [[f64; 8]; 2] = [
    [
        1.423_437_110_749_683_577_34,
        4.630_337_846_156_545_295_9,
        5.769_497_221_460_691_405_5,
        3.647_848_324_763_204_605_04,
        1.270_458_252_452_368_382_58,
        2.417_807_251_774_506_117_7e-1,
        2.272_384_498_926_918_458_33e-2,
        7.745_450_142_783_414_076_4e-4,
    ],
    [
        1.0,
        2.053_191_626_637_758_821_87,
        1.676_384_830_183_803_849_4,
        6.897_673_349_851_000_045_5e-1,
        1.481_039_764_274_800_745_9e-1,
        1.519_866_656_361_645_719_66e-2,
        5.475_938_084_995_344_946e-4,
        1.050_750_071_644_416_843_24e-9,
    ],
];

const FAR_TAIL: [[f64; 8]; 2] = [
    [
        6.657_904_643_501_103_777_2,
        5.463_784_911_164_114_369_9,
        1.784_826_539_917_291_335_8,
        2.965_605_718_285_048_912_3e-1,
        2.653_218_952_657_612_309_3e-2,
        1.242_660_947_388_078_438_6e-3,
        2.711_555_568_743_487_578_15e-5,
        2.010_334_399_292_288_132_65e-7,
    ],
    [
        1.0,
        5.998_322_065_558_879_376_9e-1,
        1.369_298_809_227_358_053_1e-1,
        1.487_536_129_085_061_485_25e-2,
        7.868_691_311_456_132_591e-4,
        1.846_318_317_510_054_681_8e-5,
        1.421_511_758_316_445_888_7e-7,
        2.044_263_103_389_939_785_64e-15,
    ],
];

fn polynomial(coefficients: &[f64; 8], x: f64) -> f64 {
    coefficients.iter().rev().fold(0.0, |sum, coefficient| sum * x + coefficient)
}

fn ratio(coefficients: &[[f64; 8]; 2], x: f64) -> f64 {
    polynomial(&coefficients[0], x) / polynomial(&coefficients[1], x)
}

/// The value that a standard normal variable does not exceed with this probability; infinite at 0 and 1.
pub(crate) fn quantile(probability: f64) -> f64 {
    let from_middle = probability - 0.5;
    if from_middle.abs() <= 0.425 {
        return from_middle * ratio(&MIDDLE, 0.180_625 - from_middle * from_middle);
    }
    let tail = if from_middle < 0.0 { probability } else { 1.0 - probability };
    let r = (-math::ln(tail)).sqrt();
    let distance = if tail <= 0.0 {
        f64::INFINITY
    } else if r <= 5.0 {
        ratio(&NEAR_TAIL, r - 1.6)
    } else {
        ratio(&FAR_TAIL, r - 5.0)
    };
    distance.copysign(from_middle)
}

#[cfg(test)]
mod tests {
    use super::quantile;

    #[test]
    fn quantiles_of_published_probabilities_match_the_tables() {
        // Test values of the article: 0.25, 0.001 and 1e-20. The value for 97.5 % is in every table of the distribution.
        for (probability, expected) in [
            (0.25, -0.674_489_750_196_081_7),
            (0.001, -3.090_232_306_167_813_5),
            (1e-20, -9.262_340_089_798_408),
            (0.975, 1.959_963_984_540_054),
        ] {
            let found = quantile(probability);
            assert!((found - expected).abs() < 1e-14 * expected.abs(), "{probability}: {found}");
        }
        assert_eq!(quantile(0.5), 0.0);
        assert_eq!((quantile(0.0), quantile(1.0)), (f64::NEG_INFINITY, f64::INFINITY));
    }
}
