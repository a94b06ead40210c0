//! A page of figures and plots in one file, for a browser: HTML and SVG without a script, and
//! without anything from elsewhere.

use std::fmt::{self, Display, Write as _};
use std::io;
use std::path::{Path, PathBuf};

use clap::ValueHint;
use tl_pipeline::{Dataset, Report, Stage};

use crate::failure::Failure;
use crate::output::write_file;

/// The inner size of a plot, in the units of its drawing.
const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 180.0;

/// The room left of a plot and below it for numbers.
const LEFT: f64 = 70.0;
const BELOW: f64 = 24.0;

/// The height of a bar with its gap.
const BAR: f64 = 26.0;

const STYLE: &str = "\
:root{color-scheme:light dark;--line:#2563eb;--grid:#8884}
body{font:15px/1.5 system-ui,sans-serif;max-width:54rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.4rem}h2{font-size:1.05rem;margin:2rem 0 .3rem}
svg{width:100%;height:auto}text{font-size:12px;fill:currentColor}
pre{white-space:pre-wrap;font-size:13px}
.line{fill:none;stroke:var(--line);stroke-width:1.5}.bar{fill:var(--line)}
.grid{stroke:var(--grid)}";

/// The option that writes a page.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct PageArgs {
    /// Write the result as a page with plots for a browser too
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) html: Option<PathBuf>,
}

/// A point of a line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Point {
    pub(crate) x: f64,
    pub(crate) y: f64,
}

/// A bar, as long as `value` compared with the longest.
#[derive(Clone, Debug)]
pub(crate) struct Bar {
    pub(crate) label: String,
    pub(crate) value: f64,
    /// The value with its unit.
    pub(crate) text: String,
}

/// A page that is being made.
pub(crate) struct Page {
    title: String,
    body: String,
}

impl Page {
    pub(crate) fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), body: String::new() }
    }

    /// Adds lines of text as they are.
    pub(crate) fn text(&mut self, heading: &str, text: &dyn Display) {
        let text = escaped(&text.to_string());
        self.add(format_args!("<h2>{}</h2>\n<pre>{text}</pre>\n", escaped(heading)));
    }

    /// Adds the files of a data set; URLs as in messages, without their keys.
    pub(crate) fn sources(&mut self, dataset: &Dataset) {
        /// The files that are named.
        const NAMED: usize = 8;
        let shards = dataset.shards();
        let mut names: Vec<_> =
            shards.iter().take(NAMED).map(|shard| shard.location().to_string()).collect();
        if shards.len() > NAMED {
            names.push(format!("and {} more", shards.len() - NAMED));
        }
        self.text("Data", &names.join("\n"));
    }

    /// Adds a line over time, whose axes begin at 0.
    pub(crate) fn line(&mut self, heading: &str, unit: &str, points: &[Point]) {
        let Some(last) = points.last() else { return };
        let right = last.x.max(f64::MIN_POSITIVE);
        let top = round_up(points.iter().fold(0.0, |top: f64, point| top.max(point.y)));
        let place = |point: &Point| {
            let x = LEFT + WIDTH * point.x / right;
            let y = HEIGHT - HEIGHT * point.y / top;
            format!("{x:.1},{:.1}", y + 10.0)
        };
        let path: Vec<_> = points.iter().map(place).collect();
        self.figure(heading, HEIGHT + BELOW + 10.0);
        for part in 0..=4 {
            let share = f64::from(part) / 4.0;
            let y = HEIGHT - HEIGHT * share + 10.0;
            self.add(format_args!(
                "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\n",
                LEFT + WIDTH,
                LEFT - 6.0,
                y + 4.0,
                Number(top * share)
            ));
            let x = LEFT + WIDTH * share;
            self.add(format_args!(
                "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{} s</text>\n",
                HEIGHT + BELOW + 4.0,
                Number(right * share)
            ));
        }
        let path = path.join(" ");
        self.add(format_args!("<polyline class=\"line\" points=\"{path}\"/>\n"));
        self.add(format_args!("</svg>\n<p>{}</p>\n", escaped(unit)));
    }

    /// Adds bars below each other.
    pub(crate) fn bars(&mut self, heading: &str, bars: &[Bar]) {
        let longest = bars.iter().fold(f64::MIN_POSITIVE, |longest, bar| longest.max(bar.value));
        let rows = f64::from(u32::try_from(bars.len()).unwrap_or(u32::MAX));
        self.figure(heading, BAR * rows);
        // Words on both sides of the bars need more room than numbers.
        let left = 2.5 * LEFT;
        for (row, bar) in (0u32..).zip(bars) {
            let y = BAR * f64::from(row);
            let width = (WIDTH - 3.5 * LEFT) * (bar.value / longest).clamp(0.0, 1.0);
            self.add(format_args!(
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\
                 <rect class=\"bar\" x=\"{left}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"18\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\">{}</text>\n",
                left - 6.0,
                y + 17.0,
                escaped(&bar.label),
                y + 3.0,
                left + width + 6.0,
                y + 17.0,
                escaped(&bar.text)
            ));
        }
        self.add(format_args!("</svg>\n"));
    }

    /// Adds the shares of the workers' time, and the consumer's waiting.
    pub(crate) fn shares(&mut self, heading: &str, report: &Report) {
        let percent = |label: &str, share: f64| Bar {
            label: label.to_owned(),
            value: share,
            text: format!("{:.1} %", 100.0 * share),
        };
        let mut bars: Vec<_> =
            Stage::ALL.iter().map(|stage| percent(stage.name(), report.share(*stage))).collect();
        bars.push(percent("wait for readers", report.reader_wait()));
        bars.push(percent("wait for consumer", report.worker_wait()));
        bars.push(percent("consumer waits", report.consumer_wait()));
        self.bars(heading, &bars);
    }

    /// Writes the page under `path` once it is whole.
    pub(crate) fn write(&self, path: &Path, force: bool) -> Result<(), Failure> {
        write_file(path, force, |out| self.print(out))
    }

    fn print(&self, out: &mut dyn io::Write) -> io::Result<()> {
        let title = escaped(&self.title);
        write!(
            out,
            "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width\">\n\
             <title>{title}</title>\n<style>{STYLE}</style>\n<h1>{title}</h1>\n{}</html>\n",
            self.body
        )
    }

    fn figure(&mut self, heading: &str, height: f64) {
        let heading = escaped(heading);
        let width = LEFT + WIDTH + 30.0;
        self.add(format_args!(
            "<h2>{heading}</h2>\n<svg viewBox=\"0 0 {width} {height}\" role=\"img\" \
             aria-label=\"{heading}\">\n"
        ));
    }

    fn add(&mut self, text: fmt::Arguments<'_>) {
        self.body.write_fmt(text).expect("a string takes any text");
    }
}

/// A number of an axis, with as many digits as it needs.
struct Number(f64);

impl Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = match self.0 {
            0.0 => 0,
            value if value < 1.0 => 2,
            value if value < 10.0 => 1,
            _ => 0,
        };
        write!(f, "{:.digits$}", self.0)
    }
}

/// The next number of one digit and zeros: the upper end of an axis.
fn round_up(value: f64) -> f64 {
    if value <= 0.0 {
        return 1.0;
    }
    let scale = 10f64.powf(value.log10().floor());
    (value / scale).ceil() * scale
}

/// `text` without the characters that HTML gives a meaning.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            _ => out.push(character),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_not_taken_for_markup() {
        let mut page = Page::new("<a & \"b\">");
        page.text("x<y", &"<script>alert(1)</script>");
        let bar = Bar { label: "<i>".to_owned(), value: 1.0, text: "</svg>".to_owned() };
        page.bars("bars", &[bar]);
        let mut bytes = Vec::new();
        page.print(&mut bytes).unwrap();
        let html = String::from_utf8(bytes).unwrap();
        assert!(html.contains("&lt;script&gt;") && !html.contains("<script"));
        assert!(html.contains("<title>&lt;a &amp; &quot;b&quot;&gt;</title>"), "{html}");
        assert!(html.contains("&lt;/svg&gt;") && !html.contains("<i>"));
    }

    #[test]
    fn axes_end_at_round_numbers() {
        for (value, end) in [(0.0, 1.0), (3.2, 4.0), (10.0, 10.0), (1234.0, 2000.0), (0.034, 0.04)]
        {
            assert!((round_up(value) - end).abs() < 1e-9, "{value}: {}", round_up(value));
        }
    }

    #[test]
    fn lines_stay_within_the_plot() {
        let mut page = Page::new("t");
        page.line("rate", "samples/s", &[Point { x: 0.0, y: 0.0 }, Point { x: 2.0, y: 7.0 }]);
        assert!(page.body.contains("points=\"70.0,190.0 790.0,10.0\""), "{}", page.body);
        page.line("nothing", "samples/s", &[]);
        assert!(!page.body.contains("nothing"));
    }
}
