//! Tests of the content of the plots.

use crate::records::{Folder, parse, text_of};

const SVG: &str = "http://www.w3.org/2000/svg";

fn texts(svg: &str) -> Vec<String> {
    parse(svg).descendants().filter(|n| n.has_tag_name((SVG, "text"))).map(text_of).collect()
}

#[test]
fn all_pictures_are_well_formed_and_within_the_canvas() {
    for fixture in ["study", "run", "suite"] {
        let folder = Folder::copy_of(fixture);
        let built = fullpipe_report::write_report(&folder.0).unwrap();
        let page = folder.text("report.html");
        assert!(!built.plots.is_empty());
        for file in built.plots {
            let text = std::fs::read_to_string(&file).unwrap();
            assert!(!text.contains("NaN") && !text.contains("inf"), "{file:?}");
            let document = parse(&text);
            let root = document.root_element();
            let height: f64 = root.attribute("height").unwrap().parse().unwrap();
            for node in document.descendants() {
                for (name, most) in [("x", 480.0), ("cx", 480.0), ("y", height), ("cy", height)] {
                    if let Some(value) = node.attribute(name) {
                        assert!((0.0..=most).contains(&value.parse::<f64>().unwrap()), "{file:?} {node:?}");
                    }
                }
            }
            // The page contains the same picture.
            assert!(page.contains(text.trim_end()), "{file:?}");
        }
    }
}

#[test]
fn line_plot_has_published_points_and_the_measured_line() {
    let folder = Folder::copy_of("study");
    folder.build();
    let svg = folder.text("plots/jitter.svg");
    let document = parse(&svg);
    // Two series of ten points: circles for one, squares for the other, each measured (filled) and published (open).
    let count = |tag: &str, open: bool| {
        let marks = document.descendants().filter(|n| n.has_tag_name((SVG, tag)));
        marks.filter(|n| (n.attribute("fill") == Some("none")) == open).count()
    };
    // The legend adds one of each: a measured circle, a measured square, and one open circle for both.
    assert_eq!((count("circle", false), count("polygon", false)), (11, 11));
    assert_eq!((count("circle", true), count("polygon", true)), (11, 10));
    assert!(texts(&svg).contains(&"open: published".to_owned()));
    assert!(texts(&svg).contains(&"Mean jitter (µs)".to_owned()));
    assert!(folder.text("report.html").contains("Open markers: published values."));
}

#[test]
fn value_is_at_its_position_on_the_axes() {
    let folder = Folder::copy_of("study");
    folder.replace(
        "study.toml",
        "name = \"jitter\"\ntitle = \"Mean jitter\"\nx = \"packets\"\ny = \"mean_jitter_s\"",
        "name = \"jitter\"\nx = \"packets\"\ny = \"other\"\ny_unit = \"s\"",
    );
    let mut table = folder.text("summary.csv");
    table.push_str("experiment=udp;packets=0;draw=published,other,,3,0,,,,,,,,,\n");
    table.push_str(
        "experiment=udp;packets=50,draw\n".replace(",draw", ";draw=published,other,,3,2,0.5,,,,,,,,").as_str(),
    );
    table.push_str("experiment=udp;packets=100;draw=published,other,,3,8,,,,,,,,,\n");
    folder.write("summary.csv", &table);
    folder.build();
    let svg = folder.text("plots/jitter.svg");
    let document = parse(&svg);
    let circles: Vec<(f64, f64)> = document
        .descendants()
        .filter(|n| n.has_tag_name((SVG, "circle")))
        .map(|n| (n.attribute("cx").unwrap().parse().unwrap(), n.attribute("cy").unwrap().parse().unwrap()))
        .collect();
    // Both axes begin at zero and end at 100 and 8, so the point is at one half horizontally and one quarter vertically.
    let [(x0, y0), (x1, y1), (x2, y2), _legend] = circles[..] else { panic!("{circles:?}") };
    assert!((x1 - x0 - (x2 - x0) / 2.0).abs() < 0.02, "{circles:?}");
    assert!((y0 - y1 - (y0 - y2) / 4.0).abs() < 0.02, "{circles:?}");
    // The interval is from 1.5 to 2.5: an eighth of the axis, centered.
    let path = document.descendants().filter_map(|n| n.attribute("d")).find(|d| d.matches('H').count() == 2).unwrap();
    let numbers: Vec<f64> = path.split(['M', 'V', 'H', ',']).filter_map(|t| t.parse().ok()).collect();
    let (low, high) = (numbers[1], numbers[2]);
    assert!((low - high - (y0 - y2) / 8.0).abs() < 0.02 && (f64::midpoint(low, high) - y1).abs() < 0.02, "{path}");
}

#[test]
fn long_series_gives_a_small_picture_with_its_spike() {
    let folder = Folder::copy_of("run");
    let mut text = "time_s,subject,metric,value\n".to_owned();
    for i in 0..1_000_000_u32 {
        let value = if i == 654_321 { 9_000_000 } else { 1000 + i % 997 };
        text.push_str(&format!("{}.{:05},bulk.1,cwnd_bytes,{value}\n", i / 20_000, i % 20_000 * 5));
    }
    folder.write("runs/c0ffee0123456789abcdef01/series.csv", &text);
    folder.build();
    let svg = folder.text("plots/cwnd-bytes.svg");
    assert!(svg.len() < 100_000, "{}", svg.len());
    // The spike is drawn near the upper end of the axis, less than a tenth below it (9 of 10 MB).
    let document = parse(&svg);
    let curve = document.descendants().filter_map(|n| n.attribute("d")).max_by_key(|d| d.len()).unwrap();
    let highest =
        curve.split(['M', 'L']).filter_map(|p| p.split_once(',')?.1.parse::<f64>().ok()).fold(f64::MAX, f64::min);
    let top = 12.0 + 19.0;
    assert!((highest - top - 25.0).abs() < 1.0, "{highest}");
}

#[test]
fn values_outside_a_log_axis_are_reported() {
    let folder = Folder::copy_of("study");
    let table = folder.text("summary.csv");
    let line =
        table.lines().find(|l| l.starts_with("experiment=udp;packets=50000;draw=published,mean_delay_s")).unwrap();
    let zero = "experiment=udp;packets=50000;draw=published,mean_delay_s,s,1,0,,0,0,0,,,,,";
    folder.replace("summary.csv", line, zero);
    let page = folder.build();
    assert!(page.contains("1 values at or below zero cannot be shown on a logarithmic axis."), "remark");
}

#[test]
fn long_axis_title_keeps_its_unit() {
    let folder = Folder::copy_of("study");
    folder.replace(
        "study.toml",
        "\"Mean jitter\"\nexpression",
        "\"Mean jitter of packets as they come to IP\"\nexpression",
    );
    folder.build();
    assert!(texts(&folder.text("plots/jitter.svg")).contains(&"Mean jitter (µs)".to_owned()));
    folder.replace(
        "study.toml",
        "y = \"mean_jitter_s\"",
        &format!("y = \"mean_jitter_s\"\ny_label = \"{}\"", "long ".repeat(30)),
    );
    folder.build();
    assert!(texts(&folder.text("plots/jitter.svg")).iter().any(|t| t.ends_with("… (µs)")));
}

#[test]
fn plot_without_data_has_a_reason() {
    let folder = Folder::copy_of("study");
    folder.replace("study.toml", "y = \"mean_jitter_s\"", "y = \"nothing\"");
    let page = folder.build();
    assert!(page.contains("the summary has no value of nothing over packets"), "reason");
    assert!(!folder.0.join("plots/jitter.svg").exists());
}

#[test]
fn names_on_an_axis_are_not_connected() {
    let folder = Folder::copy_of("study");
    folder.replace(
        "study.toml",
        "x = \"packets\"\ny = \"mean_jitter_s\"\nseries = [\"experiment\"]\nwhere = { draw = \"published\" }",
        "x = \"experiment\"\ny = \"mean_jitter_s\"\nwhere = { draw = \"published\", packets = 1e5 }",
    );
    folder.build();
    let svg = folder.text("plots/jitter.svg");
    let texts = texts(&svg);
    assert!(texts.contains(&"udp".to_owned()) && texts.contains(&"tcp".to_owned()), "{texts:?}");
    // A stroke of the width of a series would be its line.
    assert!(!svg.contains("stroke-width=\"1.7\""));
}

#[test]
fn study_without_plots_draws_every_metric() {
    let folder = Folder::copy_of("study");
    let text = folder.text("study.toml");
    let (before, rest) = text.split_once("[[plot]]").unwrap();
    let claims = rest.find("[[claim]]").unwrap();
    folder.write("study.toml", &format!("{before}{}", &rest[claims..]));
    let built = fullpipe_report::write_report(&folder.0).unwrap();
    let names: Vec<_> = built.plots.iter().map(|p| p.file_stem().unwrap().to_string_lossy().into_owned()).collect();
    assert_eq!(names, ["rx-packets", "throughput-mibps", "mean-delay-s", "mean-jitter-s"]);
    assert!(texts(&folder.text("plots/rx-packets.svg")).contains(&"udp, published".to_owned()));
}

#[test]
fn plots_with_equal_names_do_not_overwrite_each_other() {
    let folder = Folder::copy_of("study");
    folder.replace("study.toml", "name = \"delay\"", "name = \"Jitter\"");
    let built = fullpipe_report::write_report(&folder.0).unwrap();
    let names: Vec<_> = built.plots.iter().map(|p| p.file_stem().unwrap().to_string_lossy().into_owned()).collect();
    assert_eq!(names[1..3], ["jitter", "jitter-2"]);
    assert!(built.plots.iter().all(|p| p.exists() && p.parent().unwrap() == folder.0.join("plots")));
}

#[test]
fn old_plots_are_removed_and_other_files_are_kept() {
    let folder = Folder::copy_of("study");
    folder.build();
    let old = folder.text("plots/jitter.svg");
    folder.write("plots/removed-since.svg", &old);
    folder.write("plots/mine.svg", "<svg xmlns=\"http://www.w3.org/2000/svg\"/>");
    folder.build();
    assert!(!folder.0.join("plots/removed-since.svg").exists());
    assert!(folder.0.join("plots/mine.svg").exists() && folder.0.join("plots/jitter.svg").exists());
}

/// The position of the text of a tick.
fn place_of(svg: &str, label: &str) -> (f64, f64) {
    let document = parse(svg);
    let text = document.descendants().find(|n| n.has_tag_name((SVG, "text")) && text_of(*n) == label);
    let text = text.unwrap_or_else(|| panic!("no {label}"));
    (text.attribute("x").unwrap().parse().unwrap(), text.attribute("y").unwrap().parse().unwrap())
}

/// The position of a tick of the horizontal axis, whose text is centered.
fn tick_across(svg: &str, label: &str) -> f64 {
    let document = parse(svg);
    let centred = |n: &roxmltree::Node<'_, '_>| n.attribute("text-anchor") == Some("middle") && text_of(*n) == label;
    document.descendants().find(centred).and_then(|n| n.attribute("x")).unwrap().parse().unwrap()
}

/// The points of all paths of a stroke width.
fn paths(svg: &str, width: &str) -> Vec<Vec<(f64, f64)>> {
    let points = |d: &str| {
        let pairs = d.split(['M', 'L']).filter_map(|p| p.split_once(','));
        pairs.map(|(x, y)| (x.parse().unwrap(), y.parse().unwrap())).collect()
    };
    let document = parse(svg);
    let paths = document.descendants().filter(|n| n.attribute("stroke-width") == Some(width));
    paths.filter_map(|n| n.attribute("d")).filter(|d| !d.contains(['H', 'V'])).map(points).collect()
}

#[test]
fn distribution_rises_from_zero_to_one() {
    let folder = Folder::copy_of("study");
    folder.build();
    let svg = folder.text("plots/jitter-distribution.svg");
    // One run per series: a single step from 0 to 1.
    let height = place_of(&svg, "0.0").1 - place_of(&svg, "1.0").1;
    let curves = paths(&svg, "1.7");
    assert_eq!(curves.len(), 2);
    for curve in curves {
        let [(x0, y0), (x1, y1)] = curve[..] else { panic!("{curve:?}") };
        assert!(x0 == x1 && (y0 - y1 - height).abs() < 0.02, "{curve:?}");
    }
}

#[test]
fn scatter_plot_has_intervals_in_both_directions() {
    let folder = Folder::copy_of("study");
    folder.replace(
        "study.toml",
        "where = { draw = \"random\" }\nx_scale = \"log\"\n\n[[plot]]\nname = \"jitter-d",
        "where = { draw = \"random\" }\n\n[[plot]]\nname = \"jitter-d",
    );
    let table = folder.text("summary.csv");
    let line = table.lines().find(|l| l.starts_with("experiment=udp;packets=50000;draw=random,mean_delay_s")).unwrap();
    let changed = "experiment=udp;packets=50000;draw=random,mean_delay_s,s,30,0.1,0.02,,,,,,,,";
    folder.replace("summary.csv", line, changed);
    folder.build();
    let svg = folder.text("plots/delay-throughput.svg");
    // 100 ms plus or minus 20 ms.
    let (zero, hundred) = (tick_across(&svg, "0"), tick_across(&svg, "100"));
    let at = |ms: f64| zero + (hundred - zero) * ms / 100.0;
    let found = paths(&svg, "1.1").iter().any(|p| {
        p.len() == 2 && p[0].1 == p[1].1 && (p[0].0 - at(80.0)).abs() < 0.05 && (p[1].0 - at(120.0)).abs() < 0.05
    });
    assert!(found, "{:?}", paths(&svg, "1.1"));
}

#[test]
fn bars_are_centered_at_their_name_and_end_at_their_value() {
    let folder = Folder::copy_of("study");
    let table = folder.text("summary.csv");
    let line = table.lines().find(|l| l.starts_with("experiment=tcp;packets=50000;draw=published,throughput")).unwrap();
    let changed = "experiment=tcp;packets=50000;draw=published,throughput_mibps,Mibit/s,1,400,,,,,,,,,";
    folder.replace("summary.csv", line, changed);
    folder.build();
    let svg = folder.text("plots/bars.svg");
    let document = parse(&svg);
    let number = |n: roxmltree::Node<'_, '_>, name: &str| n.attribute(name).unwrap().parse::<f64>().unwrap();
    let bars: Vec<_> = document
        .descendants()
        .filter(|n| n.has_tag_name((SVG, "rect")) && n.attribute("stroke-width") == Some("1.3"))
        .collect();
    // Three sizes of two series, and two bars in the legend. Series by series, the middle size is the second and the
    // fifth bar.
    assert_eq!(bars.len(), 8);
    let (udp, tcp) = (bars[1], bars[4]);
    let middle = f64::midpoint(number(udp, "x"), number(tcp, "x") + number(tcp, "width"));
    assert!((middle - place_of(&svg, "50\u{202f}000").0).abs() < 0.05);
    assert!(number(udp, "x") + number(udp, "width") < number(tcp, "x"));
    // 400 Mibit/s end at the tick 400; all bars begin at zero.
    let height = place_of(&svg, "0").1 - place_of(&svg, "400").1;
    assert!((number(tcp, "height") - height).abs() < 0.05);
}

#[test]
fn box_spans_the_quartiles_and_outliers_are_dots() {
    let folder = Folder::copy_of("study");
    folder.replace(
        "study.toml",
        "name = \"bars\"\ntitle = \"Throughput side by side\"\nkind = \"bars\"",
        "name = \"bars\"\nkind = \"box\"",
    );
    // Nine runs of one point: quartiles 300, 500 and 700 Mibit/s, and 1400, which is above 700 + 1.5 * 400.
    let table = folder.text("results.csv");
    let mut results = table.lines().next().unwrap().to_owned() + "\n";
    for value in [100, 200, 300, 400, 500, 600, 700, 800, 1400] {
        results.push_str(&format!("tcp,50000,published,5321,9285573e1797ab80b1171e14,1,{value},1,1\n"));
    }
    folder.write("results.csv", &results);
    folder.build();
    let svg = folder.text("plots/bars.svg");
    let document = parse(&svg);
    let number = |n: roxmltree::Node<'_, '_>, name: &str| n.attribute(name).unwrap().parse::<f64>().unwrap();
    let blocks =
        document.descendants().filter(|n| n.has_tag_name((SVG, "rect")) && n.attribute("stroke-width") == Some("1.3"));
    let [found, _legend] = blocks.collect::<Vec<_>>()[..] else { panic!("one box and its legend") };
    // The baseline of a label is 0.35 of its font size of 13 below its tick.
    let (zero, five_hundred) = (place_of(&svg, "0").1 - 4.55, place_of(&svg, "500").1 - 4.55);
    let at = |value: f64| zero + (five_hundred - zero) * value / 500.0;
    assert!((number(found, "y") - at(700.0)).abs() < 0.05, "{found:?}");
    assert!((number(found, "height") - (at(300.0) - at(700.0))).abs() < 0.05, "{found:?}");
    let dots: Vec<_> = document.descendants().filter(|n| n.attribute("r") == Some("1.5")).collect();
    assert_eq!(dots.len(), 1);
    assert!((number(dots[0], "cy") - at(1400.0)).abs() < 0.05, "{:?}", dots[0]);
    // The median is a line across the box, and the upper whisker ends at 800.
    let level = |width: &str, value: f64| {
        paths(&svg, width).iter().any(|p| p.iter().all(|(_, y)| (y - at(value)).abs() < 0.05))
    };
    assert!(level("2.4", 500.0) && level("1.1", 800.0) && level("1.1", 100.0));
    assert!(folder.text("report.html").contains("n = 9 runs per box"));
}

#[test]
fn box_of_five_metrics_has_their_means_over_runs() {
    let folder = Folder::copy_of("study");
    folder.replace(
        "study.toml",
        "name = \"bars\"\ntitle = \"Throughput side by side\"\nkind = \"bars\"\nx = \"packets\"\ny = \"throughput_mibps\"\n",
        "name = \"bars\"\nkind = \"box\"\nx = \"packets\"\n\
         metrics = [\"mean_delay_s\", \"rx_packets\", \"throughput_mibps\", \"mean_jitter_s\", \"mean_jitter_s\"]\n",
    );
    // Expected: whiskers (100 + 300) / 2 = 200 and (200 + 1000) / 2 = 600, box from (200 + 400) / 2 = 300 to 600,
    // median 400.
    let table = folder.text("results.csv");
    let mut results = table.lines().next().unwrap().to_owned() + "\n";
    results += "tcp,50000,published,5321,9285573e1797ab80b1171e14,200,300,100,200\n";
    results += "tcp,50000,published,5321,9285573e1797ab80b1171e14,400,500,300,1000\n";
    folder.write("results.csv", &results);
    folder.build();
    let svg = folder.text("plots/bars.svg");
    let (low, high) = (place_of(&svg, "200").1 - 4.55, place_of(&svg, "600").1 - 4.55);
    let at = |value: f64| low + (high - low) * (value - 200.0) / 400.0;
    let level = |width: &str, value: f64| {
        paths(&svg, width).iter().any(|p| p.iter().all(|(_, y)| (y - at(value)).abs() < 0.05))
    };
    assert!(level("2.4", 400.0) && level("1.1", 600.0) && level("1.1", 200.0));
    // The axis covers the drawn values, not the largest value of a run.
    assert!(!svg.contains(">1000<") && !svg.contains(">800<"), "{svg}");
    assert!(folder.text("report.html").contains("n = 2 runs per box"));
}

#[test]
fn each_picture_has_a_csv_file_with_its_numbers() {
    for fixture in ["study", "run", "suite"] {
        let folder = Folder::copy_of(fixture);
        for plot in fullpipe_report::write_report(&folder.0).unwrap().plots {
            let mut reader = csv::Reader::from_path(plot.with_extension("csv")).unwrap();
            let columns = reader.headers().unwrap().clone();
            assert_eq!(&columns[0], "series", "{plot:?}");
            assert!(reader.records().map(Result::unwrap).count() > 0, "{plot:?}");
        }
    }
    // In base units, as in summary.csv.
    let folder = Folder::copy_of("study");
    folder.build();
    let numbers = folder.text("plots/throughput.csv");
    assert!(numbers.starts_with("series,packets,throughput_mibps,low,high,runs,published\n"), "{numbers}");
}

#[test]
fn values_have_tooltips_without_scripts() {
    let folder = Folder::copy_of("study");
    folder.build();
    let svg = folder.text("plots/throughput.svg");
    let document = parse(&svg);
    let hints: Vec<String> = document
        .descendants()
        .filter(|n| n.has_tag_name((SVG, "title")) && n.parent().unwrap().has_tag_name((SVG, "path")))
        .map(text_of)
        .collect();
    assert!(hints.iter().any(|hint| hint.contains("Mibit/s (published)")), "{hints:?}");
    assert!(hints.iter().any(|hint| hint.contains("run)") || hint.contains("runs)")), "{hints:?}");
}

/// The fixture `run` with these samples of the congestion window: time, subject, value.
fn with_samples(samples: &[(f64, &str, &str)]) -> Folder {
    let folder = Folder::copy_of("run");
    let mut text = "time_s,subject,metric,value\n".to_owned();
    for (time_s, subject, value) in samples {
        text.push_str(&format!("{time_s},{subject},cwnd_bytes,{value}\n"));
    }
    folder.write("runs/c0ffee0123456789abcdef01/series.csv", &text);
    folder.build();
    folder
}

/// The curves in a picture: the paths with this stroke width.
fn curves(svg: &str) -> Vec<String> {
    let document = parse(svg);
    let is_curve = |n: &roxmltree::Node<'_, '_>| n.attribute("stroke-width") == Some("1.4");
    document.descendants().filter(is_curve).filter_map(|n| n.attribute("d").map(str::to_owned)).collect()
}

#[test]
fn line_does_not_cross_a_gap() {
    let gap = [(1.0, "1000"), (2.0, "2000"), (3.0, ""), (4.0, ""), (5.0, "1000"), (6.0, "3000"), (7.0, "1000")];
    let folder = with_samples(&gap.map(|(time_s, value)| (time_s, "bulk.1", value)));
    let points: Vec<usize> =
        curves(&folder.text("plots/cwnd-bytes.svg")).iter().map(|d| d.matches(',').count()).collect();
    assert_eq!(points, [2, 3]);
    assert_eq!(folder.text("plots/cwnd-bytes.csv").lines().count(), 1 + 5);
}

#[test]
fn line_does_not_cross_rows_that_a_probe_did_not_write() {
    // A probe of delay writes no row for an interval without packets: 3 and 4 s are missing, and so is 8 s.
    let rows =
        [(1.0, "1000"), (2.0, "2000"), (5.0, "1000"), (6.0, "3000"), (7.0, "1000"), (9.0, "2000"), (10.0, "1000")];
    let folder = with_samples(&rows.map(|(time_s, value)| (time_s, "bulk.1", value)));
    let points: Vec<usize> =
        curves(&folder.text("plots/cwnd-bytes.svg")).iter().map(|d| d.matches(',').count()).collect();
    assert_eq!(points, [2, 3, 2]);
    // The data have all samples and no others.
    assert_eq!(folder.text("plots/cwnd-bytes.csv").lines().count(), 1 + 7);
}

#[test]
fn curve_ends_with_the_last_packet_of_its_flow() {
    // The last packets of the flows are at 60 s. Of the samples from then on, only the first is drawn.
    let times = [0.0, 20.0, 40.0, 59.5, 60.0, 80.0, 100.0];
    let folder = with_samples(&times.map(|time_s| (time_s, "bulk.1", "1000")));
    let numbers = folder.text("plots/cwnd-bytes.csv");
    assert!(numbers.ends_with("bulk.1,59.5,1000\nbulk.1,60,1000\n"), "{numbers}");
    assert!(folder.text("report.html").contains("Each curve ends with the last packet of its flow"));
}

#[test]
fn more_than_four_curves_give_several_panels() {
    let names = ["a", "a.uplink", "b", "b.uplink", "c"];
    let samples: Vec<_> = (1..=3).flat_map(|t| names.map(|name| (f64::from(t), name, "1000"))).collect();
    let folder = with_samples(&samples);
    let svg = folder.text("plots/cwnd-bytes.svg");
    assert_eq!((svg.matches("<g transform=\"translate(0 ").count(), curves(&svg).len()), (3, 5));
    // Four curves share one panel.
    let folder = with_samples(&samples.iter().copied().filter(|(_, name, _)| *name != "c").collect::<Vec<_>>());
    assert!(!folder.text("plots/cwnd-bytes.svg").contains("translate(0 "));
}
