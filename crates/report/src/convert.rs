//! Converts plots to formats other than SVG. PDF and PNG files contain text even on machines without fonts, because the
//! build includes the fonts (Ubuntu Light, and Hack for characters that it lacks).

/// A format of plots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlotFormat {
    /// Scalable Vector Graphics.
    Svg,
    /// Portable Document Format.
    Pdf,
    /// Portable Network Graphics, 960 pixels wide.
    Png,
}

impl PlotFormat {
    /// All formats.
    pub const ALL: [Self; 3] = [Self::Svg, Self::Pdf, Self::Png];

    /// Returns the file name extension of the format, which is also the name of the format.
    pub fn ending(self) -> &'static str {
        match self {
            PlotFormat::Svg => "svg",
            PlotFormat::Pdf => "pdf",
            PlotFormat::Png => "png",
        }
    }

    /// Returns whether this build supports the format. PDF and PNG require the feature `plots`.
    pub fn is_available(self) -> bool {
        self == PlotFormat::Svg || cfg!(feature = "plots")
    }
}

#[cfg(feature = "plots")]
pub(crate) use present::convert;

/// Converts a picture to another format.
#[cfg(not(feature = "plots"))]
pub(crate) fn convert(svg: &str, format: PlotFormat) -> Result<Vec<u8>, String> {
    match format {
        PlotFormat::Svg => Ok(svg.as_bytes().to_vec()),
        PlotFormat::Pdf | PlotFormat::Png => Err("this build has no PDF and PNG plots (feature `plots`)".to_owned()),
    }
}

#[cfg(feature = "plots")]
mod present {
    use super::PlotFormat;
    use resvg::tiny_skia::{Pixmap, Transform};
    use resvg::usvg::{Options, Tree, fontdb};
    use std::sync::{Arc, LazyLock};

    /// Pixels of a PNG per unit of the picture. At this scale, text of 13 units is legible on slides and in print.
    const SCALE: f32 = 2.0;

    /// The only fonts used are those of the build, so that a picture does not depend on the machine.
    static FONTS: LazyLock<Arc<fontdb::Database>> = LazyLock::new(|| {
        let mut fonts = fontdb::Database::new();
        fonts.load_font_data(epaint_default_fonts::UBUNTU_LIGHT.to_vec());
        fonts.load_font_data(epaint_default_fonts::HACK_REGULAR.to_vec());
        fonts.set_sans_serif_family("Ubuntu");
        Arc::new(fonts)
    });

    /// Converts a picture to another format.
    pub(crate) fn convert(svg: &str, format: PlotFormat) -> Result<Vec<u8>, String> {
        if format == PlotFormat::Svg {
            return Ok(svg.as_bytes().to_vec());
        }
        // This family replaces missing font families.
        let options = Options { font_family: "Ubuntu".to_owned(), fontdb: Arc::clone(&FONTS), ..Options::default() };
        let tree = Tree::from_str(svg, &options).map_err(|error| error.to_string())?;
        if format == PlotFormat::Pdf {
            let (conversion, page) = (svg2pdf::ConversionOptions::default(), svg2pdf::PageOptions::default());
            return svg2pdf::to_pdf(&tree, conversion, page).map_err(|error| error.to_string());
        }
        let size = tree.size();
        let pixels = |units: f32| (units * SCALE).ceil() as u32;
        let mut picture = Pixmap::new(pixels(size.width()), pixels(size.height())).ok_or("the picture has no size")?;
        resvg::render(&tree, Transform::from_scale(SCALE, SCALE), &mut picture.as_mut());
        picture.encode_png().map_err(|error| error.to_string())
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        fn text(words: &str) -> String {
            format!(
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"100\" height=\"20\" font-family=\"system-ui,sans-serif\" \
                 font-size=\"13\"><rect width=\"100%\" height=\"100%\" fill=\"#fff\"/><text x=\"2\" y=\"15\">{words}</text></svg>"
            )
        }

        /// Returns the number of dark pixels in the picture of a text.
        fn ink(words: &str) -> usize {
            let png = convert(&text(words), PlotFormat::Png).unwrap();
            let picture = Pixmap::decode_png(&png).unwrap();
            assert_eq!((picture.width(), picture.height()), (200, 40));
            picture.pixels().iter().filter(|pixel| pixel.red() < 128).count()
        }

        #[test]
        fn png_contains_text_without_fonts_of_the_machine() {
            assert_eq!(ink(""), 0);
            assert!(ink("Goodput") > 100, "{}", ink("Goodput"));
            // Characters in plots have their own glyphs and not the box of a missing glyph.
            let missing = ink("\u{e123}");
            for c in "0aÄ⁰¹²³⁴⁵⁶⁷⁸⁹⁻µ−·±×…–→".chars() {
                let ink = ink(&c.to_string());
                assert!(ink > 0 && ink != missing, "{c}");
            }
        }

        #[test]
        fn pdf_contains_its_font() {
            let pdf = convert(&text("Goodput"), PlotFormat::Pdf).unwrap();
            assert!(pdf.starts_with(b"%PDF-"));
            let has = |name: &str| pdf.windows(name.len()).any(|w| w == name.as_bytes());
            assert!(has("Ubuntu-Light") && has("/FontFile"), "no font");
        }

        #[test]
        fn invalid_picture_is_an_error() {
            assert!(convert("<svg", PlotFormat::Png).is_err());
        }
    }
}
